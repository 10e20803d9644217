"""An interpreter of one's own: bounds on what a function gives, by interval arithmetic.

A program is data, so other meanings for it are short to write: here every variable stands for an
interval, and every primitive maps intervals to one that has all its results. Rules are a
dictionary by primitive; calls, branches and loops are entered, and what has no rule is refused
with its equation. Ends are rounded outward, so that bounds hold for the floats that a program
computes: by one step for arithmetic, by four for what NumPy computes to within four. They say
nothing of points where the function is no number, and integers are taken not to overflow.

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
"""After so many iterations of a ``while`` ends that still move go to infinity."""


class Interval(NamedTuple):
    """All arrays between two, elementwise."""

    low: Value
    high: Value


Rule = Callable[[Primitive, Sequence[Interval]], Interval]


def outward(low: Value, high: Value, steps: int) -> Interval:
    """The ends, so many floats further apart."""
    if np.issubdtype(low.dtype, np.integer) or low.dtype == bool:
        return Interval(low, high)
    for _ in range(steps):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return Interval(low, high)


def hull(x: Interval, y: Interval) -> Interval:
    """The least interval that has both."""
    return Interval(np.minimum(x.low, y.low), np.maximum(x.high, y.high))


def rising(steps: int, least: float = -np.inf) -> Rule:
    """Of a primitive that grows with every argument, where these are at ``least`` or more."""

    def rule(prim: Primitive, ins: Sequence[Interval]) -> Interval:
        ins = [x if least == -np.inf else Interval(*np.maximum(x, least)) for x in ins]
        return outward(_one(prim, [x.low for x in ins]), _one(prim, [x.high for x in ins]), steps)

    return rule


def add(x: Interval, y: Interval) -> Interval:
    """``[a, b] + [c, d] = [a + c, b + d]``."""
    return outward(x.low + y.low, x.high + y.high, 1)


def neg(x: Interval) -> Interval:
    """``-[a, b] = [-b, -a]``."""
    return Interval(-x.high, -x.low)


def mul(x: Interval, y: Interval) -> Interval:
    """The least and the greatest of the products of ends; zero times infinity is zero here."""
    zero = np.zeros((), x.low.dtype)
    products = [np.where((a == 0) | (b == 0), zero, a * b) for a in x for b in y]
    return outward(np.minimum.reduce(products), np.maximum.reduce(products), 1)


def inverse(y: Interval) -> Interval:
    """``1/[c, d] = [1/d, 1/c]`` on one side of zero; an end at zero goes to infinity."""
    around = ((y.low < 0) & (y.high > 0)) | ((y.low == 0) & (y.high == 0))
    low = np.where(around | (y.high == 0), -np.inf, 1 / y.high).astype(y.low.dtype)
    high = np.where(around | (y.low == 0), np.inf, 1 / y.low).astype(y.low.dtype)
    return outward(low, high, 1)


def even(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Of a primitive that falls up to zero and grows from there."""
    (x,) = ins
    ends = _one(prim, [x.low]), _one(prim, [x.high])
    low, high = outward(np.minimum(*ends), np.maximum(*ends), 0 if isinstance(prim, p.Abs) else 4)
    least = _one(prim, [np.zeros_like(x.low)])
    return Interval(np.where((x.low <= 0) & (x.high >= 0), least, low), high)


def power(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """``x**n``: rising for odd ``n``; of a negative one, an inverse."""
    assert isinstance(prim, p.IntegerPow)
    if prim.y < 0:
        return inverse(power(p.IntegerPow(-prim.y), ins))
    return (rising(4) if prim.y % 2 else even)(prim, ins)


def wave(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Of sine and cosine: the values at the ends, unless a crest or a trough is inside."""
    (x,) = ins
    low, high = x.low.astype(np.float64), x.high.astype(np.float64)
    f, crest = (np.cos, 0.0) if isinstance(prim, p.Cos) else (np.sin, np.pi / 2)
    slack = 1e-12 * (1 + np.maximum(abs(low), abs(high)))
    anywhere = ~(high - low < 2 * np.pi) | (slack > 0.01)

    def inside(first: float) -> Value:
        """Whether ``first + 2·pi·k`` is inside, for a whole ``k``."""
        turns = (low - first - slack) / (2 * np.pi), (high - first + slack) / (2 * np.pi)
        return anywhere | (np.floor(turns[1]) >= np.ceil(turns[0]))

    least = np.where(inside(crest + np.pi), -1.0, np.minimum(f(low), f(high)))
    most = np.where(inside(crest), 1.0, np.maximum(f(low), f(high)))
    return outward(least.astype(x.low.dtype), most.astype(x.low.dtype), 4)


def total(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """A sum, rounded outward at each addition."""
    assert isinstance(prim, p.ReduceSum)
    (x,) = ins
    kept = [n for i, n in enumerate(x.low.shape) if i not in prim.axes]
    rows = [np.moveaxis(end, prim.axes, range(len(prim.axes))).reshape(-1, *kept) for end in x]
    zero = np.zeros(kept, x.low.dtype)
    return reduce(add, map(Interval, *rows), Interval(zero, zero))


def less(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """Surely, and perhaps."""
    x, y = ins if isinstance(prim, p.Lt | p.Le) else reversed(ins)
    compare = np.less if isinstance(prim, p.Lt | p.Gt) else np.less_equal
    return Interval(np.asarray(compare(x.high, y.low)), np.asarray(compare(x.low, y.high)))


def select(prim: Primitive, ins: Sequence[Interval]) -> Interval:
    """The case, or the hull of both where it may be either."""
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
    """The hull of the states in which the loop may end. Raises NotApplicable: it never does."""
    consts, carry = ins[: prim.n_consts], list(ins[prim.n_consts :])
    ends: list[Interval] | None = None
    n = 0
    while True:
        (goes_on,) = run(prim.cond, [*consts, *carry])
        if not goes_on.low:
            ends = carry if ends is None else list(map(hull, ends, carry))
        if ends is not None and not goes_on.high:
            return ends
        after = run(prim.body, [*consts, *carry])
        n += 1
        if n > EXACT_ROUNDS:
            after = list(map(_widened, carry, after))
            if all(np.array_equal(x, y) for x, y in zip(carry, after, strict=True)):
                break
        carry = after
    if ends is None:
        raise NotApplicable("the loop does not end for any values in these intervals")
    return ends


def _widened(x: Interval, y: Interval) -> Interval:
    """Ends that still move go as far as they can."""
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
    """The least and the greatest that ``fun`` may give, for arguments between these."""
    ends = [Interval(*[np.asarray(jnp.asarray(end)) for end in box]) for box in boxes]
    closed = effax.make_jaxpr(fun)(*[x.low for x in ends])
    consts = [Interval(np.asarray(c), np.asarray(c)) for c in closed.consts]
    with np.errstate(all="ignore"):
        (out,) = interpret(closed.jaxpr, [*consts, *ends])
    return out


def main() -> None:
    """Bound a small network's output over a box of inputs, and look at samples."""
    rng = np.random.default_rng(0)
    w, v = jnp.asarray(rng.normal(size=(2, 4)).astype(np.float32))

    def network(x: Array) -> Array:
        return (v * jnp.tanh(w * x + 0.5)).sum()

    low, high = bounds(network, (-0.2, 0.3))
    found = [float(network(jnp.asarray(x))) for x in np.linspace(-0.2, 0.3, 100, dtype=np.float32)]
    print(f"bounds  {low:.3f} to {high:.3f}\nsamples {min(found):.3f} to {max(found):.3f}")


if __name__ == "__main__":
    main()
