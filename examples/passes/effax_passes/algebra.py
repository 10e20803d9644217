"""Rewrite by algebra as long as the program becomes cheaper.

The rules are true of real numbers. In floating point they change rounding, and some are defined
where the left side overflows; ``RULES`` has the tolerance of each.

>>> import effax, effax.numpy as jnp
>>> from effax.passes import unwrap
>>> def weights(x: effax.Array) -> effax.Array:
...     return jnp.exp(x) / jnp.sum(jnp.exp(x), axis=-1, keepdims=True)
>>> before = effax.make_jaxpr(weights)(jnp.ones((2, 3))).jaxpr
>>> print(*[eqn.prim.name for eqn in before.eqns])
exp exp reduce_sum expand_dims broadcast_in_dim div
>>> print(unwrap(algebra(before)))
{ lambda ; a:f32[2,3]. let b:f32[2,3] = softmax[axes=(1,)] a in (b,) }
>>> price(before), price(unwrap(algebra(before)))
(188.0, 96.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import effax
from effax import Array, extend
from effax.ir import Jaxpr
from effax.ir.prims import (
    Add,
    BroadcastInDim,
    Cos,
    Div,
    DotGeneral,
    Exp,
    ExpandDims,
    Log,
    Log1p,
    Logistic,
    Mul,
    Neg,
    ReduceSum,
    Rsqrt,
    Sin,
    Sqrt,
    Square,
    Sub,
    Tanh,
)
from effax.passes import Guarantee, Pass
from effax.transforms import (
    FLOATS,
    App,
    Hole,
    Match,
    Number,
    RewriteRule,
    Right,
    Sample,
    rewriting,
)


@dataclass(frozen=True, slots=True)
class Softmax(extend.FunctionPrimitive):
    """``exp(x) / sum(exp(x))`` along axes, as one kernel."""

    axes: tuple[int, ...]
    name: ClassVar[str] = "softmax"

    def function(self, x: Array) -> Array:
        return effax.nn.softmax(x, axis=self.axes)

    # A maximum, a difference, a sum and a quotient, of operands that are read once.
    def work(self, ins: Sequence[extend.Type], outs: Sequence[extend.Type]) -> extend.Work:
        n = outs[0].size
        return extend.moved(ins, outs, flops=4 * n, transcendentals=n)


def price(jaxpr: Jaxpr, /) -> float:
    """Return operations and bytes, a transcendental function as ten operations."""
    cost = effax.cost(jaxpr)
    return cost.flops + 10 * cost.transcendentals + cost.bytes_accessed / 4


def _softmax(match: Match) -> App:
    summed = match.prims["sum"]
    assert isinstance(summed, ReduceSum)
    return App(Softmax(summed.axes), x)


x, y, z = Hole("x"), Hole("y"), Hole("z")
one = Number(1)
total = App(ReduceSum, App(Exp, x), name="sum")
spread = App(BroadcastInDim, App(ExpandDims, total))
DOT = DotGeneral((((1,), (0,)), ((), ())))
"""The product of matrices, or of a matrix and a vector."""


def rule(name: str, left: App, right: Right, *samples: Sample) -> RewriteRule:
    """Return a rule of real numbers."""
    return RewriteRule(name, left, right, FLOATS, samples=samples)


def _sample() -> Sample:
    each = App(
        BroadcastInDim((2, 3), (0, 1)), App(ExpandDims((1,)), App(ReduceSum((1,)), App(Exp, x)))
    )
    return Sample(App(Div, App(Exp, x), each), shape=(2, 3))


up, down = App(Exp, x), App(Exp, App(Neg, x))

RULES = (
    rule(
        "x y + x z = x (y + z)",
        App(Add, App(Mul, x, y), App(Mul, x, z)),
        App(Mul, x, App(Add, y, z)),
    ),
    rule(
        "exp(x) exp(y) = exp(x + y)", App(Mul, App(Exp, x), App(Exp, y)), App(Exp, App(Add, x, y))
    ),
    rule("log(exp(x)) = x", App(Log, App(Exp, x)), x),
    rule("exp(log(x)) = x", App(Exp, App(Log, x)), x),
    rule("sqrt(x)² = x", App(Square, App(Sqrt, x)), x),
    rule("sqrt(x) sqrt(x) = x", App(Mul, App(Sqrt, x), App(Sqrt, x)), x),
    rule(
        "sin(x)² + cos(x)² = 1", App(Add, App(Square, App(Sin, x)), App(Square, App(Cos, x))), one
    ),
    rule("log(1 + x) = log1p(x)", App(Log, App(Add, x, one)), App(Log1p, x)),
    rule(
        "1 / (1 + exp(-x)) = logistic(x)",
        App(Div, one, App(Add, App(Exp, App(Neg, x)), one)),
        App(Logistic, x),
    ),
    rule(
        "(exp(x) - exp(-x)) / (exp(x) + exp(-x)) = tanh(x)",
        App(Div, App(Sub, up, down), App(Add, up, down)),
        App(Tanh, x),
    ),
    rule("x / sqrt(y) = x rsqrt(y)", App(Div, x, App(Sqrt, y)), App(Mul, x, App(Rsqrt, y))),
    rule(
        "exp(x) / exp(y) = exp(x - y)", App(Div, App(Exp, x), App(Exp, y)), App(Exp, App(Sub, x, y))
    ),
    rule("exp(x) / sum(exp(x)) = softmax(x)", App(Div, App(Exp, x), spread), _softmax, _sample()),
    rule(
        "(x y) z = x (y z)",
        App(DOT, App(DOT, x, y), z),
        App(DOT, x, App(DOT, y, z)),
        Sample(App(DOT, App(DOT, x, y), z), shape=(3, 3)),
    ),
)

algebra = Pass("algebra", rewriting(RULES, cost=price), (Guarantee.SAME_WHERE_FINITE,))
