"""Transposition of ``while``: only of one that hands its linear values through.

How often a ``while`` runs is known when it has run, and what it computed on the way is not kept,
so that there is nothing to run backward over.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.effects import Accum, Write
from effax.ir.errors import NotApplicable
from effax.ir.prims.control import While
from effax.ir.syntax import Atom
from effax.transforms.rulebook import Linear, RuleBuilder


def loop_transpose(
    b: RuleBuilder, prim: While, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    given: list[Atom | None] = [None] * len(ins)
    effects = (prim.cond.effects, prim.body.effects)
    for i, x in enumerate(ins):
        if not isinstance(x, Linear) or not x.wanted:
            continue
        if any(isinstance(e, Write | Accum) and e.ref == i for row in effects for e in row):
            raise _cannot(prim, i)
        if i >= prim.n_consts:
            j = i - prim.n_consts
            if prim.body.outs[j] != prim.body.binders[i]:
                raise _cannot(prim, i)
            given[i] = cts[j]
    return given


def _cannot(prim: While, i: int) -> NotApplicable:
    return NotApplicable(
        "a while loop cannot be differentiated in reverse: it does not keep what it computes, "
        "and how often it runs is not known before",
        expected="a loop of static length",
        found=f"a linear value in {prim.body.name_of(i)} of the loop",
        remedy="use `scan`, or `fori_loop` with static bounds; or differentiate forward (`jvp`)",
    )
