"""Errors of user-defined rules name the rule and its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import extend
from effax.extend import Typing
from effax.ir.errors import (
    BadArgument,
    BadRule,
    ConcretizationError,
    EffaxError,
    IllTyped,
    ParseError,
)
from effax.ir.text.json import from_json, to_json
from effax.ir.text.parser import parse

jax: Any = effax
X = jnp.ones(3)
Rule = Callable[..., Any]


class Same(extend.ArrayPrimitive):
    """The identity, as a base of invalid primitives."""

    __slots__ = ()
    name: ClassVar[str] = "same"

    def typing(self, *ins: Any) -> Typing:
        (x,) = ins
        return Typing((x,))

    def evaluate(self, *ins: Any) -> Any:
        return ins

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return primals, tangents

    def transpose(self, ins: Any, cts: Any) -> Any:
        return cts

    def batch(self, ins: Any, batched: Any, size: int) -> Any:
        return ins, batched

    def lower(self, w: Any, ins: Any, /) -> Any:
        return ins


def same(**methods: Rule) -> Any:
    made: Any = type("Other", (Same,), {"__slots__": (), **methods})
    return dataclass(frozen=True)(made)()


def forward(prim: Any) -> Any:
    return jax.jvp(lambda x: prim.bind(x)[0], (X,), (X,))


def batched(prim: Any) -> Any:
    return jax.vmap(lambda x: prim.bind(x)[0])(X)


@pytest.mark.parametrize(
    ("prim", "use", "says"),
    [
        (
            same(jvp=lambda self, p, t: None),
            forward,
            r"the jvp rule of same does not return a pair",
        ),
        (
            same(jvp=lambda self, p, t: t[0]),
            forward,
            r"of same does not return a pair(.|\n)*f32\[3\]",
        ),
        (
            same(jvp=lambda self, p, t: (p[0], t[0])),
            forward,
            r"the jvp rule of same: results are not a list(.|\n)*f32\[3\]",
        ),
        (
            same(jvp=lambda self, p, t: (p, [t[0] and t[0]])),
            forward,
            r"the jvp rule of same: only an array of one element",
        ),
        (
            same(jvp=lambda self, p, t: (p, [np.sin(t[0])])),
            forward,
            r"(.|\n)*the jvp rule of same(.|\n)*effax\.numpy",
        ),
        (
            same(jvp=lambda self, p, t: {"j": 1}["k"]),
            forward,
            r"the jvp rule of same raises KeyError: 'k'\n *(.|\n)*test_blame.py",
        ),
        (
            same(batch=lambda self, ins, batched, size: (ins, [0])),
            batched,
            r"the batch rule of same returns a flag that is not a boolean",
        ),
        (
            same(batch=lambda self, ins, batched, size: (ins[0], batched)),
            batched,
            r"the batch rule of same: results are not a list",
        ),
        (
            same(transpose=lambda self, ins, cts: cts[0]),
            lambda p: jax.linear_transpose(lambda x: p.bind(x)[0], X)(X),
            r"the transpose rule of same: cotangents are not a list",
        ),
        (
            same(lower=lambda self, w, ins: extend.program(w, lambda x: 1 / 0, ins, "same")),
            lambda p: jax.jit(lambda x: p.bind(x)[0])(X),
            r"the program that same is lowered as raises ZeroDivisionError",
        ),
        (
            same(typing=lambda self, x, y: Typing((x,))),
            lambda p: p.bind(X),
            r"same does not take these arguments: its typing raises TypeError",
        ),
        (
            same(typing=lambda self, x: x),
            lambda p: p.bind(X),
            r"the typing of same does not return a `Typ",
        ),
        (Same, lambda p: Listed([1]).bind(X), r"a field of listed is not hashable"),
    ],
)
def test_a_wrong_rule_is_named(prim: Any, use: Rule, says: str) -> None:
    with pytest.raises(EffaxError, match=says):
        use(prim)


@dataclass(frozen=True, slots=True)
class Listed(Same):
    sizes: list[int]
    name: ClassVar[str] = "listed"


@dataclass(frozen=True, slots=True)
class Mine(Same):
    name: ClassVar[str] = "mine"


def test_the_parser_explains_how_to_pass_user_defined_primitives() -> None:
    jaxpr = jax.make_jaxpr(lambda x: Mine().bind(x)[0])(X).jaxpr
    with pytest.raises(ParseError, match=r"parse\(text, registry\(Mine\)\)"):
        parse(str(jaxpr))
    with pytest.raises(BadArgument, match=r"from_json\(text, registry\(Mine\)\)"):
        from_json(to_json(jaxpr))
    with pytest.raises(BadArgument, match="pass the class, not an instance"):
        extend.registry(Mine())  # type: ignore[arg-type]  # it is about that
    known = extend.registry(Mine)
    assert parse(str(jaxpr), known) == jaxpr == from_json(to_json(jaxpr), known)


@pytest.mark.parametrize(
    "wrong",
    [
        np.sin,
        np.linalg.norm,
        np.asarray,
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.maximum(x, 0),
        lambda x: np.concatenate([x, x]),
    ],
)
def test_numpy_on_a_tracer_names_effax_numpy(wrong: Rule) -> None:
    for transform in (jax.jit, lambda f: jax.jit(jax.vmap(f))):
        with pytest.raises(ConcretizationError, match=r"remedy: +use the functions of `effax\.num"):
            transform(wrong)(jnp.ones((2, 3)))


def test_math_on_a_tracer_names_effax_numpy() -> None:
    with pytest.raises(ConcretizationError, match=r"`effax\.numpy` in the place of `math`"):
        jax.jit(float)(1.0)


@pytest.mark.slow
def test_numpys_reductions_call_the_methods() -> None:
    for f in (np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.std, np.var):
        np.testing.assert_allclose(jax.jit(f)(X), f(np.ones(3)))
        np.testing.assert_allclose(f(X), f(np.ones(3)))
    with pytest.raises(EffaxError, match="out"):
        np.sum(X, out=np.zeros(()))


def test_the_wrong_number_of_arguments_is_ill_typed() -> None:
    with pytest.raises(IllTyped, match=r"mine does not take these arguments"):
        Mine().bind(X, X)


def _late(self: Any, primals: Any, tangents: Any) -> Any:
    return primals, [jnp.zeros((0,)).max()]


def _few(self: Any, *args: Any) -> Any:
    return [], []


def _other(self: Any, primals: Any, tangents: Any) -> Any:
    return primals, [jnp.zeros(4)]


def _flags(self: Any, ins: Any, batched: Any, size: int) -> Any:
    return ins, [0]


def _alone(self: Any, primals: Any) -> Any:
    return primals


def _closed_over(self: Any, primals: Any, tangents: Any) -> Any:
    return primals, [tangents[0] * LARGE[:3]]


LARGE = jnp.arange(5000.0)


@pytest.mark.parametrize(
    ("prim", "use", "rule", "line"),
    [
        (same(jvp=_late), forward, _late, 1),
        (same(jvp=_few), forward, _few, 0),
        (same(jvp=_other), forward, _other, 0),
        (same(jvp=_alone), forward, _alone, 0),
        (same(jvp=_closed_over), forward, _closed_over, 0),
        (same(batch=_flags), batched, _flags, 0),
        (same(batch=_few), batched, _few, 0),
        (same(batch=_late), batched, _late, 0),
    ],
)
def test_an_error_of_a_rule_has_its_line(prim: Any, use: Rule, rule: Rule, line: int) -> None:
    code = rule.__code__
    with pytest.raises(BadRule) as caught:
        use(prim)
    where = f"{code.co_filename}:{code.co_firstlineno + line} ({code.co_qualname})"
    assert caught.value.source == where, caught.value


class PartialEvalJaxprs(extend.FunctionPrimitive):
    """A base of invalid functions."""

    __slots__ = ()
    name: ClassVar[str] = "partial"


def _none(self: Any, x: Any) -> Any:
    return None


def _dict(self: Any, x: Any) -> Any:
    return {"a": x}


def _closed(self: Any, x: Any) -> Any:
    return x + LARGE.sum()


def _text(self: Any, x: Any) -> Any:
    return [x, "a"]


@pytest.mark.parametrize("function", [_none, _dict, _text, _closed])
def test_an_error_of_a_function_has_its_line(function: Rule) -> None:
    made: Any = type("Wrong", (PartialEvalJaxprs,), {"__slots__": (), "function": function})
    with pytest.raises(BadRule) as caught:
        dataclass(frozen=True)(made)().bind(X)
    code = function.__code__
    assert str(caught.value.source).startswith(f"{code.co_filename}:{code.co_firstlineno}")
