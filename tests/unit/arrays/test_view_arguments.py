"""Views of references as arguments of transformations and of control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.export import export
from effax.ir.errors import IllTyped, RefError

jax: Any = effax
START = np.arange(24, dtype=np.float32).reshape(4, 6)

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])

VIEWS: dict[str, Any] = {
    "row": lambda r: r.at[1],
    "last row": lambda r: r.at[-1],
    "slice": lambda r: r.at[2, 1:5],
    "slice with a step": lambda r: r.at[3, ::-2],
    "view of a view": lambda r: r.at[1:3].at[1, 2:].at[1:],
    "position in an array": lambda r: r.at[jnp.int32(2), ...],
    "array of positions": lambda r: r.at[np.array([2, 0]), 1],
    "mask": lambda r: r.at[1].at[np.array([True, False, True, True, False, False])],
    "window": lambda r: r.at[0, lax.ds(jnp.int32(2), 3)],
}

USES: dict[str, Any] = {
    "jit": lambda f, v, x: jax.jit(f)(v, x),
    "jit, in a tree": lambda f, v, x: jax.jit(lambda t: f(t["v"][0], t["x"]))({"v": [v], "x": x}),
    "cond": lambda f, v, x: lax.cond(True, f, lambda v, x: x, v, x),
    "switch": lambda f, v, x: lax.switch(1, [lambda v, x: x, f], v, x),
    "scan": lambda f, v, x: lax.scan(lambda c, _: (f(v, c), None), x, None, 1)[0],
    "fori_loop": lambda f, v, x: lax.fori_loop(0, 1, lambda _, c: f(v, c), x),
    "while_loop": lambda f, v, x: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, f(v, c[1])), (0, x)
    )[1],
    "grad": lambda f, v, x: jax.value_and_grad(f, 1)(v, x)[0],
    "vjp": lambda f, v, x: jax.vjp(lambda x: f(v, x), x)[0],
    "export": lambda f, v, x: export(f)(v, x).call(v, x),
}


def step(v: Any, x: Any) -> Any:
    v[0] += lax.stop_gradient(x)
    v.at[1:].addupdate(2.0)
    return jnp.sum(v[...]) * x + v.shape[0]


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_call_on_a_view_is_the_function_of_the_view(view: str, use: str) -> None:
    wanted, found = jax.new_ref(START), jax.new_ref(START)
    result = step(VIEWS[view](wanted), 0.5)
    np.testing.assert_allclose(USES[use](step, VIEWS[view](found), 0.5), result)
    np.testing.assert_array_equal(found[...], wanted[...])
    if use != "export" and view == "view of a view":
        jax.jit(lambda x: USES[use](step, VIEWS[view](found), x))(0.5)
        step(VIEWS[view](wanted), 0.5)
        np.testing.assert_array_equal(found[...], wanted[...])


def test_positions_compile_once() -> None:
    traced = []

    def total(v: Any) -> Any:
        traced.append(1)
        return jnp.sum(v[...])

    f = jax.jit(total)
    r = jax.new_ref(START)
    for i in range(4):
        assert float(f(r.at[i, 1:])) == START[i, 1:].sum()
    assert len(traced) == 1
    f(r.at[0, 2:])
    assert len(traced) == 2


def test_derivatives_beside_a_view() -> None:
    r = jax.new_ref(START)
    f = lambda v, x: jnp.sum(v[...] ** 2) * x  # noqa: E731
    for g in (jax.grad(f, 1), jax.jit(jax.grad(f, 1))):
        np.testing.assert_allclose(g(r.at[1, 2:], 3.0), np.sum(START[1, 2:] ** 2))
    with pytest.raises(RefError, match="v, which is a reference"):
        jax.grad(f)(r.at[1], 3.0)
    assert float(jax.checkpoint(lambda v, x: x * v.shape[0])(r.at[1], 2.0)) == 12.0
    assert float(jax.checkpoint(f)(r.at[1], 2.0)) == 2 * np.sum(START[1] ** 2)


@pytest.mark.slow
@WRAPS
def test_vmap_over_an_axis_of_a_view(wrap: Any) -> None:
    for in_axes in ((0, 0), (1, 0), (-1, 0), (None, 0)):
        r, contents = jax.new_ref(START), START.copy()
        part = contents[1:3, ::2]
        rows = part if in_axes[0] == 0 else part.T
        xs = np.arange(1.0, 1 + len(rows), dtype=np.float32)

        def body(v: Any, x: Any) -> Any:
            if v.ndim == 1:
                v[...] += x
            return jnp.sum(v[...]) * x

        found = wrap(lambda r, xs: jax.vmap(body, in_axes)(r.at[1:3, ::2], xs))(r, xs)  # noqa: B023
        if in_axes[0] is None:
            np.testing.assert_allclose(found, part.sum() * xs)
        else:
            rows += xs[:, None]
            np.testing.assert_allclose(found, rows.sum(1) * xs)
        np.testing.assert_array_equal(r[...], contents)


@pytest.mark.slow
@WRAPS
def test_scans_over_a_view(wrap: Any) -> None:
    r, contents = jax.new_ref(START), START.copy()

    def body(c: Any, v: Any) -> Any:
        v[0] += c
        return c + 1, jnp.sum(v[...])

    _, sums = wrap(lambda r: lax.scan(body, 1.0, r.at[1:, 2:4]))(r)
    contents[1:, 2] += [1, 2, 3]
    np.testing.assert_array_equal(r[...], contents)
    np.testing.assert_array_equal(sums, contents[1:, 2:4].sum(1))
    doubled = wrap(lambda r: lax.map(lambda v: 2 * v[...], r.at[0]))(r)
    np.testing.assert_array_equal(doubled, 2 * contents[0])


def test_a_view_that_is_only_read_is_not_written() -> None:
    def f(r: Any) -> Any:
        return lax.map(lambda v: 2 * v[...], r.at[0]), jax.vmap(lambda v: v[...])(r.at[1])

    r = jax.new_ref(START)
    assert {type(e).__name__ for e in jax.make_jaxpr(f)(r).jaxpr.effects} == {"Read"}


def test_aliases_are_refused_and_change_nothing() -> None:
    r = jax.new_ref(START)

    def both(v: Any, w: Any) -> Any:
        v[...] += w[...]

    for call, message in (
        (lambda: jax.jit(both)(r.at[0], r.at[1]), "as v and as w"),
        (lambda: jax.jit(both)(r.at[0], r), "as v and as w"),
        (lambda: lax.cond(True, both, both, r.at[0, 1:], r.at[0, :3]), "one reference as operands"),
        (lambda: jax.jit(lambda v: both(v, r))(r.at[0]), "closes over"),
        (lambda: jax.vmap(both)(r.at[0], r.at[1]), "maps over w, a view"),
        (lambda: jax.vmap(both, (0, None))(r.at[0], r.at[1, 0]), "maps over v, a view"),
        (lambda: jax.vmap(lambda v: v.set(r[0, 0]))(r.at[0]), "maps over v, a view"),
        (lambda: lax.scan(lambda c, v: (c + r[0, 0], v[...]), 0.0, r.at[0]), "maps over xs"),
        (lambda: lax.scan(lambda c, x: (c, None), r.at[0], jnp.ones(2)), "init is a reference"),
    ):
        with pytest.raises(RefError, match=message):
            call()
    with pytest.raises(IllTyped, match="result of jit"):
        jax.jit(lambda v: v)(r.at[0])
    np.testing.assert_array_equal(r[...], START)
