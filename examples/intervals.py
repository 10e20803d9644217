"""Define an interpreter that bounds the results of a function by interval arithmetic.

A program is data, so an interpreter with another meaning is short: here every variable is an
interval, and every primitive maps intervals to one that contains all of its results. Rules are a
dictionary from primitives; calls, branches and loops are interpreted; an equation without a rule is
an error. Bounds are rounded outward, so that they hold for the floats that a program computes: by
one ulp for arithmetic, by four for functions that NumPy computes to within four. Points where
the function is nan are ignored, and integers are assumed not to overflow.

Run it with ``python examples/intervals.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

import effax
import effax.numpy as jnp
from effax import Array
from effax.ir import Atom, Eqn, Jaxpr, Lit, NotApplicable, Primitive, Value, eqn_str, literal_value
from effax.ir import prims as p

EXACT_ROUNDS = 100
"""The number of iterations of a ``while`` after which bounds that still change are widened."""


class Interval(NamedTuple):
    """The set of arrays between ``low`` and ``high``, elementwise."""

    low: Value
    high: Value


Rule = Callable[[Primitive, Sequence[Interval]], Interval]


def outward(low: Value, high: Value, steps: int) -> Interval:
    """Round both bounds outward by ``steps`` floats; integers are exact."""
    if np.issubdtype(low.dtype, np.integer) or low.dtype == bool:
        return Interval(low, high)
    for _ in range(steps):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return Interval(low, high)


def hull(x: Interval, y: Interval) -> Interval:
    """Return the least interval that contains both."""
    return Interval(np.minimum(x.low, y.low), np.maximum(x.high, y.high))


def rising(steps: int, least: float = -np.inf) -> Rule:
    """Return the rule of a primitive that is increasing in each operand, above ``least``."""

    def rule(prim: Primitive, ins: Sequence[Interval]) -> Interval:
        ins = [x if least == -np.inf else Interval(*np.maximum(x, least)) for x in ins]
        return outward(_one(prim, [x.low for x in ins]), _one(prim, [x.high for x in ins]), steps)

    return rule


def add(x: Interval, y: Interval) -> Interval:
    """Return ``[a, b] + [c, d] = [a + c, b + d]``."""
    return outward(x.low + y.low, x.high + y.high, 1)


def neg(x: Interval) -> Interval:
    """Return ``-[a, b] = [-b, -a]``."""
    return Interval(-x.high, -x.low)


def mul(x: Interval, y: Interval) -> Interval:
    """Return the range of the products of bounds, where ``0 * inf = 0``."""
    zero = np.zeros((), x.low.dtype)
    products = [np.where((a == 0) | (b == 0), zero, a * b) for a in x for b in y]
    return outward(np.minimum.reduce(products), np.maximum.reduce(products), 1)


def inverse(y: Interval) -> Interval:
    """Return ``1/[c, d] = [1/d, 1/c]``, which is infinite if ``[c, d]`` contains zero."""
    around = ((y.low < 0) & (y.high > 0)) | ((y.low == 0) & (y.high == 0))
    low = np.where(around | (y.high == 0), -np.inf, 1 / y.high).astype(y.low.dtype)
    high = np.where(around | (y.low == 0), np.inf, 1 / y.low).astype(y.low.dtype)
    return outward(low, high, 1)


def even(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Apply a primitive that decreases up to zero and increases from there."""
    (x,) = ins
    ends = _one(prim, [x.low]), _one(prim, [x.high])
    low, high = outward(np.minimum(*ends), np.maximum(*ends), 0 if isinstance(prim, p.Abs) else 4)
    least = _one(prim, [np.zeros_like(x.low)])
    return Interval(np.where((x.low <= 0) & (x.high >= 0), least, low), high)


