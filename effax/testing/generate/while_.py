"""Steps of ``while``."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.dtypes import is_float
from effax.ir.indexing import whole
from effax.ir.prims import AddUpdate, BroadcastInDim, Get, ReduceSum, While
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import COUNTER
from effax.testing.generate import refs
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps
from effax.testing.generate.subjaxprs import (
    arguments,
    array_of,
    call,
    carried,
    fill,
    inside,
    references,
    result,
    variables,
)


def while_(g: ProgramBuilder, generate: Generate) -> None:
    consts = [*references(g), *arguments(g, 2)]
    carry = carried(g)
    types = [*(v.type for v in consts), COUNTER, *(v.type for v in carry)]
    ins = [*variables(consts), None, *variables(carry)]
    trips = g.choose.pick((2, 3, 4, 3, 1, 0))
    test, read = _condition(inside(g, types, ins, parts=True), len(consts), trips, generate)
    body = inside(g, types, ins, parts=True)
    count = body.b.binders[len(consts)]
    fill(body, generate, 3)
    if read is not None and g.choose.chance(80):
        _increase(body, body.b.binders[read])
    flags = [g.is_linear(v) for v in carry]
    fed = [result(body, array_of(v), flag) for v, flag in zip(carry, flags, strict=True)]
    count = body.one(p.Add(), count, lit(1, COUNTER))
    prim = While(test, body.finish([count, *fed]), len(consts))
    start: list[Atom] = [*consts, lit(0, COUNTER), *carry]
    call(g, prim, start, [False, *flags])


def _condition(
    g: ProgramBuilder, at: int, trips: int, generate: Generate
) -> tuple[Jaxpr, int | None]:
    """Return a condition: the counter is small, and sometimes another predicate.

    Return also the position of the reference on whose contents it depends, or None.
    """
    count = g.b.binders[at]
    if g.choose.chance(40):
        generate(g, 2)
    readable = [
        i
        for i, v in enumerate(g.b.binders)
        if v in g.refs and is_float(v.type.dtype) and v.id not in g.sums and not g.is_linear(v)
    ]
    read: int | None = None
    also: Atom | None = None
    if readable and g.choose.chance(65):
        read = g.choose.pick(readable)
        also = _is_small(g, g.b.binders[read])
    elif g.choose.chance(40):
        also = g.predicate()
    more = g.one(p.Lt(), count, lit(trips, COUNTER))
    if also is not None:
        more = g.one(p.And(), more, also)
    refs.consume_rest(g)
    return g.finish([more]), read


def _is_small(g: ProgramBuilder, ref: Var) -> Atom:
    """Return whether the contents of a reference have a small sum."""
    shape = ref.type.shape
    x = g.one(Get(whole(shape)), ref)
    total = g.one(ReduceSum(tuple(range(len(shape)))), x) if shape else x
    return g.one(p.Lt(), total, g.threshold(total.type.dtype))


def _increase(g: ProgramBuilder, ref: Var) -> None:
    """Append an accumulation into the reference."""
    number: Atom = g.literal(ref.type.dtype, 2.0)
    if ref.type.shape:
        number = g.one(BroadcastInDim(ref.type.shape, ()), number)
    g.emit(AddUpdate(whole(ref.type.shape)), ref, number)


STEPS: Final = Steps(nested={"while": (4, while_)})
