"""Types in the place of arrays and references, wherever a program is traced on types alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
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


def test_structs_are_updated_and_describe_shardings() -> None:
    struct = jax.ShapeDtypeStruct((2, 3), "float32")
    assert len(struct) == 2
    assert repr(struct) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert struct.update(shape=(4,)) == jax.ShapeDtypeStruct((4,), "float32")
    rows = jax.NamedSharding(jax.make_mesh((2,), ("x",)), jax.P("x"))
    placed = struct.update(sharding=rows)
    assert placed.sharding == rows
    assert placed != struct
    assert jax.eval_shape(lambda x: x[0], placed) == jax.ShapeDtypeStruct((3,), "float32")
    assert jax.eval_shape(lambda: jax.eval_shape(jnp.sin, struct).shape[0]).shape == ()
    assert jax.ShapeDtypeStruct((), np.bytes_).dtype == np.dtype(np.bytes_)
    with pytest.raises(TypeError, match="not a dtype"):
        jax.ShapeDtypeStruct((), "some text")
    with pytest.raises(ValueError, match="unknown attribute"):
        struct.update(size=3)
    with pytest.raises(ValueError, match="dtype must be specified"):
        jax.ShapeDtypeStruct((), None)
    with pytest.raises(TypeError, match="unsized"):
        len(jax.ShapeDtypeStruct((), "float32"))


def test_named_axes_of_make_jaxpr_are_in_scope() -> None:
    jaxpr = jax.make_jaxpr(lambda x: jax.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert "psum" in str(jaxpr)
    assert jax.make_jaxpr(jnp.sin).__name__ == "make_jaxpr(sin)"


def test_jit_returns_derivatives_as_functions() -> None:
    def f(x: Any) -> Any:
        return {"s": jnp.sin(x), "x": 2 * x}

    _, push = jax.jit(lambda x: jax.linearize(f, x))(1.0)
    expected = jax.jvp(f, (1.0,), (3.0,))[1]
    assert jax.tree.map(float, push(3.0)) == pytest.approx(jax.tree.map(float, expected))
    assert jax.jit(lambda p, t: p(t))(push, 3.0)["x"] == 6
    _, pull = jax.jit(lambda x: jax.vjp(jnp.sin, x))(1.0)
    assert pull(1.0)[0] == pytest.approx(0.5403023)
    transposed = jax.jit(lambda c: jax.linear_transpose(lambda x: c * x, 1.0))(2.0)
    assert transposed(3.0)[0] == 6


def test_static_arguments_of_a_jit_function_are_values() -> None:
    power = jax.jit(lambda x, n: x**n, static_argnames="n")
    struct = jax.ShapeDtypeStruct((2,), "float32")
    assert jax.eval_shape(power, struct, 2) == jax.eval_shape(power, struct, n=2) == struct


def test_arrays_of_the_shape_of_a_type() -> None:
    struct = jax.ShapeDtypeStruct((2,), "int8")
    assert jnp.zeros_like(struct).type is array_type((2,), "int8")
    assert jnp.full_like(struct, 7, "float32").tolist() == [7.0, 7.0]


def test_a_program_has_one_constant_for_each_closed_over_value_of_an_enclosing_trace() -> None:
    n_consts: list[int] = []

    def count(state: tuple[jax.Array, jax.Array]) -> None:
        def body(x: jax.Array, _: None) -> tuple[jax.Array, None]:
            return x * state[1] + state[0], None

        closed = jax.make_jaxpr(lambda x: jax.lax.scan(body, x, None, 2)[0])(1.0)
        n_consts.append(len(closed.consts))

    def traced(x: jax.Array) -> jax.Array:
        count((jnp.array(0.0), x))
        count((x, x + 1))
        return x

    jax.jit(traced)(jnp.ones(()))
    assert n_consts == [2, 2]