def power(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Apply ``x**n``: increasing for odd ``n``, an inverse for negative ``n``."""
    assert isinstance(prim, p.IntegerPow)
    if prim.y < 0:
        return inverse(power(p.IntegerPow(-prim.y), ins))
    return (rising(4) if prim.y % 2 else even)(prim, ins)


def wave(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Apply sine or cosine: the values at the bounds, unless an extremum is inside."""
    (x,) = ins
    low, high = x.low.astype(np.float64), x.high.astype(np.float64)
    f, crest = (np.cos, 0.0) if isinstance(prim, p.Cos) else (np.sin, np.pi / 2)
    slack = 1e-12 * (1 + np.maximum(abs(low), abs(high)))
    anywhere = ~(high - low < 2 * np.pi) | (slack > 0.01)

    def inside(first: float) -> Value:
        """Return whether ``first + 2·pi·k`` is inside, for some integer ``k``."""
        turns = (low - first - slack) / (2 * np.pi), (high - first + slack) / (2 * np.pi)
        return anywhere | (np.floor(turns[1]) >= np.ceil(turns[0]))

    least = np.where(inside(crest + np.pi), -1.0, np.minimum(f(low), f(high)))
    most = np.where(inside(crest), 1.0, np.maximum(f(low), f(high)))
    return outward(least.astype(x.low.dtype), most.astype(x.low.dtype), 4)


def total(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Sum along axes, rounding outward at each addition."""
    assert isinstance(prim, p.ReduceSum)
    (x,) = ins
    kept = [n for i, n in enumerate(x.low.shape) if i not in prim.axes]
    rows = [np.moveaxis(end, prim.axes, range(len(prim.axes))).reshape(-1, *kept) for end in x]
    zero = np.zeros(kept, x.low.dtype)
    return reduce(add, map(Interval, *rows), Interval(zero, zero))


def less(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Compare: ``low`` is whether it certainly holds, ``high`` whether it may hold."""
    x, y = ins if isinstance(prim, p.Lt | p.Le) else reversed(ins)
    compare = np.less if isinstance(prim, p.Lt | p.Gt) else np.less_equal
    return Interval(np.asarray(compare(x.high, y.low)), np.asarray(compare(x.low, y.high)))


def select(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Select a case, or the hull of both if the predicate is not known."""
    which, no, yes = ins
    both = hull(no, yes)
    ends = [
        np.where(which.low, y, np.where(which.high, e, n))
        for n, y, e in zip(no, yes, both, strict=True)
    ]
    return Interval(*ends)


RULES: Mapping[type[Primitive], Rule] = {
    **dict.fromkeys((p.Max, p.Min, p.ReduceMax, p.ReduceMin, p.StopGradient), rising(0)),
    **dict.fromkeys((p.BroadcastInDim, p.Reshape, p.Squeeze, p.ExpandDims, p.Transpose), rising(0)),
    p.ConvertElementType: rising(1),
    **dict.fromkeys((p.Exp, p.Tanh), rising(4)),
    p.Log: rising(4, least=0.0),
    p.Sqrt: rising(1, least=0.0),
    **dict.fromkeys((p.Sin, p.Cos), wave),
    **dict.fromkeys((p.Square, p.Abs), even),
    **dict.fromkeys((p.Lt, p.Le, p.Gt, p.Ge), less),
    p.SelectN: select,
    p.Add: lambda prim, ins: add(*ins),
    p.Neg: lambda prim, ins: neg(*ins),
    p.Sub: lambda prim, ins: add(ins[0], neg(ins[1])),
    p.Mul: lambda prim, ins: mul(*ins),
    p.Div: lambda prim, ins: mul(ins[0], inverse(ins[1])),
    p.IntegerPow: power,
    p.ReduceSum: total,
}

Rules = Mapping[type[Primitive], Rule]


def interpret(jaxpr: Jaxpr, args: Sequence[Interval], rules: Rules = RULES) -> list[Interval]:
    """Return intervals that contain the results for all arguments in ``args``.

    Raises:
        NotApplicable: an equation has no rule; the error has the equation.
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


def _apply(eqn: Eqn, ins: Sequence[Interval], rules: Rules) -> list[Interval]:
    prim, run = eqn.prim, partial(interpret, rules=rules)
    match prim:
        case p.Jit():
            return run(prim.jaxpr, ins)
        case p.Cond():
            first, last = (int(np.clip(end, 0, len(prim.branches) - 1)) for end in ins[0])
            found = [run(branch, ins[1:]) for branch in prim.branches[first : last + 1]]
            return [reduce(hull, outs) for outs in zip(*found, strict=True)]
        case p.Scan():
            return _scan(prim, ins, run)
        case p.While():
            return _while(prim, ins, run)
        case _:
            return [_rule(eqn, rules)(prim, ins)]


def _rule(eqn: Eqn, rules: Rules) -> Rule:
    prim = eqn.prim
    rule = rules.get(type(prim))
    if rule is None:
        where = None if eqn.source is None else str(eqn.source)
        what = f"intervals have no rule for {prim.name}"
        raise NotApplicable(what, equation=eqn_str(eqn), source=where)
    return rule


Run = Callable[[Jaxpr, Sequence[Interval]], list[Interval]]


def _scan(prim: p.Scan, ins: Sequence[Interval], run: Run) -> list[Interval]:
    consts, carry, xs = (list(part) for part in prim.split(ins))
    order = range(prim.length)[:: -1 if prim.reverse else 1]
    ys: dict[int, list[Interval]] = {}
    for i in order:
        outs = run(prim.jaxpr, [*consts, *carry, *[Interval(x.low[i], x.high[i]) for x in xs]])
        carry, ys[i] = outs[: prim.n_carry], outs[prim.n_carry :]
    stacked = zip(*[ys[i] for i in range(prim.length)], strict=True)
    return [*carry, *[Interval(*map(np.stack, zip(*rows, strict=True))) for rows in stacked]]


def _while(prim: p.While, ins: Sequence[Interval], run: Run) -> list[Interval]:
    """Return the hull of the carries with which the loop may end.

    Raises:
        NotApplicable: the loop does not end for any value.
    """
    consts, carry = ins[: prim.n_consts], list(ins[prim.n_consts :])
    ends: list[Interval] | None = None
    n = 0
    while True:
        (again,) = run(prim.cond, [*consts, *carry])
        if not again.low:
            ends = carry if ends is None else list(map(hull, ends, carry))
        if ends is not None and not again.high:
            return ends
        after = run(prim.body, [*consts, *carry])
        n += 1
        # Widening ends the fixpoint: each bound changes at most once more.
        if n > EXACT_ROUNDS:
            after = list(map(_widened, carry, after))
            if all(np.array_equal(x, y) for x, y in zip(carry, after, strict=True)):
                break
        carry = after
    if ends is None:
        raise NotApplicable("the loop does not end for any values in these intervals")
    return ends


def _widened(x: Interval, y: Interval) -> Interval:
    """Replace bounds that still change by the least or the greatest value of the dtype."""
    least, most = _all_numbers(x.low.dtype)
    return Interval(np.where(y.low < x.low, least, x.low), np.where(y.high > x.high, most, x.high))


def _all_numbers(dtype: np.dtype) -> Interval:
    if np.issubdtype(dtype, np.integer):
        return Interval(
            *[np.asarray(end, dtype) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
        )
    ends = (False, True) if dtype == np.bool_ else (-np.inf, np.inf)
    return Interval(*[np.asarray(end, dtype) for end in ends])


def _one(prim: Primitive, args: Sequence[Value]) -> Value:
    (out,) = prim.evaluate(*args)
    return np.asarray(out)


def bounds(fun: Callable[..., Array], *boxes: tuple[object, object]) -> Interval:
    """Return bounds on the result of ``fun`` for arguments within ``boxes``."""
    ends = [Interval(*[np.asarray(jnp.asarray(end)) for end in box]) for box in boxes]
    closed = effax.make_jaxpr(fun)(*[x.low for x in ends])
    consts = [Interval(np.asarray(c), np.asarray(c)) for c in closed.consts]
    with np.errstate(all="ignore"):
        (out,) = interpret(closed.jaxpr, [*consts, *ends])
    return out


def main() -> None:
    """Bound the output of a small network over an interval, and compare with samples."""
    rng = np.random.default_rng(0)
    w, v = jnp.asarray(rng.normal(size=(2, 4)).astype(np.float32))

    def network(x: Array) -> Array:
        return (v * jnp.tanh(w * x + 0.5)).sum()

    low, high = bounds(network, (-0.2, 0.3))
    found = [float(network(jnp.asarray(x))) for x in np.linspace(-0.2, 0.3, 100, dtype=np.float32)]
    print(f"bounds  {low:.3f} to {high:.3f}\nsamples {min(found):.3f} to {max(found):.3f}")


if __name__ == "__main__":
    main()
