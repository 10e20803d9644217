"""Rules are traced when a derivative or a batch rule is asked for, once for types."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.custom_batching import custom_vmap
from effax.custom_derivatives import SymbolicZero, linear_call, zero_from_primal
from effax.ir.analysis.check import check
from effax.ir.errors import BadRule, LeakedTracer, TransformError
from effax.ir.recursion import postorder
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.transforms.jvp import jvp

jax: Any = effax
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
X = jnp.array([1.0, 2.0])


def squares(bwd: Any, **options: Any) -> Any:
    """Return the sum of squares, whose backward rule is ``bwd(f, x, ct)``."""
    f = jax.custom_vjp(lambda x: jnp.sum(x * x))
    if options:
        f.defvjp(lambda x: (f(x.value), x.value), lambda x, ct: bwd(f, x, ct), **options)
    else:
        f.defvjp(lambda x: (f(x), x), lambda x, ct: bwd(f, x, ct))
    return f


MAKING: dict[str, tuple[Any, Any]] = {
    "a NumPy number": (lambda f, x, ct: (2 * ct * x * np.float32(1),), [2.0, 4.0]),
    "an array": (lambda f, x, ct: (ct * jnp.array([3.0, 4.0]),), [3.0, 4.0]),
    "a large array": (lambda f, x, ct: (ct * jnp.arange(500.0)[1:3],), [1.0, 2.0]),
    "booleans": (lambda f, x, ct: (jnp.where(jnp.array([True, False]), ct, 0.0),), [1.0, 0.0]),
    "an index": (lambda f, x, ct: (ct * x[jnp.array([1, 0])],), [2.0, 1.0]),
    "a call of itself": (lambda f, x, ct: (ct * f(x * jnp.array([1.0, 0.0])) * x,), [1.0, 2.0]),
    "None": (lambda f, x, ct: (None,), [0.0, 0.0]),
}


@pytest.mark.slow
@WRAPS
@pytest.mark.parametrize("name", MAKING)
def test_a_rule_may_make_arrays_beside_calls_of_its_function(name: str, wrap: Any) -> None:
    bwd, slope = MAKING[name]
    f = squares(bwd)
    np.testing.assert_allclose(wrap(jax.grad(f))(X), slope)
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(f)))(jnp.stack([X, X])), [slope, slope])
    wrap(jax.grad(lambda x: jax.grad(f)(x).sum()))(X)


@WRAPS
def test_a_rule_may_make_symbolic_zeros(wrap: Any) -> None:
    f = squares(lambda f, x, ct: (zero_from_primal(x, symbolic_zeros=True),), symbolic_zeros=True)
    np.testing.assert_allclose(wrap(jax.grad(f))(X), [0.0, 0.0])


@pytest.mark.slow
@WRAPS
def test_implicit_differentiation_by_a_solver_in_its_own_backward_rule(wrap: Any) -> None:
    @partial(jax.custom_vjp, nondiff_argnums=0)
    def fixed_point(f: Any, a: Any, guess: Any) -> Any:
        def differs(xs: Any) -> Any:
            return jnp.abs(xs[0] - xs[1]) > 1e-6

        return lax.while_loop(differs, lambda xs: (xs[1], f(a, xs[1])), (guess, f(a, guess)))[1]

    def forward(f: Any, a: Any, guess: Any) -> Any:
        x = fixed_point(f, a, guess)
        return x, (a, x)

    def backward(f: Any, res: Any, ct: Any) -> Any:
        a, x = res
        _, pull = jax.vjp(lambda a: f(a, x), a)
        return *pull(fixed_point(partial(iteration, f), (a, x, ct), ct)), jnp.zeros_like(x)

    def iteration(f: Any, packed: Any, u: Any) -> Any:
        a, x, ct = packed
        return ct + jax.vjp(lambda x: f(a, x), x)[1](u)[0]

    fixed_point.defvjp(forward, backward)

    def root(a: Any) -> Any:
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    np.testing.assert_allclose(wrap(root)(2.0), np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(wrap(jax.grad(root))(2.0), 0.35355338, rtol=1e-5)
    np.testing.assert_allclose(wrap(jax.grad(jax.grad(root)))(2.0), -0.0883883, rtol=1e-4)
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(root)))(X), 0.5 / np.sqrt(X), rtol=1e-5)


def fails(*_: Any) -> Any:
    raise RuntimeError("a rule that is not needed")


def failing() -> dict[str, Any]:
    """Return functions with rules that raise, which compute ``2x``."""
    pushed, pulled = jax.custom_jvp(lambda x: x * 2), jax.custom_vjp(lambda x: x * 2)
    every = jax.custom_rules(lambda x: x * 2)
    pushed.defjvp(fails)
    pulled.defvjp(fails, fails)
    every.defjvp(fails)
    every.defvjp(fails, fails)
    batched = custom_vmap(lambda x: x * 2)
    batched.def_vmap(fails)
    return {
        "jvp": pushed,
        "vjp": pulled,
        "both": every,
        "linear_call": lambda x: linear_call(lambda _, x: x * 2, fails, (), x),
        "root": lambda x: lax.custom_root(lambda y: y - 2 * x, x, lambda f, y: y - f(y), fails),
        "solve": lambda x: lax.custom_linear_solve(
            lambda y: y / 2, x, lambda _, b: b * 2, transpose_solve=fails
        ),
        "vmap": batched,
    }


@pytest.mark.slow
@WRAPS
@pytest.mark.parametrize("kind", failing())
def test_a_rule_that_raises_does_so_where_it_is_needed(kind: str, wrap: Any) -> None:
    f = failing()[kind]
    assert float(wrap(f)(3.0)) == 6.0
    assert float(wrap(lambda x: lax.cond(x > 0, f, f, x))(3.0)) == 6.0
    assert float(wrap(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])(3.0)) == 12.0
    if kind == "vmap":
        with pytest.raises(RuntimeError, match="not needed"):
            wrap(jax.vmap(f))(X)
        return
    np.testing.assert_allclose(wrap(jax.vmap(f))(X), 2 * np.asarray(X))
    with pytest.raises(RuntimeError, match="not needed"):
        wrap(jax.grad(f))(3.0)


def test_only_the_rule_that_is_needed_is_traced() -> None:
    f = jax.custom_rules(lambda x: x * 2)
    f.defjvp(lambda p, t: (p[0] * 2, t[0] * 20))
    f.def_vmap(fails)
    assert float(jax.jvp(f, (1.0,), (1.0,))[1]) == 20.0
    with pytest.raises(RuntimeError, match="not needed"):
        jax.vmap(f)(X)


def tower(kind: str, levels: int) -> tuple[Any, list[int]]:
    """Return nested functions whose rules differentiate the next one, and counts of traces."""
    counts = [0, 0]

    def level(inner: Any) -> Any:
        def fun(x: Any) -> Any:
            counts[0] += 1
            return inner(x)

        def pushed(p: Any, t: Any) -> Any:
            counts[1] += 1
            return jax.jvp(inner, p, t)

        def forward(x: Any) -> Any:
            counts[1] += 1
            return jax.vjp(inner, x)

        f = jax.custom_jvp(fun) if kind == "jvp" else jax.custom_vjp(fun)
        if kind == "jvp":
            f.defjvp(pushed)
        else:
            f.defvjp(forward, lambda pull, ct: pull(ct))
        return f

    f: Any = jnp.sin
    for _ in range(levels):
        f = level(f)
    return f, counts


def equations(jaxpr: Jaxpr) -> int:
    return sum(len(inner.eqns) for inner in postorder(jaxpr))


@pytest.mark.slow
@WRAPS
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_towers_are_traced_in_linear_time(kind: str, wrap: Any) -> None:
    for levels in (4, 16):
        f, counts = tower(kind, levels)
        assert float(wrap(jax.grad(f))(0.3)) == pytest.approx(np.cos(0.3), rel=1e-5)
        assert counts == [levels, levels]
        assert equations(effax.make_jaxpr(jax.grad(f))(0.3).jaxpr) <= 8 * levels


@pytest.mark.slow
@WRAPS
def test_rules_that_differentiate_each_other(wrap: Any) -> None:
    counts = [0]
    f, g = jax.custom_vjp(jnp.sin), jax.custom_vjp(lambda x: -jnp.cos(x))

    def rule_of_f(x: Any) -> Any:
        counts[0] += 1
        return f(x), x

    f.defvjp(rule_of_f, lambda x, ct: (-g(x + 0 * ct) * ct,))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (f(x) * ct,))
    h = f
    for k in range(1, 6):
        h = jax.grad(h)
        assert float(wrap(h)(0.3)) == pytest.approx(np.sin(0.3 + k * np.pi / 2), rel=1e-5)
    assert counts[0] <= 5 * 5


@WRAPS
def test_a_rule_that_needs_the_derivative_that_it_defines_is_refused(wrap: Any) -> None:
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda p, t: jax.jvp(f, p, t))
    with pytest.raises(TransformError, match="needs the derivative that it defines"):
        wrap(jax.grad(f))(0.3)


@WRAPS
def test_python_values_among_residuals_stay_python_values(wrap: Any) -> None:
    f = jax.custom_vjp(lambda x, flag: x.sum() * 3)

    def forward(x: Any, flag: Any) -> Any:
        assert flag is True
        return x.sum() * 3, {"shape": x.shape, "axes": [0, -1], "by": "name", "none": None, "x": x}

    def backward(flag: Any, res: Any, ct: Any) -> Any:
        assert res["shape"] == (2,)
        assert isinstance(res["axes"][1], int)
        assert (res["by"], res["none"], flag) == ("name", None, True)
        scale = 3 if res["by"] == "name" else 0
        return (jnp.broadcast_to(ct * scale, res["shape"]) + 0 * res["x"].sum(res["axes"][0]),)

    f = partial(jax.custom_vjp, nondiff_argnums=1)(lambda x, flag: x.sum() * 3)
    f.defvjp(forward, backward)
    g = jax.grad(lambda x: f(x, True))
    np.testing.assert_allclose(wrap(g)(X), [3.0, 3.0])
    np.testing.assert_allclose(wrap(jax.vmap(g))(jnp.stack([X, X])), np.full((2, 2), 3.0))
    np.testing.assert_allclose(wrap(jax.jit(jax.checkpoint(g)))(X), [3.0, 3.0])
    _, pull = jax.jit(lambda x: jax.vjp(lambda x: f(x, True), x))(X)
    np.testing.assert_allclose(pull(1.0)[0], [3.0, 3.0])


@WRAPS
def test_cotangents_of_none_are_zero(wrap: Any) -> None:
    f = jax.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    assert float(wrap(jax.grad(f, 1))(2.0, 3.0)) == 0.0
    assert float(wrap(jax.grad(f, 0))(2.0, 3.0)) == 3.0
    assert [float(g) for g in wrap(jax.grad(f, (0, 1)))(2.0, 3.0)] == [3.0, 0.0]
    assert float(wrap(jax.grad(lambda y: f(2.0, y) + y * y))(3.0)) == 6.0
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(f, 1), (None, 0)))(2.0, X), [0.0, 0.0])
    none = jax.custom_vjp(lambda x: x * 2)
    none.defvjp(lambda x: (x * 2, None), lambda _, ct: (None,))
    assert float(wrap(jax.grad(none))(1.0)) == 0.0
    assert float(wrap(lambda x: jax.vjp(none, x)[1](1.0)[0])(1.0)) == 0.0


@WRAPS
def test_both_rules_with_references_inside(wrap: Any) -> None:
    def doubled(t: Any) -> Any:
        r = effax.new_ref(t)
        r[...] += t
        return r[...]

    f = jax.custom_rules(doubled)
    f.defjvp(lambda p, t: (f(*p), 10 * doubled(t[0])))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (100 * doubled(ct),))
    assert [float(x) for x in wrap(lambda x: jax.jvp(f, (x,), (1.0,)))(3.0)] == [6.0, 20.0]
    assert float(wrap(lambda x: jax.linearize(f, x)[1](1.0))(3.0)) == 20.0
    assert float(wrap(jax.grad(f))(3.0)) == 200.0
    np.testing.assert_allclose(wrap(jax.vmap(jax.jacfwd(f)))(X), [20.0, 20.0])


@pytest.mark.slow
@WRAPS
def test_rules_close_over_values_that_the_function_does_not_use(wrap: Any) -> None:
    def loss(x: Any, w: Any) -> Any:
        f = jax.custom_vjp(jnp.sin)
        scale = {"w": [w * 2]}
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * scale["w"][0],))
        return f(x)

    assert float(wrap(jax.grad(loss))(1.0, 3.0)) == 6.0
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(loss), (None, 0)))(1.0, X), [2.0, 4.0])
    with pytest.raises(TransformError, match="closes over a differentiated value"):
        wrap(jax.grad(loss, (0, 1)))(1.0, 3.0)
    # Differentiated values in the closure which no rule uses are no error.
    assert float(wrap(jax.grad(lambda x, w: loss(x, 2.0) + w * 0 * loss(x, 2.0), 1))(1.0, 2.0)) == 0


def test_a_rule_cannot_reach_values_that_nothing_refers_to() -> None:
    class Holder:
        __slots__ = ("w",)

    def loss(x: Any, w: Any) -> Any:
        holder: Any = Holder()
        holder.w = w
        f = jax.custom_jvp(jnp.sin)
        f.defjvp(lambda p, t: (f(*p), t[0] * holder.w))
        return f(x)

    with pytest.raises(BadRule, match="closes over a value that is not known"):
        jax.jit(lambda x, w: jax.grad(lambda x: loss(x, w))(x))(1.0, 3.0)
    with pytest.raises(LeakedTracer, match="which has ended"):
        jax.grad(loss)(1.0, jnp.float32(3.0))


def test_rules_are_traced_once_for_types() -> None:
    traces: list[str] = []
    f: Any = jax.custom_jvp(jnp.sin)

    def rule(p: Any, t: Any) -> Any:
        traces.append(str(p[0].dtype))
        return f(*p), jnp.cos(p[0]) * t[0]

    f.defjvp(rule)
    g = jax.jit(jax.grad(lambda x: f(x) + f(2 * x) + f(x * x)))
    g(jnp.float32(1.0))
    assert traces == ["float32"]
    g(jnp.float16(1.0))
    assert traces == ["float32", "float16"]
    jax.grad(f)(jnp.float32(2.0))
    assert len(traces) <= 3


def test_a_rule_is_traced_again_where_it_refers_to_other_values() -> None:
    scale = 2.0
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], scale * t[0]))
    assert float(jax.grad(f)(1.0)) == 2.0
    scale = 3.0
    assert float(jax.grad(f)(1.0)) == 3.0
    f.defjvp(lambda p, t: (p[0], 7.0 * t[0]))
    assert float(jax.grad(f)(1.0)) == 7.0


def test_programs_with_rules_are_values() -> None:
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * jnp.array([5.0, 6.0]),))
    first, second = (effax.make_jaxpr(f)(X).jaxpr for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert "rule=@lambda" in str(first)
    assert parse(str(first), references=references(first)) == first
    other = jax.custom_vjp(lambda x: x * 2)
    other.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    assert effax.make_jaxpr(other)(X).jaxpr != first
    # Arrays that rules make are constants by reference.
    pulled = effax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(X).jaxpr
    assert parse(str(pulled), references=references(pulled)) == pulled
    check(pulled).unwrap()
    assert jvp(first, [True]).unwrap() == jvp(second, [True]).unwrap()


@WRAPS
def test_symbolic_zeros_in_rules_that_call_their_function(wrap: Any) -> None:
    f = jax.custom_jvp(lambda x, y: x * y)

    def rule(p: Any, t: Any) -> Any:
        parts = [d * o for d, o in zip(t, p[::-1], strict=True) if not isinstance(d, SymbolicZero)]
        return f(*p), 10 * sum(parts) + 0 * f(*p)

    f.defjvp(rule, symbolic_zeros=True)
    assert float(wrap(jax.grad(f))(2.0, 3.0)) == 30.0
    assert [float(g) for g in wrap(jax.grad(f, (0, 1)))(2.0, 3.0)] == [30.0, 20.0]
    assert float(wrap(jax.grad(jax.grad(f), 1))(2.0, 3.0)) == 10.0
