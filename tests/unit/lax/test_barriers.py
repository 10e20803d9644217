"""Barriers, composites, and functions by platform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, LeakedTracer, LoweringError, RefError
from effax.ir.text.parser import parse
from effax.transforms import cse, dce

X = jnp.array([0.3, -1.2])


def test_barriers_are_neither_merged_nor_looked_through() -> None:
    def twice(x: effax.Array) -> tuple[effax.Array, effax.Array]:
        return jnp.sin(lax.optimization_barrier(x)), jnp.sin(lax.optimization_barrier(x))

    jaxpr = effax.make_jaxpr(twice)(X).jaxpr
    once = cse(jaxpr).unwrap()
    assert once == jaxpr
    assert dce(once, (True, True)).unwrap().jaxpr == jaxpr
    assert effax.jit(twice).lower(X).as_text().count("optimization_barrier") == 2


@pytest.mark.slow
def test_a_sink_keeps_what_computes_its_operand() -> None:
    def f(x: effax.Array, keep: bool) -> effax.Array:
        lax.dce_sink({"y": jnp.sin(x)}, prevent_mlir_dce=keep)
        return x * x

    for g, x in ((f, X), (effax.grad(f), X[0]), (effax.vmap(f, (0, None)), X)):
        jaxpr = effax.make_jaxpr(g, static_argnums=1)(x, False).jaxpr
        assert " sin " in str(dce(jaxpr, (True,)).unwrap().jaxpr)
    for keep in (False, True):
        text = effax.jit(f, static_argnums=1).lower(X, keep).compile().as_text()
        assert text is not None
        assert ("sine" in text) is keep


@pytest.mark.slow
def test_a_barrier_takes_trees_and_every_transformation() -> None:
    def f(x: effax.Array) -> effax.Array:
        pair = lax.optimization_barrier({"a": x * x, "b": x})
        return jnp.sum(pair["a"] * pair["b"])

    for run in (lambda g: g, effax.jit):
        np.testing.assert_allclose(np.asarray(run(effax.grad(f))(X)), 3 * np.asarray(X) ** 2)
        assert run(effax.vmap(f))(jnp.ones((3, 2))).shape == (3,)
    assert lax.optimization_barrier(()) == ()


@pytest.mark.slow
def test_a_barrier_returns_references() -> None:
    ref = effax.new_ref(jnp.float32(1.0))

    def f(ref: Any, y: Any) -> Any:
        y, same = lax.optimization_barrier((y, ref))
        assert same is ref
        assert ref.sharding == y.sharding
        assert effax.typeof(ref).sharding == effax.typeof(y).sharding
        ref[...] += y
        return ref[...]

    assert (f(ref, jnp.float32(2.0)), effax.jit(f)(ref, jnp.float32(4.0))) == (3.0, 7.0)


@pytest.mark.slow
def test_a_composite_is_one_operation_of_attributes() -> None:
    tangent = lax.composite(lambda x, **_: jnp.sin(x) / jnp.cos(x), "my.tangent", version=2)

    def f(x: effax.Array) -> effax.Array:
        return tangent(x, k=3, kind='a"b', dtype=np.dtype("float32"), on=True, omitted=None)

    text = effax.jit(f).lower(X).as_text()
    assert 'stablehlo.composite "my.tangent"' in text
    assert 'dtype = f32, k = 3 : i64, kind = "a\\22b", on = true' in text
    assert "version = 2" in text
    for run in (lambda g: g, effax.jit):
        np.testing.assert_allclose(np.asarray(run(f)(X)), np.tan(np.asarray(X)), rtol=1e-6)
    slope = effax.grad(lambda x: f(x).sum())(X)
    np.testing.assert_allclose(np.asarray(slope), 1 / np.cos(np.asarray(X)) ** 2, rtol=1e-5)
    jaxpr = effax.make_jaxpr(f)(X).jaxpr
    assert parse(str(jaxpr)) == jaxpr


def test_composites_refuse_what_a_compiler_cannot_know() -> None:
    ref = effax.new_ref(X)
    with pytest.raises(BadArgument, match="namespace"):
        lax.composite(jnp.sin, "sine")
    with pytest.raises(LeakedTracer, match="an attribute of"):
        effax.jit(lambda x: lax.composite(lambda y, k: y, "my.f")(x, k=x))(X)
    with pytest.raises(LoweringError, match="no text form"):
        lax.composite(lambda y, k: y, "my.f")(X, k=object())
    with pytest.raises(RefError, match="has effects"):
        lax.composite(lambda y: y + ref[...], "my.f")(X)


def test_a_platform_selects_its_function() -> None:
    def f(x: effax.Array) -> effax.Array:
        return lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos, default=jnp.tan)

    np.testing.assert_allclose(np.asarray(effax.jit(f)(X)), np.sin(np.asarray(X)), rtol=1e-6)
    with pytest.raises(BadArgument, match="no function for the platform"):
        lax.platform_dependent(X, tpu=jnp.cos)
