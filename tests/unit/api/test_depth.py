"""Functions in functions in functions, as users write them, at the limits of Python as it is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import effax
from effax import lax
from effax import numpy as jnp
from effax.arrays.array import Array
from effax.ir import recursion
from effax.ir.errors import LoweringError, TooDeep
from effax.lowering import xla
from tests.unit.transforms.nests import equations

pytestmark = pytest.mark.slow

Fun = Callable[[Array], Array]
LEVELS = 1000
ONE = jnp.asarray(1.0, "float32")


def nested(wrap: Callable[[Fun], Fun], levels: int, f: Fun = jnp.sin) -> Fun:
    """Each level adds one, after what is inside."""

    def level(inner: Fun) -> Fun:
        return wrap(lambda x: inner(x) + 1.0)

    for _ in range(levels):
        f = level(f)
    return f


def looped(f: Fun) -> Fun:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def branched(f: Fun) -> Fun:
    return lambda x: lax.cond(x > -9.0, f, jnp.cos, x)


def test_a_thousand_compiled_functions_run() -> None:
    assert nested(effax.jit, LEVELS)(ONE) == pytest.approx(LEVELS + np.sin(1.0))


def test_a_thousand_compiled_functions_are_differentiated() -> None:
    f = nested(effax.jit, LEVELS)
    assert effax.grad(f)(ONE) == pytest.approx(np.cos(1.0))
    assert effax.jit(effax.grad(f))(ONE) == pytest.approx(np.cos(1.0))


def test_a_thousand_compiled_functions_are_batched() -> None:
    x = jnp.arange(3, dtype="float32")
    np.testing.assert_allclose(
        effax.vmap(nested(effax.jit, LEVELS))(x), LEVELS + np.sin(x), rtol=1e-5
    )


@pytest.mark.parametrize("wrap", [looped, branched, effax.checkpoint])
def test_loops_and_branches_at_many_levels(wrap: Callable[[Fun], Fun]) -> None:
    f = nested(wrap, 70)
    assert f(ONE) == pytest.approx(70 + np.sin(1.0))
    assert effax.grad(f)(ONE) == pytest.approx(np.cos(1.0))


def test_custom_rules_at_many_levels() -> None:
    def ruled(f: Fun) -> Fun:
        g = effax.custom_vjp(f)
        g.defvjp(lambda x: (g(x), x), lambda x, t: (2.0 * t * x,))
        return g

    f = nested(ruled, 100)
    assert f(3.0 * ONE) == pytest.approx(100 + np.sin(3.0))
    assert effax.grad(f)(3.0 * ONE) == pytest.approx(6.0)


def test_a_function_is_traced_once_for_its_call_and_its_rules() -> None:
    traced = []

    def ruled(f: Fun) -> Fun:
        def counted(x: Array) -> Array:
            traced.append(1)
            return f(x)

        g = effax.custom_jvp(counted)
        g.defjvp(lambda p, t: (g(*p), t[0]))
        return g

    effax.make_jaxpr(nested(ruled, 30))(ONE)
    assert len(traced) == 30


def test_six_gradients_of_each_other() -> None:
    f: Callable[..., Array] = jnp.sin
    for _ in range(6):
        f = effax.grad(f)
    assert f(0.7) == pytest.approx(-np.sin(0.7), rel=1e-5)
    compiled: Callable[..., Array] = jnp.sin
    for _ in range(6):
        compiled = effax.jit(effax.grad(compiled))
    assert compiled(0.7) == pytest.approx(-np.sin(0.7), rel=1e-5)


def test_the_size_of_nested_gradients() -> None:
    """Each order of the derivative of exp(exp(x)) costs about twice the previous one."""
    sizes = []
    f: Callable[..., Array] = lambda x: jnp.exp(jnp.exp(x))  # noqa: E731
    for _ in range(6):
        f = effax.grad(effax.jit(f))
        sizes.append(equations(effax.make_jaxpr(f)(0.5).jaxpr))
    assert sizes[-1] < 1500
    assert all(b <= 4 * a for a, b in pairwise(sizes))


def test_batched_gradient_of_a_loop_of_a_branch_of_custom_rules() -> None:
    @effax.custom_vjp
    def scaled(x: Array) -> Array:
        return x * 2.0

    scaled.defvjp(lambda x: (scaled(x), None), lambda _, t: (3.0 * t,))

    def f(x: Array) -> Array:
        def body(c: Array, _: None) -> tuple[Array, None]:
            return lax.cond(c > 4.0, lambda c: c, scaled, c), None

        return lax.scan(body, x, None, length=3)[0]

    x = jnp.array([0.25, 1.0, 3.0, 5.0], "float32")
    expected = np.array([27.0, 27.0, 3.0, 1.0])
    np.testing.assert_allclose(effax.vmap(effax.grad(f))(x), expected)
    compiled = effax.jit(effax.vmap(effax.jit(effax.grad(effax.jit(f)))))
    np.testing.assert_allclose(compiled(x), expected)


def test_a_gradient_of_ten_thousand_equations() -> None:
    def f(x: Array) -> Array:
        for _ in range(5000):
            x = jnp.sin(x) * 1.0001
        return x

    program = effax.make_jaxpr(effax.grad(f))(ONE)
    assert 20_000 <= equations(program.jaxpr) <= 41_000


def test_a_function_that_calls_itself_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "STACKS", 4)

    @effax.jit
    def f(x: Array) -> Array:
        return f(x)

    with pytest.raises(TooDeep, match="let the recursion end"):
        f(ONE)


def test_what_xla_cannot_take_is_refused() -> None:
    f = nested(looped, xla.max_nesting() + 1)
    with pytest.raises(LoweringError, match="too deeply for XLA"):
        effax.jit(f)(ONE)


def test_a_deeply_nested_error_has_no_other_context() -> None:
    def wrong(x: effax.Array) -> effax.Array:
        raise ZeroDivisionError("mine")

    nested = effax.jit(lambda x: lax.scan(lambda c, _: (effax.jit(wrong)(c), None), x, None, 2))
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        nested(1.0)
    assert caught.value.__context__ is None
