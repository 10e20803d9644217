"""The trip counts of loops that count from a literal to a literal.

The condition compares a carry with a bound, and each iteration adds a literal to the carry::

    while[ cond={ lambda ; i:i32[] x:f32[]. let c:bool[] = lt i 10:i32[] in (c,) }
           body={ lambda ; i:i32[] x:f32[]. let j:i32[] = add i 1:i32[]; ... in (j, ...) }
         ] 0:i32[] x

runs the body 10 times. A carry or constant that the body does not change is a literal where its
operand is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from effax.ir.dtypes import int_bounds, is_integer
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import Add, Ge, Gt, Le, Lt, Ne, Sub
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var


class _Counter(NamedTuple):
    """A carry that starts at ``start`` and grows by ``step``."""

    start: int
    step: int


def trip_count(eqn: Eqn) -> int | None:
    """Return how often the regions of a loop with a predicate run; None if that is unknown."""
    predicates = [r for r in eqn.prim.regions() if r.is_predicate]
    bodies = [r for r in eqn.prim.regions() if not r.is_predicate]
    if len(predicates) != 1 or len(bodies) != 1:
        return None
    test = _comparison(predicates[0].jaxpr)
    if test is None:
        return None
    compare, *sides = test
    values = [_value(a, predicates[0], bodies[0], eqn.ins) for a in sides]
    dtype = sides[0].type.dtype
    match values:
        case [_Counter() as counter, int(bound)]:
            return _counted(compare, counter, bound, int_bounds(dtype))
        case [int(bound), _Counter() as counter]:
            return _counted(_MIRRORED[compare], counter, bound, int_bounds(dtype))
        case _:
            return None


def _comparison(cond: Jaxpr) -> tuple[type[Primitive], Atom, Atom] | None:
    """Return the comparison of two integers that is the result of a condition."""
    for eqn in cond.eqns:
        if eqn.outs == cond.outs:
            compare, dtype = type(eqn.prim), eqn.ins[0].type.dtype
            if compare in _MIRRORED and is_integer(dtype):
                return compare, eqn.ins[0], eqn.ins[1]
    return None


def _value(
    atom: Atom, predicate: Region, body: Region, ins: Sequence[Atom]
) -> _Counter | int | None:
    """Return a side of the comparison as a literal, or as a carry that counts."""
    if isinstance(atom, Lit):
        return int(atom.value.real)
    positions = {v.id: at for v, at in zip(predicate.jaxpr.binders, predicate.args, strict=True)}
    at = positions.get(atom.id)
    start = None if at is None else ins[at]
    if at is None or not isinstance(start, Lit):
        return None
    first, step = int(start.value.real), _step(body, at)
    if step is None:
        return None
    return _Counter(first, step) if step else first


def _step(body: Region, at: int) -> int | None:
    """Return what an iteration adds to the operand ``at``: 0 if it is no carry, or unchanged."""
    if at not in body.carry_to or at not in body.args:
        return 0
    before = body.jaxpr.binders[body.args.index(at)]
    after = body.jaxpr.outs[body.carry_to.index(at)]
    if after == before:
        return 0
    found = [eqn for eqn in body.jaxpr.eqns if after in eqn.outs]
    match found:
        case [Eqn(prim=Add(), ins=(Var() as x, Lit() as step))] if x == before:
            return int(step.value.real)
        case [Eqn(prim=Add(), ins=(Lit() as step, Var() as x))] if x == before:
            return int(step.value.real)
        case [Eqn(prim=Sub(), ins=(Var() as x, Lit() as step))] if x == before:
            return -int(step.value.real)
        case _:
            return None


def _counted(
    compare: type[Primitive], counter: _Counter, bound: int, limits: tuple[int, int]
) -> int | None:
    """Return the number of iterations; None where the counter overflows before the end."""
    trips = _TRIPS[compare](bound - counter.start, counter.step)
    if trips is None:
        return None
    return trips if limits[0] <= counter.start + trips * counter.step <= limits[1] else None


def _up_to(distance: int, step: int) -> int | None:
    """Return the iterations until a counter has moved at least ``distance``."""
    if distance <= 0:
        return 0
    return -(-distance // step) if step > 0 else None


def _exactly(distance: int, step: int) -> int | None:
    fits = distance % step == 0 and distance // step >= 0
    return distance // step if fits else None


_TRIPS: Final[Mapping[type[Primitive], Callable[[int, int], int | None]]] = {
    Lt: _up_to,
    Le: lambda distance, step: _up_to(distance + 1, step),
    Gt: lambda distance, step: _up_to(-distance, -step),
    Ge: lambda distance, step: _up_to(1 - distance, -step),
    Ne: _exactly,
}
_MIRRORED: Final[Mapping[type[Primitive], type[Primitive]]] = {
    Lt: Gt,
    Le: Ge,
    Gt: Lt,
    Ge: Le,
    Ne: Ne,
}
