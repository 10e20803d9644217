"""Python's own `if`, `while` and `for` on known values, and the errors on unknown ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import ConcretizationError

X = 2.5


def f(x: Any) -> Any:
    """Every kind of question that Python asks of a number."""
    y = x
    while y < 10:
        y = y * x if y > 3 and x > 0 else y + 1.5 * x
    for _ in range(int(x)):
        y = jnp.sin(y) + x
    return y * [1.0, 2.0][jnp.argmax(jnp.stack([y, x]))] if bool(y) else float(x)


def same(x: Any) -> Any:
    """The branch that ``f`` takes at X, without control flow."""
    y = x + 1.5 * x
    y = y * x
    for _ in range(2):
        y = jnp.sin(y) + x
    return y


SLOPE, CURVE = float(effax.grad(same)(X)), float(effax.grad(effax.grad(same))(X))
AS = jnp.arange(3.0)

WAYS: dict[str, tuple[Callable[[], Any], Any]] = {
    "alone": (lambda: f(X), same(X)),
    "grad": (lambda: effax.grad(f)(X), SLOPE),
    "value_and_grad": (lambda: effax.value_and_grad(f)(X)[1], SLOPE),
    "jvp": (lambda: effax.jvp(f, (X,), (1.0,))[1], SLOPE),
    "vjp": (lambda: effax.vjp(f, X)[1](1.0)[0], SLOPE),
    "linearize": (lambda: effax.linearize(f, X)[1](1.0), SLOPE),
    "jacfwd": (lambda: effax.jacfwd(f)(X), SLOPE),
    "jacrev": (lambda: effax.jacrev(f)(X), SLOPE),
    "grad of grad": (lambda: effax.grad(effax.grad(f))(X), CURVE),
    "hessian": (lambda: effax.hessian(f)(X), CURVE),
    "jvp of grad": (lambda: effax.jvp(effax.grad(f), (X,), (1.0,))[1], CURVE),
    "grad of jvp": (lambda: effax.grad(lambda x: effax.jvp(f, (x,), (1.0,))[1])(X), CURVE),
    "linearize of vjp": (
        lambda: effax.linearize(lambda x: effax.vjp(f, x)[1](1.0)[0], X)[1](1.0),
        CURVE,
    ),
    "vmap, of an unbatched value": (
        lambda: effax.vmap(lambda a, x: a * f(x), (0, None))(AS, X),
        AS * same(X),
    ),
    "vmap, of what it closes over": (lambda: effax.vmap(lambda a: a * f(X))(AS), AS * same(X)),
    "grad of vmap": (
        lambda: effax.grad(lambda x: effax.vmap(lambda a: a * f(x))(AS).sum())(X),
        3 * SLOPE,
    ),
    "vmap of grad": (
        lambda: effax.vmap(lambda a: effax.grad(lambda x: a * f(x))(X))(AS),
        AS * SLOPE,
    ),
    "vmap of jvp of grad": (
        lambda: effax.vmap(lambda a: a * effax.jvp(effax.grad(f), (X,), (1.0,))[1])(AS),
        AS * CURVE,
    ),
    "values of two derivatives": (
        lambda: effax.grad(lambda x: effax.grad(lambda y: y * x if x > y else y * y)(1.0) * x)(X),
        2 * X,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_values_are_known(way: str) -> None:
    call, wanted = WAYS[way]
    np.testing.assert_allclose(call(), wanted, rtol=1e-4)


def test_what_a_reference_holds_is_known() -> None:
    def doubled_until_big(x: Any) -> Any:
        r = effax.new_ref(x)
        while r[...] < 10:
            r[...] = r[...] * x
        return effax.freeze(r)

    np.testing.assert_allclose(effax.grad(doubled_until_big)(X), 3 * X**2, rtol=1e-5)
    np.testing.assert_allclose(effax.hessian(doubled_until_big)(X), 6 * X, rtol=1e-5)


def test_loops_of_the_library_may_stand_beside_pythons() -> None:
    def mixed(x: Any) -> Any:
        y = lax.while_loop(lambda v: v < 5.0, lambda v: v * x, x)
        while y < 50:
            y = y * x
        return y if y > 60 else -y

    np.testing.assert_allclose(effax.grad(mixed)(X), 5 * X**4, rtol=1e-5)


def asks(x: Any) -> Any:
    if x > 1:
        return x * 2
    return x


LINE = inspect.getsourcelines(asks)[1] + 1

UNKNOWN: dict[str, tuple[Callable[[], Any], str, str]] = {
    "jit": (lambda: effax.jit(asks)(X), "jit(asks)", "depends on x"),
    "grad of jit": (lambda: effax.grad(effax.jit(asks))(X), "jit(asks)", "depends on x"),
    "jit of grad": (lambda: effax.jit(effax.grad(asks))(X), "grad(asks)", "depends on x"),
    "jit of vmap": (
        lambda: effax.jit(lambda y: effax.vmap(lambda a: a * asks(y))(AS))(X),
        "vmap",
        "y",
    ),
    "vmap": (lambda: effax.vmap(asks)(AS), "vmap(asks)", "depends on x"),
    "vmap of grad": (lambda: effax.vmap(effax.grad(asks))(AS), "grad(asks)", "depends on x"),
    "scan": (
        lambda: lax.scan(lambda c, _: (asks(c), None), X, None, 2),
        "the body of scan",
        "init",
    ),
    "while": (
        lambda: lax.while_loop(lambda c: asks(c) < 9, lambda c: c + 1, X),
        "while_loop",
        "init_val",
    ),
    "cond": (lambda: lax.cond(True, asks, asks, X), "of cond", r"operands[0]"),
    "checkpoint": (lambda: effax.checkpoint(asks)(X), "checkpoint(asks)", "depends on x"),
}


@pytest.mark.parametrize("where", UNKNOWN)
def test_an_error_has_the_line_and_a_remedy(where: str) -> None:
    call, label, depends = UNKNOWN[where]
    with pytest.raises(ConcretizationError, match="is not known while") as caught:
        call()
    text = str(caught.value)
    assert label in text
    assert depends in text
    assert f"{__file__}:{LINE} (asks)" in text
    for remedy in ("lax.cond", "lax.while_loop", "numpy.where", "static"):
        assert remedy in text
    # Nothing is left of the trace: the same is asked again, where it is known.
    assert float(effax.grad(asks)(X)) == 2.0


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "a position": lambda x: [1, 2, 3, 4][x.astype("int32")],
    "range": lambda x: len(range(x.astype("int32"))),
    "NumPy": np.sin,
    "item": lambda x: x.item(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered_or_refused(question: str) -> None:
    ask, x = QUESTIONS[question], 3.0
    seen: list[Any] = []

    def asked(y: Any) -> Any:
        seen.append(ask(y * 1))
        return y * 2

    effax.grad(asked)(x)
    assert seen == [ask(jnp.asarray(x))]
    with pytest.raises(ConcretizationError, match="is not known while"):
        effax.jit(asked)(x)
