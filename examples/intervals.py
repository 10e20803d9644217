"""An interpreter of one's own: bounds on what a function gives, by interval arithmetic.

A program is data, so other meanings for it are short to write: here every variable stands for an
interval, and every primitive maps intervals to one that has all its results. Rules are a
dictionary by primitive; calls are entered, and what has no rule is refused with its equation. The
ends of intervals are rounded as all floats are: bounds hold up to rounding.

Run it with ``python examples/intervals.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import effax
import effax.numpy as jnp
from effax.ir.errors import NotApplicable
from effax.ir.evaluate import literal_value
from effax.ir.pretty import eqn_str
from effax.ir.primitive import Primitive, Value
from effax.ir.prims.control import Jit
from effax.ir.prims.convert import ConvertElementType
from effax.ir.prims.elementwise import (
    Add,
    Cos,
    Div,
    Exp,
    IntegerPow,
    Log,
    Max,
    Min,
    Mul,
    Neg,
    Sin,
    Sqrt,
    Square,
    Sub,
    Tanh,
)
from effax.ir.prims.reduce import ReduceSum
from effax.ir.prims.shape import BroadcastInDim, Reshape, Squeeze, Transpose
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit


class Interval(NamedTuple):
    """All arrays between two, elementwise."""

    low: Value
    high: Value


Rule = Callable[[Primitive, Sequence[Interval]], Interval]


def rising(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Of a primitive that grows with every argument."""
    return Interval(_one(prim, [x.low for x in ins]), _one(prim, [x.high for x in ins]))


def add(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """``[a, b] + [c, d] = [a + c, b + d]``."""
    return rising(prim, ins)


def neg(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """``-[a, b] = [-b, -a]``."""
    (x,) = ins
    return Interval(-x.high, -x.low)


def sub(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """``[a, b] - [c, d] = [a - d, b - c]``."""
    x, y = ins
    return Interval(x.low - y.high, x.high - y.low)


def mul(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """The least and the greatest of the products of ends."""
    x, y = ins
    products = [a * b for a in x for b in y]
    return Interval(np.minimum.reduce(products), np.maximum.reduce(products))


def div(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Of a divisor on one side of zero, the product with its inverse; else nothing is known."""
    x, y = ins
    around = (y.low <= 0) & (y.high >= 0)
    inside = Interval(np.where(around, 1, 1 / y.high), np.where(around, 1, 1 / y.low))
    found = mul(prim, [x, inside])
    return Interval(np.where(around, -np.inf, found.low), np.where(around, np.inf, found.high))


def even(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Of a primitive that falls up to zero and grows from there."""
    (x,) = ins
    ends = _one(prim, [x.low]), _one(prim, [x.high])
    holds_zero = (x.low <= 0) & (x.high >= 0)
    least = np.where(holds_zero, _one(prim, [np.zeros_like(x.low)]), np.minimum(*ends))
    return Interval(least, np.maximum(*ends))


def power(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """``x**n``: rising for odd ``n``; of an inverse, as a division."""
    assert isinstance(prim, IntegerPow)
    if prim.y < 0:
        one = np.ones_like(ins[0].low)
        return div(prim, [Interval(one, one), power(IntegerPow(-prim.y), ins)])
    return (rising if prim.y % 2 else even)(prim, ins)


def sine(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Between the values at the ends, unless a crest or a trough is inside."""
    (x,) = ins
    shift = np.pi / 2 if isinstance(prim, Cos) else 0.0
    low, high = x.low + shift, x.high + shift
    ends = np.sin(low), np.sin(high)

    def between(first: float) -> Value:
        """Whether ``first + 2·pi·k`` is inside, for a whole ``k``."""
        turn = 2 * np.pi
        return np.floor((high - first) / turn) >= np.ceil((low - first) / turn)

    return Interval(
        np.where(between(-np.pi / 2), -1.0, np.minimum(*ends)).astype(low.dtype),
        np.where(between(np.pi / 2), 1.0, np.maximum(*ends)).astype(low.dtype),
    )


RULES: Mapping[type[Primitive], Rule] = {
    **dict.fromkeys((Add, Exp, Log, Sqrt, Tanh, Max, Min, ReduceSum), rising),
    **dict.fromkeys((ConvertElementType, BroadcastInDim, Reshape, Squeeze, Transpose), rising),
    **dict.fromkeys((Sin, Cos), sine),
    Neg: neg,
    Sub: sub,
    Mul: mul,
    Div: div,
    Square: even,
    IntegerPow: power,
}


def interpret(
    jaxpr: Jaxpr, args: Sequence[Interval], rules: Mapping[type[Primitive], Rule] = RULES
) -> list[Interval]:
    """Intervals that have all results for all arguments in theirs.

    Raises:
        NotApplicable: there is no rule for an equation; it says which.
    """
    env: dict[int, Interval] = {v.id: x for v, x in zip(jaxpr.binders, args, strict=True)}

    def value(atom: Atom) -> Interval:
        if isinstance(atom, Lit):
            return Interval(literal_value(atom), literal_value(atom))
        return env[atom.id]

    for eqn in jaxpr.eqns:
        outs = _apply(eqn, [value(a) for a in eqn.ins], rules)
        env.update(zip([v.id for v in eqn.outs], outs, strict=True))
    return [value(a) for a in jaxpr.outs]


def _apply(
    eqn: Eqn, ins: Sequence[Interval], rules: Mapping[type[Primitive], Rule]
) -> list[Interval]:
    if isinstance(eqn.prim, Jit):
        return interpret(eqn.prim.jaxpr, ins, rules)
    rule = rules.get(type(eqn.prim))
    if rule is None:
        where = None if eqn.source is None else str(eqn.source)
        raise NotApplicable(
            f"intervals have no rule for {eqn.prim.name}", equation=eqn_str(eqn), source=where
        )
    return [rule(eqn.prim, ins)]


def _one(prim: Primitive, args: Sequence[Value]) -> Value:
    (out,) = prim.evaluate(*args)
    return np.asarray(out)


def bounds(
    fun: Callable[..., Any], *boxes: tuple[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The least and the greatest that ``fun`` may give, for arguments between these."""
    ends = [tuple(np.asarray(jnp.asarray(end)) for end in box) for box in boxes]
    closed = effax.make_jaxpr(fun)(*[low for low, _ in ends])
    consts = [Interval(np.asarray(c), np.asarray(c)) for c in closed.consts]
    with np.errstate(all="ignore"):
        (out,) = interpret(closed.jaxpr, [*consts, *[Interval(*box) for box in ends]])
    return out


def main() -> None:
    """Bound a small network's output over a box of inputs, and look at samples."""
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, 4)).astype(np.float32)

    def network(x: Any) -> Any:
        return (jnp.tanh(w * x + 0.5) * v).sum()

    low, high = bounds(network, (-0.2, 0.3))
    found = [float(network(x)) for x in np.linspace(-0.2, 0.3, 100, dtype=np.float32)]
    print(f"bounds  {low:.3f} to {high:.3f}\nsamples {min(found):.3f} to {max(found):.3f}")


if __name__ == "__main__":
    main()
