"""Solutions of equations: their derivatives and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, EffaxError, IllTyped, RefError, TransformError
from effax.ir.prims import LinearSolve, While
from effax.testing import check_grads

A = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.3, 0.1, 2.0]])
B = jnp.array([1.0, 2.0, 3.0])


def iterated(matvec: Any, b: Any) -> Any:
    """Return a solution by a loop that has no correct derivative of its own."""

    def is_far(x: Any) -> Any:
        return jnp.max(jnp.abs(b - matvec(x))) > 1e-5

    start = lax.stop_gradient(b * 0)
    return lax.while_loop(is_far, lambda x: x + (b - matvec(x)) * 0.2, start)


def solved(a: Any, b: Any, **kw: Any) -> Any:
    return lax.custom_linear_solve(lambda x: a @ x, b, iterated, **kw)


def test_derivatives_solve_and_do_not_differentiate_the_solver() -> None:
    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(solved(a, b, transpose_solve=iterated) ** 2)

    check_grads(loss, (A, B), order=1)
    inverse = np.linalg.inv(A)
    x = inverse @ np.asarray(B)
    d_a, d_b = effax.grad(loss, (0, 1))(A, B)
    np.testing.assert_allclose(d_b, inverse.T @ (2 * x), rtol=1e-4)
    np.testing.assert_allclose(d_a, -np.outer(inverse.T @ (2 * x), x), rtol=1e-4)
    jaxpr = effax.make_jaxpr(effax.grad(loss, (0, 1)))(A, B).jaxpr
    assert sum(isinstance(eqn.prim, LinearSolve) for eqn in jaxpr.eqns) == 2
    assert not any(isinstance(eqn.prim, While) for eqn in jaxpr.eqns)


def test_trees_are_solved_for() -> None:
    def matvec(x: Any) -> Any:
        return {"p": 2 * x["p"] + x["q"], "q": 3 * x["q"]}

    def by_hand(matvec: Any, b: Any) -> Any:
        return {"p": (b["p"] - b["q"] / 3) / 2, "q": b["q"] / 3}

    def back(vecmat: Any, b: Any) -> Any:
        found = {"p": b["p"] / 2, "q": (b["q"] - b["p"] / 2) / 3}
        again = vecmat(found)
        return {k: found[k] + 0 * again[k] for k in found}

    def f(b: Any) -> Any:
        x = lax.custom_linear_solve(matvec, b, by_hand, back)
        return x["p"] * 5 + x["q"] * 7

    found = effax.grad(f)({"p": 1.0, "q": 2.0})
    np.testing.assert_allclose([found["p"], found["q"]], [2.5, -5 / 6 + 7 / 3], rtol=1e-6)


def test_a_batch_of_systems_is_solved_at_once() -> None:
    scales = jnp.array([1.0, 1.1, 0.9])
    found = effax.vmap(lambda s: solved(A * s, B))(scales)
    for s, x in zip(scales, found, strict=True):
        np.testing.assert_allclose(x, np.linalg.solve(A * float(s), B), rtol=1e-4)

    def total(b: Any) -> Any:
        return solved(A, b, transpose_solve=iterated).sum()

    found = effax.jit(effax.vmap(effax.grad(total)))(jnp.stack([B, 2 * B]))
    np.testing.assert_allclose(found, [np.linalg.inv(A).T.sum(1)] * 2, rtol=1e-4)


def test_batch_elements_outside_the_branch_need_no_solution() -> None:
    """The equation of a batch element that takes the other branch may have no solution."""

    def f(s: Any) -> Any:
        return lax.cond(s > 0, lambda: solved(A * s, B), lambda: B)

    found = effax.vmap(f)(jnp.array([1.0, -50.0]))
    np.testing.assert_allclose(found[0], np.linalg.solve(A, B), rtol=1e-4)
    np.testing.assert_array_equal(found[1], B)


def test_reverse_mode_needs_the_transpose() -> None:
    with pytest.raises(TransformError, match="no reverse derivative") as caught:
        effax.grad(lambda b: solved(A, b).sum())(B)
    assert "transpose_solve" in str(caught.value)
    effax.jvp(lambda b: solved(A, b), (B,), (B,))
    symmetric = effax.grad(lambda b: solved(A + A.T, b, symmetric=True).sum())(B)
    np.testing.assert_allclose(symmetric, np.linalg.inv(A + A.T).sum(1), rtol=1e-4)


REFUSED: dict[str, tuple[type[EffaxError], str, Any]] = {
    "no function": (BadArgument, "matvec", lambda: lax.custom_linear_solve(A, B, iterated)),  # type: ignore[arg-type]  # that is the point
    "another shape": (
        IllTyped,
        "matvec",
        lambda: lax.custom_linear_solve(lambda x: x[:2], B, iterated),
    ),
    "another structure": (
        IllTyped,
        "solve",
        lambda: lax.custom_linear_solve(lambda x: x, B, lambda f, b: (b, b)),
    ),
    "no pair": (
        BadArgument,
        "has_aux",
        lambda: lax.custom_linear_solve(lambda x: x, B, lambda f, b: b, has_aux=True),
    ),
    "integers": (
        IllTyped,
        "no derivative",
        lambda: lax.custom_linear_solve(lambda x: x, jnp.arange(3), iterated),
    ),
    "not linear": (
        TransformError,
        "not linear",
        lambda: lax.custom_linear_solve(jnp.sin, B, iterated, transpose_solve=iterated),
    ),
    "a guess of integers": (
        IllTyped,
        "initial_guess",
        lambda: lax.custom_root(lambda x: x, 1, lambda f, x: x, lambda g, y: y),
    ),
    "a root of another shape": (
        IllTyped,
        "f of custom_root",
        lambda: lax.custom_root(lambda x: x[:1], B, lambda f, x: x, lambda g, y: y),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments(name: str) -> None:
    error, says, call = REFUSED[name]
    with pytest.raises(error, match=says):
        call()


def test_effects_are_errors() -> None:
    count = effax.new_ref(0.0)

    def matvec(x: Any) -> Any:
        count[...] += 1
        return x

    with pytest.raises(RefError, match="more than once"):
        lax.custom_linear_solve(matvec, B, lambda f, b: b)
    with pytest.raises(RefError, match="more than once"):
        lax.custom_root(matvec, B, lambda f, x: x, lambda g, y: y)
    assert float(count[...]) == 0.0


def root(w: Any, guess: Any = 1.0) -> Any:
    def newton(f: Any, x: Any) -> Any:
        return lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-4, lambda x: x - f(x) / (3 * x * x), x)

    return lax.custom_root(lambda x: x**3 - w["c"], guess, newton, lambda g, y: y / g(1.0))


def test_a_root_depends_on_closed_over_values() -> None:
    d = effax.grad(root)({"c": 8.0, "unused": 1.0})
    np.testing.assert_allclose([d["c"], d["unused"]], [1 / 12, 0.0], rtol=1e-4)
    assert float(effax.grad(lambda g: root({"c": 8.0}, g))(1.5)) == 0.0
    check_grads(lambda c: root({"c": c}), (8.0,), order=2)


def test_a_root_of_a_system() -> None:
    """A·x + x³ = b, its linear equations solved by custom_linear_solve."""

    def f(b: Any) -> Any:
        def equation(x: Any) -> Any:
            return A @ x + x**3 - b

        def newton(f: Any, x: Any) -> Any:
            def better(_: Any, x: Any) -> Any:
                return x - iterated(lambda v: A @ v + 3 * x**2 * v, f(x))

            return lax.fori_loop(0, 8, better, x)

        def tangent(g: Any, y: Any) -> Any:
            return lax.custom_linear_solve(g, y, iterated, transpose_solve=iterated)

        return lax.custom_root(equation, b * 0, newton, tangent)

    x = np.asarray(f(B))
    jacobian = np.linalg.inv(np.asarray(A) + 3 * np.diag(x**2))
    np.testing.assert_allclose(effax.jacfwd(f)(B), jacobian, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(effax.jacrev(f)(B), jacobian, rtol=1e-3, atol=1e-5)


def test_a_tangent_solve_by_the_jacobian_of_a_linear_function() -> None:
    # Its columns are tested for nan at the point of differentiation, which is transposed.
    def f(b: Any) -> Any:
        def newton(f: Any, x: Any) -> Any:
            return lax.fori_loop(0, 8, lambda _, x: x - tangent(lambda v: A @ v, f(x)), x)

        def tangent(g: Any, y: Any) -> Any:
            return jnp.linalg.solve(effax.jacobian(g)(y), y)

        return lax.custom_root(lambda x: A @ x - b**2, b * 0, newton, tangent)

    jacobian = np.linalg.inv(np.asarray(A)) @ np.diag(2 * np.asarray(B))
    np.testing.assert_allclose(effax.jacrev(f)(B), jacobian, rtol=1e-4)
    np.testing.assert_allclose(effax.jit(effax.jacrev(f))(B), jacobian, rtol=1e-4)
