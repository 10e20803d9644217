"""Derivatives of ``vmap`` of branches and loops that are singular where they do not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax

Unary = Callable[[Any], Any]

RUNS = pytest.mark.parametrize("how", [lambda f: f, effax.jit], ids=["eager", "jit"])


def decreasing(step: Callable[[Any], Any], max_steps: int | None = None) -> Unary:
    """Return the sum of ``step(x)`` over x, x - 1, ... while positive."""

    def body(c: tuple[Any, effax.Array]) -> tuple[Any, effax.Array]:
        return c[0] - 1, c[1] + step(c[0])

    def total(x: Any) -> Any:
        start = (x, jnp.float32(0))
        return lax.while_loop(lambda c: c[0] > 0, body, start, max_steps=max_steps)[1]

    return total


FUNCTIONS: dict[str, Unary] = {
    "cond": lambda x: lax.cond(x > 0, jnp.sqrt, lambda v: 0.0 * v, x),
    "cond_of_log": lambda x: lax.cond(x > 0, lambda v: v * jnp.log(v), lambda v: v, x),
    "closed_over": lambda x: lax.cond(x > 0, lambda: 1 / x, lambda: 2 * x),
    "switch": lambda x: lax.switch(
        jnp.int32(jnp.sign(x) + 1),
        [lambda v: jnp.sqrt(-v), lambda v: v**2, jnp.log],
        x,
    ),
    "while": decreasing(jnp.sqrt),
    "while_of_quotient": decreasing(lambda c: c**0.5 / c),
    "bounded_while": decreasing(jnp.sqrt, max_steps=6),
    "nested": lambda x: lax.cond(
        x > 1, lambda v: lax.cond(v > 2, lambda v: jnp.sqrt(v - 2), lambda v: v, v), jnp.sin, x
    ),
    "loop_in_branch": lambda x: lax.cond(x > 0, decreasing(jnp.sqrt), lambda v: v, x),
    "branch_in_loop": decreasing(lambda c: lax.cond(c > 1, lambda v: jnp.sqrt(v - 1), jnp.cos, c)),
    "branch_in_scan": lambda x: lax.scan(
        lambda c, y: (lax.cond(c > y, lambda c: jnp.sqrt(c - y), lambda c: c * y, c), None),
        x,
        jnp.array([0.0, 1.0]),
    )[0],
}
POINTS = jnp.array([0.0, 4.0, 1.0, -1.0, 2.0])


@pytest.mark.slow
@RUNS
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_grad_commutes_with_vmap(f: Unary, how: Callable[[Any], Any]) -> None:
    """grad . vmap = vmap . grad, also where the branch not taken is singular."""
    expected = np.asarray(effax.vmap(effax.grad(f))(POINTS))
    assert np.isfinite(expected).all()

    def total(x: Any) -> Any:
        return effax.vmap(f)(x).sum()

    found = how(effax.grad(total))(POINTS)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cond", "switch", "while", "nested", "branch_in_loop"])
def test_other_derivatives_commute_with_vmap(name: str) -> None:
    f = FUNCTIONS[name]
    batch = effax.vmap(f)
    slopes = np.diag(np.asarray(effax.vmap(effax.grad(f))(POINTS)))
    np.testing.assert_allclose(effax.jacrev(batch)(POINTS), slopes, rtol=1e-5)
    np.testing.assert_allclose(effax.jacfwd(batch)(POINTS), slopes, rtol=1e-5)
    bends = np.asarray(effax.vmap(effax.grad(effax.grad(f)))(POINTS))
    whole = np.asarray(effax.hessian(lambda x: batch(x).sum())(POINTS))
    assert np.isfinite(bends).all()
    np.testing.assert_allclose(whole, np.diag(bends), rtol=1e-4, atol=1e-6)


SHARED: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda w, x: lax.cond(x > 0, lambda: w * jnp.log(x), lambda: w * x),
    "vector": lambda w, x: lax.cond(
        x > 0, lambda: jnp.sum(jnp.array([w, w * w]) * jnp.log(x)), lambda: x
    ),
    "while": lambda w, x: decreasing(lambda c: w * jnp.log(c))(x),
    "singular": lambda w, x: lax.cond(x > 0, lambda: jnp.sqrt(w) / x, lambda: w),
    "loop_in_branch": lambda w, x: lax.cond(
        x > 0, lambda: jnp.log(decreasing(lambda c: w * c)(x)), lambda: w
    ),
}


@pytest.mark.slow
@RUNS
@pytest.mark.parametrize("f", SHARED.values(), ids=SHARED)
def test_the_cotangent_of_an_unbatched_operand_is_the_sum(
    f: Callable[[Any, Any], Any], how: Callable[[Any], Any]
) -> None:
    def total(w: Any, x: Any) -> Any:
        return effax.vmap(f, (None, 0))(w, x).sum()

    for points in (POINTS, POINTS[:1], -POINTS[1:]):
        dw, dx = how(effax.grad(total, (0, 1)))(3.0, points)
        dws, dxs = effax.vmap(effax.grad(f, (0, 1)), (None, 0))(3.0, points)
        assert np.isfinite(np.asarray(dws)).all() and np.isfinite(np.asarray(dxs)).all()
        np.testing.assert_allclose(dw, np.asarray(dws).sum(0), rtol=1e-5)
        np.testing.assert_allclose(dx, dxs, rtol=1e-5)


def test_no_branch_is_taken_and_the_operand_is_singular() -> None:
    def f(w: Any, x: Any) -> Any:
        return lax.cond(x > 0, lambda: jnp.sqrt(w), lambda: x)

    def total(w: Any) -> Any:
        return effax.vmap(f, (None, 0))(w, jnp.zeros(3)).sum()

    assert float(effax.grad(total)(0.0)) == 0.0


@pytest.mark.slow
@RUNS
def test_what_a_branch_reads_from_references(how: Callable[[Any], Any]) -> None:
    def own(x: Any, t: Any) -> Any:
        r = effax.new_ref(t)
        return lax.cond(x > 0, lambda: jnp.sqrt(x) * jnp.log(r[...]), lambda: 0.0 * x)

    def table(x: Any, t: Any) -> Any:
        r = effax.new_ref(t)
        return lax.cond(x > 0, lambda: jnp.log(r[jnp.int32(x)]), lambda: x)

    def total(x: Any, t: Any) -> Any:
        return effax.vmap(own)(x, t).sum() + effax.vmap(table, (0, None))(x, t).sum()

    x, t = jnp.array([0.0, 1.0]), jnp.array([0.0, 4.0])
    dx, dt = how(effax.grad(total, (0, 1)))(x, t)
    np.testing.assert_allclose(dx, [1.0, np.log(4) / 2], rtol=1e-5)
    np.testing.assert_allclose(dt, [0.0, 0.5], rtol=1e-5)


def test_operands_of_linear_branches_are_used_as_they_are() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda v: 2.0 * v + 1, lambda v: -v, x)

    text = str(effax.make_jaxpr(effax.vmap(f))(POINTS))
    assert "stop_gradient" not in text


def test_a_batch_without_elements() -> None:
    for f in (*FUNCTIONS.values(), lambda x: SHARED["cond"](3.0, x)):
        assert effax.grad(lambda x: effax.vmap(f)(x).sum())(jnp.zeros(0)).shape == (0,)  # noqa: B023
