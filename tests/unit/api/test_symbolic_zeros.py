"""Rules with symbolic zeros: their arguments and their results."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from effax.ir.errors import BadRule, IllTyped

jax: Any = effax
XS = jnp.arange(3.0)


def pushing(asked: list[Any]) -> Any:
    """(x, n, y) -> (n sin x + y, x), which notes which tangents are zero."""

    @effax.custom_jvp
    def f(x: Any, n: Any, y: Any) -> Any:
        return jnp.sin(x) * n + y, x

    def rule(primals: Any, tangents: Any) -> Any:
        asked.append(tuple(isinstance(t, SymbolicZero) for t in tangents))
        (x, n, y), (dx, _, dy) = primals, tangents
        if isinstance(dx, SymbolicZero):
            return f(x, n, y), (dy, dx)
        dot = jnp.cos(x) * dx * n
        return f(x, n, y), (dot if isinstance(dy, SymbolicZero) else dot + dy, dx)

    f.defjvp(rule, symbolic_zeros=True)
    return f


def test_forward_rules_see_which_tangents_are_zero() -> None:
    asked: list[Any] = []
    f = pushing(asked)
    out, dot = jax.jvp(lambda x: f(x, 2, 3.0), (1.0,), (1.0,))
    assert asked == [(False, True, True)]
    np.testing.assert_allclose(dot, (2 * np.cos(1.0), 1.0), rtol=1e-6)
    asked.clear()
    assert jax.jvp(lambda y: f(1.0, 2, y), (1.0,), (1.0,))[1] == (1.0, 0.0)
    assert asked == [(True, True, False)]
    asked.clear()
    assert jax.grad(lambda x, y: f(x, 2, y)[0], (0, 1))(0.0, 1.0) == (2.0, 1.0)
    assert asked == [(False, True, False)]
    assert out[1] == 1.0


def test_forward_rules_in_everything() -> None:
    f = pushing([])

    def slope(x: Any) -> Any:
        return f(x, 2, 3.0)[0]

    expected = 2 * np.cos(XS)
    np.testing.assert_allclose(jax.vmap(jax.grad(slope))(XS), expected, rtol=1e-6)
    total = jax.grad(lambda x: jax.vmap(slope)(x).sum())
    np.testing.assert_allclose(jax.jit(total)(XS), expected, rtol=1e-6)
    again = jax.grad(lambda x: jax.vmap(lambda y: f(x, 2, y)[0])(XS).sum())(1.0)
    np.testing.assert_allclose(again, 6 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(slope))(1.0), -2 * np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.checkpoint(slope))(1.0), 2 * np.cos(1.0), rtol=1e-6)
    looped = jax.grad(lambda x: lax.scan(lambda c, _: (slope(c) - 3, None), x, None, length=2)[0])
    np.testing.assert_allclose(looped(0.0), 4.0, rtol=1e-6)
    chosen = jax.grad(lambda x: lax.cond(x > 0, slope, lambda x: x, x))
    np.testing.assert_allclose(jax.vmap(chosen)(XS), np.where(XS > 0, expected, 1), rtol=1e-6)


def pulling(asked: list[Any]) -> Any:
    """(x, n, {'a': y}) -> (n sin x + y, 2x); the slope in x of the first is 10 times too large."""

    @effax.custom_vjp
    def g(x: Any, n: Any, y: Any) -> Any:
        return jnp.sin(x) * n + y["a"], x * 2

    def forward(x: Any, n: Any, y: Any) -> Any:
        assert isinstance(x, CustomVJPPrimal)
        asked.append(("fwd", x.perturbed, n.perturbed, y["a"].perturbed))
        a, b, c = custom_vjp_primal_tree_values((x, n, y))
        return g(a, b, c), (a if x.perturbed else None, b)

    def backward(res: Any, cts: Any) -> Any:
        asked.append(("bwd", *[isinstance(ct, SymbolicZero) for ct in cts]))
        (x, n), (first, second) = res, cts
        if x is None:
            return None, None, {"a": first}
        dot = (
            zero_from_primal(x) if isinstance(first, SymbolicZero) else 10 * jnp.cos(x) * n * first
        )
        return dot if isinstance(second, SymbolicZero) else dot + 2 * second, None, {"a": first}

    g.defvjp(forward, backward, symbolic_zeros=True)
    return g


def test_reverse_rules_see_what_is_differentiated() -> None:
    asked: list[Any] = []
    g = pulling(asked)
    y = {"a": 3.0}
    slope = 20 * np.cos(1.0)
    np.testing.assert_allclose(jax.grad(lambda x: g(x, 2, y)[0])(1.0), slope, rtol=1e-6)
    assert asked == [("fwd", True, False, False), ("bwd", False, True)]
    asked.clear()
    assert jax.grad(lambda x: g(x, 2, y)[1])(1.0) == 2.0
    assert asked == [("bwd", True, False)]
    asked.clear()
    assert jax.grad(lambda a: g(1.0, 2, {"a": a})[0])(1.0) == 1.0
    assert asked == [("fwd", False, False, True), ("bwd", False, True)]
    both = jax.jit(jax.grad(lambda x, a: sum(g(x, 2, {"a": a})), (0, 1)))(1.0, 2.0)
    np.testing.assert_allclose(both, (slope + 2, 1), rtol=1e-6)


def test_reverse_rules_in_everything() -> None:
    g = pulling([])

    def slope(x: Any) -> Any:
        return g(x, 2, {"a": 3.0})[0]

    expected = 20 * np.cos(XS)
    np.testing.assert_allclose(jax.vmap(jax.grad(slope))(XS), expected, rtol=1e-6)
    total = jax.grad(lambda x: jax.vmap(slope)(x).sum())
    np.testing.assert_allclose(jax.jit(total)(XS), expected, rtol=1e-6)
    shared = jax.grad(lambda x: jax.vmap(lambda y: g(x, 2, {"a": y})[0])(XS).sum())
    np.testing.assert_allclose(shared(1.0), 60 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(slope))(1.0), -20 * np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.checkpoint(slope))(1.0), 20 * np.cos(1.0), rtol=1e-6)
    looped = jax.grad(lambda x: lax.scan(lambda c, _: (slope(c) - 3, None), x, None, length=2)[0])
    np.testing.assert_allclose(looped(0.0), 400.0, rtol=1e-6)
    chosen = jax.grad(lambda x: lax.cond(x > 0, slope, lambda x: x, x))
    np.testing.assert_allclose(jax.vmap(chosen)(XS), np.where(XS > 0, expected, 1), rtol=1e-6)


def test_references_beside_zeros() -> None:
    """The backward rule takes a reference among the residuals of the forward rule."""

    @effax.custom_vjp
    def stash(ref: Any, x: Any, unused: Any) -> Any:
        return x

    def forward(ref: Any, x: Any, unused: Any) -> Any:
        assert not unused.perturbed
        return x.value, ref.value

    def backward(ref: Any, ct: Any) -> Any:
        ref[...] += ct
        return None, ct, None

    stash.defvjp(forward, backward, symbolic_zeros=True)
    for wrap in (lambda f: f, jax.jit):
        ref = effax.new_ref(0.0)
        assert wrap(jax.grad(lambda x, r: stash(r, x, 1.0) * 3.0))(1.0, ref) == 3.0
        assert float(ref[...]) == 3.0


def test_a_rule_may_refuse_what_it_is_not_asked() -> None:
    """A rule is asked for nothing in advance."""

    @effax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def forward(x: Any, y: Any) -> Any:
        if y.perturbed:
            raise NotImplementedError("y")
        return f(x.value, y.value), y.value

    f.defvjp(forward, lambda y, ct: (y * ct, None), symbolic_zeros=True)
    assert jax.jit(f)(2.0, 3.0) == 6.0
    assert jax.jit(jax.grad(f))(2.0, 3.0) == 3.0
    for wrap in (lambda f: f, jax.jit):
        with pytest.raises(NotImplementedError, match="y"):
            wrap(jax.grad(f, 1))(2.0, 3.0)


def test_what_stands_for_zero() -> None:
    zero = SymbolicZero.from_primal_value(jnp.ones((2, 3)))
    assert (zero.shape, str(zero.dtype), zero.ndim, zero.size) == ((2, 3), "float32", 2, 6)
    assert str(zero) == "SymbolicZero(f32[2,3])"
    assert not zero.weak_type
    of_integer = zero_from_primal({"n": jnp.arange(3)}, symbolic_zeros=True)["n"]
    assert of_integer.dtype == effax.float0
    assert zero_from_primal(jnp.arange(3)).dtype == effax.float0
    assert np.all(np.asarray(zero_from_primal((XS,))[0]) == 0)
    with pytest.raises(IllTyped, match="CustomVJPPrimal"):
        custom_vjp_primal_tree_values((1.0,))


def with_rule(rule: Any) -> Any:
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvp(rule, symbolic_zeros=True)
    return f


WRONG = {
    "a zero of another shape": (
        lambda p, t: (p[0] * p[1], SymbolicZero.from_primal_value(XS)),
        "tangent returned by",
        "f32\\[3\\]",
    ),
    "another tree": (lambda p, t: (p[0], (t[0], t[1])), "structure", r"\*"),
    "another dtype": (lambda p, t: (p[0], jnp.int32(1)), "tangent returned by", "i32"),
    "no pair": (lambda p, t: p[0], "must return", "Traced"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
def test_wrong_rules(name: str, wrap: Any) -> None:
    rule, says, found = WRONG[name]
    with pytest.raises(BadRule, match=says) as caught:
        wrap(jax.grad(with_rule(rule)))(1.0, 2.0)
    assert isinstance(caught.value, TypeError)
    assert caught.value.found is not None
    assert re.search(found, caught.value.found)
