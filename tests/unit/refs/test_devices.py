"""References under `shard_map`: shared by devices, divided over them, or each device's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import P, lax
from effax.ad import DontWant
from effax.ir.errors import RefError

LINE = jax.make_mesh((4,), ("x",))
GRID = jax.make_mesh((2, 2), ("x", "y"))
X = jnp.arange(8.0)

both_ways = pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
Way = Callable[[Callable[..., Any]], Callable[..., Any]]


def on(ins: Any, outs: Any, mesh: Any = LINE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return jax.shard_map(mesh=mesh, in_specs=ins, out_specs=outs)


@both_ways
def test_what_is_closed_over_can_be_read(way: Way) -> None:
    table = jax.new_ref(jnp.arange(4.0))
    fun = way(on(P("x"), P("x"))(lambda v: v * table[lax.axis_index("x")]))
    np.testing.assert_array_equal(fun(X), X * np.repeat(np.arange(4.0), 2))
    table[...] = 1.0
    np.testing.assert_array_equal(fun(X), X)


@pytest.mark.slow
@both_ways
def test_additions_of_devices_are_summed(way: Way) -> None:
    total, counts = jax.new_ref(0.0), jax.new_ref(jnp.zeros(4, int))

    def fun(v: Any) -> Any:
        jax.ref.addupdate(total, ..., jnp.sum(v))
        jax.ref.addupdate(counts, lax.axis_index("x"), 1)
        jax.ref.addupdate(counts, 0, 10)
        return v

    way(on(P("x"), P("x"))(fun))(X)
    assert (float(total[...]), counts[...].tolist()) == (28.0, [41, 1, 1, 1])
    way(on(P(), P())(fun))(X)
    assert float(total[...]) == 28.0 * 5


def test_a_write_names_the_reference_and_the_line_that_made_it() -> None:
    log = jax.new_ref(0.0)
    for fun in (
        lambda v: log.__setitem__(..., jnp.sum(v)),
        lambda v: jax.jit(lambda: log.__setitem__(..., 1.0))(),
    ):
        with pytest.raises(RefError, match="is written: it is not clear whose value") as caught:
            on(P("x"), P())(fun)(X)
        assert "a closed-over reference" in caught.value.what
        assert "test_devices.py" in str(caught.value.found)
        assert caught.value.rule == "shared-write"
    assert float(log[...]) == 0.0


def test_a_write_to_an_argument_that_devices_share_names_the_argument() -> None:
    def fun(out: Any, v: Any) -> None:
        out[0] = v[0]

    for specs in ((P(), P("x")), (P("x"), P("x"))):
        with pytest.raises(RefError, match="out is one reference for several devices") as caught:
            on(specs, P(), GRID)(fun)(jax.new_ref(jnp.zeros(8)), X)
        assert "test_devices.py" in str(caught.value.found)


@both_ways
def test_a_reference_that_is_divided_is_written_in_parts(way: Way) -> None:
    def fun(out: Any, v: Any) -> Any:
        assert out.shape == (2,)
        old = jax.ref.swap(out, 0, lax.axis_index("x") * 10.0)
        out[1] = v[1]
        return lax.psum(old, "x")

    out = jax.new_ref(jnp.full(8, 3.0))
    mapped = way(on((P("x"), P("x")), P())(fun))
    assert float(mapped(out, X)) == 12.0
    np.testing.assert_array_equal(out[...], [0, 1, 10, 3, 20, 5, 30, 7])


@both_ways
def test_additions_into_parts_and_over_other_axes(way: Way) -> None:
    def fun(out: Any, v: Any) -> None:
        jax.ref.addupdate(out, 0, jnp.sum(v))

    out = jax.new_ref(jnp.zeros((2, 2)))
    way(on((P(None, "y"), P("x")), P(), GRID)(fun))(out, X)
    # Devices along x add to the same part, those along y each to their own.
    np.testing.assert_array_equal(out[...], [[28.0, 28.0], [0.0, 0.0]])


@both_ways
def test_references_of_a_device_are_its_own(way: Way) -> None:
    def fun(v: Any) -> Any:
        acc = jax.new_ref(jnp.zeros(2))
        lax.foreach(jnp.arange(3.0))(lambda i: acc.__setitem__(..., acc[...] * i + v))
        acc[0] += lax.psum(acc[1], "x")
        return jax.freeze(acc)

    mapped = way(on(P("x"), P("x"))(fun))
    # ((0·0 + v)·1 + v)·2 + v = 5v
    rows = 5 * np.arange(8.0).reshape(4, 2)
    rows[:, 0] += rows[:, 1].sum()
    np.testing.assert_allclose(mapped(X), rows.reshape(-1))
    grads = jax.grad(lambda v: jnp.sum(mapped(v) * X))(X)
    np.testing.assert_allclose(grads, 5 * (X + jnp.array([0.0, 12.0] * 4)))


@both_ways
def test_gradients_are_accumulated_through_it(way: Way) -> None:
    @on((P(), P("x")), P())
    def loss(w: Any, v: Any) -> Any:
        return lax.psum(jnp.sum(w[lax.axis_index("x")] * v), "x")

    w, grads = jnp.ones(4), jax.new_ref(jnp.full(4, 100.0))

    def step(w: Any, v: Any, grads: Any) -> None:
        _, pullback = jax.vjp(loss, w, v)
        pullback.with_refs(grads, DontWant())(1.0)

    way(step)(w, X, grads)
    np.testing.assert_array_equal(grads[...], [101.0, 105.0, 109.0, 113.0])


def test_batched_shard_map_and_sharded_vmap_share_captured_references() -> None:
    total = jax.new_ref(0.0)
    add = on(P("x"), P())(lambda v: jax.ref.addupdate(total, ..., jnp.sum(v)))
    jax.vmap(add)(jnp.stack([X, X]))
    assert float(total[...]) == 56.0


@pytest.mark.slow
def test_derivatives_reach_through_shared_references() -> None:
    def plain(w: Any) -> Any:
        acc = jax.new_ref(0.0)
        scaled = jax.new_ref(w * 2)
        jax.ref.addupdate(acc, ..., jnp.sum(jnp.sin(X * scaled[...])))
        return jax.freeze(acc)

    def mapped(w: Any) -> Any:
        acc = jax.new_ref(0.0)
        scaled = jax.new_ref(w * 2)

        def fun(v: Any) -> Any:
            jax.ref.addupdate(acc, ..., jnp.sum(jnp.sin(v * scaled[...])))
            return v

        on(P("x"), P("x"))(fun)(X)
        return jax.freeze(acc)

    for derivative in (lambda f: f, jax.grad, lambda f: lambda w: jax.jvp(f, (w,), (3.0,))[1]):
        found, expected = derivative(mapped)(0.7), derivative(plain)(0.7)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(derivative(mapped))(0.7), expected, rtol=1e-5)
