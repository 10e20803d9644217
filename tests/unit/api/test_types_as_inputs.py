"""Types in the place of arrays and references, wherever a program is traced on types alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import effax as jax
import effax.numpy as jnp
from effax import export
from effax.ir import IllTyped, array_type, ref_type

ROW = array_type((3,), "float32")


def add_to(ref: jax.Ref, tree: dict[str, jax.Array]) -> jax.Array:
    ref[...] = ref[...] + tree["x"]
    return tree["x"].sum()


def test_types_trace_to_the_program_of_values() -> None:
    values = jax.new_ref(jnp.zeros(3)), {"x": jnp.ones(3)}
    types = ref_type(ROW), {"x": ROW}
    assert jax.make_jaxpr(add_to)(*types) == jax.make_jaxpr(add_to)(*values)
    assert jax.eval_shape(add_to, *types) == jax.eval_shape(add_to, *values)
    assert jax.effects_of(add_to)(*types) == jax.effects_of(add_to)(*values)
    assert jax.jit(add_to).trace(*types).jaxpr == jax.jit(add_to).trace(*values).jaxpr
    assert [jax.typeof(x) for x in (types[0], ROW)] == [types[0], ROW]


def test_references_of_one_type_are_two_references() -> None:
    def copy(a: jax.Ref, b: jax.Ref) -> None:
        a[...] = b[...]

    signature = jax.signature_of(copy)(ref_type(ROW), ref_type(ROW))
    assert [slot.name for slot in signature.inputs if slot.effects] == ["a", "b"]


def test_what_is_compiled_or_exported_from_types_updates_references() -> None:
    ref, tree = jax.new_ref(jnp.zeros(3)), {"x": jnp.ones(3)}
    jax.jit(add_to).lower(ref_type(ROW), {"x": ROW}).compile()(ref, tree)
    export.export(add_to)(ref_type(ROW), {"x": ROW}).call(ref, tree)
    assert ref[...].tolist() == [2.0, 2.0, 2.0]


def test_the_transpose_of_a_function_of_types() -> None:
    (found,) = jax.linear_transpose(lambda x: 2 * x, ROW)(jnp.ones(3))
    assert found.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("make", [lambda t: t, ref_type], ids=["array", "reference"])
def test_types_of_64_bits_are_refused_where_these_are_not_enabled(
    make: Callable[..., object],
) -> None:
    wide = make(array_type((3,), "float64"))
    with pytest.raises(IllTyped, match=r"x is 64 bits wide[\s\S]*float32[\s\S]*enable_x64"):
        jax.make_jaxpr(lambda x: x)(wide)


def test_results_may_be_types() -> None:
    struct = jax.ShapeDtypeStruct((2, 3), "int8")
    assert jax.eval_shape(lambda x: (struct, x.aval), jnp.ones(4)) == (
        struct,
        jax.ShapeDtypeStruct((4,), "float32"),
    )
