"""The number of iterations of a ``while``."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import Builder, lit
from effax.ir.prims import Add, Lt, Max, Sub, While
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.ir.syntax import Atom, Lit, Var
from effax.ir.types import COUNTER
from effax.transforms.rules.while_.partial_eval import counted


def trip_count(b: Builder, loop: While, args: Sequence[Atom]) -> Atom:
    """Return the number of iterations: ``end - start`` of a counting loop, else a counted loop."""
    bounds = _counts_up(loop, args)
    if bounds is not None:
        return b(Max(), b(Sub(), bounds[1], bounds[0]), lit(0, COUNTER))
    n = loop.n_consts
    made = counted(loop.cond, loop.body, n)
    return b.emit(made, [*args[:n], lit(0, COUNTER), *args[n:]])[0]


def _counts_up(loop: While, args: Sequence[Atom]) -> tuple[Atom, Atom] | None:
    """Return the start and end of a loop ``while i < end: i += 1`` in which only ``i`` changes."""
    if len(loop.cond.eqns) != 1 or len(loop.body.eqns) != 1:
        return None
    test, step = loop.cond.eqns[0], loop.body.eqns[0]
    if not isinstance(test.prim, Lt) or loop.cond.outs != test.outs:
        return None
    index, end = test.ins
    if not isinstance(index, Var) or not (fits(index.type, COUNTER) and fits(end.type, COUNTER)):
        return None
    at = loop.cond.binders.index(index)
    same = [*loop.body.binders[loop.n_consts :]]
    if at < loop.n_consts or not isinstance(step.prim, Add):
        return None
    if step.ins != (loop.body.binders[at], lit(1, index.type)):
        return None
    same[at - loop.n_consts] = step.outs[0]
    if loop.body.outs != tuple(same):
        return None
    return args[at], end if isinstance(end, Lit) else args[loop.cond.binders.index(end)]
