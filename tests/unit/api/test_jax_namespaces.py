"""The small namespaces under JAX's names: core, dtypes, errors, stages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import core, dtypes, errors, stages, test_util
from effax.ir.types import array_type


def test_a_tracer_is_a_value_inside_a_traced_function() -> None:
    seen: list[object] = []

    def f(x: effax.Array) -> effax.Array:
        seen.append(x)
        return x

    effax.jit(f)(jnp.ones(()))
    effax.grad(f)(jnp.ones(()))
    assert [isinstance(x, core.Tracer) for x in [*seen, jnp.ones(1)]] == [True, True, False]


def test_a_shaped_array_is_the_type_of_an_array() -> None:
    made = core.ShapedArray((2, 3), jnp.float32, weak_type=True)
    assert made == array_type((2, 3), "float32", True)
    assert isinstance(jnp.ones(1).aval, core.ShapedArray)
    assert effax.eval_shape(lambda x: x[0], made).shape == (3,)
    with pytest.raises(TypeError, match="expected"):
        core.ShapedArray((2.5,), "float32")  # type: ignore[arg-type]  # wrong


def test_eval_jaxpr_takes_constants_first() -> None:
    table = jnp.arange(3.0)
    closed = effax.make_jaxpr(lambda x: x + table)(1.0)
    for run in (core.eval_jaxpr, effax.jit(core.eval_jaxpr, static_argnums=0)):
        np.testing.assert_array_equal(run(closed.jaxpr, closed.consts, 2.0)[0], [2, 3, 4])


def test_operations_run_while_tracing_where_that_is_ensured() -> None:
    def f(x: effax.Array) -> effax.Array:
        with effax.ensure_compile_time_eval():
            table = jnp.sin(jnp.ones(2))
            assert table.sum() > 0
        return x * table

    jaxpr = effax.make_jaxpr(f)(jnp.ones(2)).jaxpr
    assert [eqn.prim.name for eqn in jaxpr.eqns] == ["mul"]
    for run in (f, effax.jit(f)):
        np.testing.assert_allclose(run(jnp.ones(2)), np.sin(1.0), rtol=1e-6)


@core.ensure_compile_time_eval()
def _successor(x: effax.Array) -> effax.Array:
    return x + 1


def test_symbols_are_traced_where_operations_run_while_tracing() -> None:
    for run in (_successor, effax.jit(_successor)):
        assert run(jnp.ones(())) == 2.0
        assert effax.grad(run)(jnp.ones(())) == 1.0


def test_categories_of_dtypes() -> None:
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert not dtypes.issubdtype(dtypes.prng_key, np.inexact)
    assert dtypes.issubdtype(effax.random.key(0).dtype, dtypes.prng_key)
    assert not dtypes.issubdtype(np.floating, dtypes.extended)
    assert dtypes.issubdtype(dtypes.bfloat16, np.floating)
    assert dtypes.canonicalize_dtype(np.int64) == np.dtype("int32")


def test_errors_are_raised_under_their_names() -> None:
    leaked: list[effax.Array] = []

    def f(x: effax.Array) -> effax.Array:
        leaked.append(x)
        return x

    effax.jit(f)(jnp.ones(()))
    with pytest.raises(errors.UnexpectedTracerError):
        jnp.sin(leaked[0])
    with pytest.raises(errors.ConcretizationTypeError):
        effax.jit(lambda x: x if x > 0 else -x)(1.0)
    assert issubclass(errors.JaxRuntimeError, RuntimeError)


CONVERSIONS: dict[str, tuple[type[Exception], Callable[[effax.Array], object]]] = {
    "condition": (errors.TracerBoolConversionError, lambda x: 1 if x else 2),
    "numpy": (errors.TracerArrayConversionError, lambda x: np.sin(x) + 1),
    "index": (errors.TracerIntegerConversionError, lambda x: [1, 2][x]),
    "size": (errors.TracerIntegerConversionError, lambda x: list(range(x))),
    "mask": (errors.NonConcreteBooleanIndexError, lambda x: jnp.ones(3)[jnp.arange(3) > x]),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_errors_name_the_conversion_of_a_tracer(name: str) -> None:
    kind, f = CONVERSIONS[name]
    with pytest.raises(kind, match="one that depends on x") as caught:
        effax.jit(f)(jnp.int32(1))
    assert isinstance(caught.value, errors.ConcretizationTypeError)
    assert isinstance(caught.value, IndexError) == (name == "mask")


def test_stages_are_the_types_of_a_jitted_call() -> None:
    wrapped = effax.jit(jnp.sin)
    assert isinstance(wrapped, stages.Wrapped)
    lowered = wrapped.lower(1.0)
    compiled = lowered.compile()
    assert isinstance(lowered, stages.Lowered)
    assert isinstance(compiled, stages.Compiled)
    for stage in (lowered, compiled):
        assert stage.in_tree == effax.tree.structure(((0,), {}))
        assert stage.out_tree == effax.tree.structure(0)
        assert stage.in_avals == ((array_type((), "float32", True),), {})
        assert stage.out_info == effax.eval_shape(jnp.sin, 1.0)


def test_stages_leave_out_constants() -> None:
    table = jnp.arange(3.0)
    lowered = effax.jit(lambda d: {"y": d["x"] + table}).lower({"x": jnp.ones((2, 1))})
    assert lowered.in_avals == (({"x": array_type((2, 1), "float32")},), {})
    assert lowered.out_info["y"].shape == (2, 3)


def test_a_closed_program_has_the_parts_of_its_program() -> None:
    cell, table = effax.new_ref(jnp.zeros(3)), jnp.arange(3.0)

    def f(x: effax.Array) -> effax.Array:
        cell[...] = x + table
        return x

    closed = effax.make_jaxpr(f)(jnp.ones(3))
    assert closed.eqns is closed.jaxpr.eqns
    assert closed.effects == closed.jaxpr.effects
    assert closed.in_avals == closed.out_avals == (array_type((3,), "float32"),)


def test_named_calls_are_in_the_name_stack() -> None:
    def wave(x: effax.Array) -> effax.Array:
        """Return a wave."""
        return jnp.sin(x)

    named = effax.named_call(wave)
    assert named.__doc__ == "Return a wave."
    eqn = effax.make_jaxpr(named)(1.0).jaxpr.eqns[0]
    assert eqn.source is not None
    assert eqn.source.scopes == ("wave",)
    assert effax.jit(named)(jnp.zeros(())) == named(jnp.zeros(())) == 0.0
    with pytest.raises(effax.ir.errors.BadArgument):
        effax.named_call(3)  # type: ignore[arg-type]  # wrong


def test_jacobian_is_reverse_mode() -> None:
    assert effax.jacobian is effax.jacrev

    def cube(x: effax.Array) -> effax.Array:
        return x**3

    test_util.check_grads(effax.jacobian(cube), (2.0,), order=1)
