"""Steps of ``cond``."""

from __future__ import annotations

from typing import Final

from effax.ir.build import lit
from effax.ir.prims import Cond
from effax.ir.syntax import Atom
from effax.ir.types import COUNTER, ArrayType
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps
from effax.testing.generate.subjaxprs import (
    arguments,
    array_of,
    call,
    fill,
    inside,
    references,
    result,
    results,
)


def cond(g: ProgramBuilder, generate: Generate) -> None:
    which: Atom
    if g.choose.chance(50):
        which, count = g.predicate(), 2
    else:
        found = g.maybe(lambda v: v.type is COUNTER)
        which, count = found or lit(g.choose.below(4), COUNTER), g.choose.pick((2, 3, 1))
    ins = [*references(g), *arguments(g, 3)]
    types = [v.type for v in ins]
    first = inside(g, types, ins, parts=True)
    fill(first, generate, 2)
    outs = [v for v in results(first, 2) if isinstance(v.type, ArrayType)]
    flags = [first.is_linear(v) for v in outs]
    branches = [first.finish(outs)]
    for _ in range(count - 1):
        branch = inside(g, types, ins, parts=True)
        fill(branch, generate, 2)
        made = [result(branch, array_of(v), flag) for v, flag in zip(outs, flags, strict=True)]
        branches.append(branch.finish(made))
    call(g, Cond(tuple(branches)), [which, *ins], flags)


STEPS: Final = Steps(nested={"cond": (4, cond)})
