"""Steps of ``scan``."""

from __future__ import annotations

from math import prod
from typing import Final

from effax.ir.prims import Scan
from effax.ir.prims.scan import element_type
from effax.ir.syntax import Var
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
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
    results,
    variables,
)


def scan(g: ProgramBuilder, generate: Generate) -> None:
    if not g.choose.below(4):
        # A loop that counts iterations has neither scanned operands nor stacked results.
        counted(g, generate)
        return
    length, xs = _scanned(g)
    consts = [*references(g, lambda r: r not in xs), *arguments(g, 2)]
    carry = carried(g, lambda v: prod(v.type.shape) * length <= 2 * MAX_ELEMENTS)
    if g.choose.chance(20):
        carry = []
    ins = [*consts, *carry, *xs]
    types = [*(v.type for v in (*consts, *carry)), *(element_type(v.type) for v in xs)]
    inner = inside(g, types, variables(ins))
    fill(inner, generate, 3)
    flags = [g.is_linear(v) for v in carry]
    fed = [result(inner, array_of(v), flag) for v, flag in zip(carry, flags, strict=True)]
    ys = results(inner, 2, MAX_ELEMENTS // max(length, 1))
    flags += [inner.is_linear(v) for v in ys]
    body = inner.finish([*fed, *ys])
    prim = Scan(body, length, g.choose.chance(40), len(consts), len(carry))
    call(g, prim, ins, flags)


def counted(g: ProgramBuilder, generate: Generate) -> None:
    length = g.choose.pick((2, 1, 3, 0))
    consts, carry = arguments(g, 1), carried(g, lambda v: prod(v.type.shape) <= MAX_ELEMENTS)
    ins = [*consts, *carry]
    inner = inside(g, [v.type for v in ins], variables(ins))
    fill(inner, generate, 2)
    flags = [g.is_linear(v) for v in carry]
    body = inner.finish(
        [result(inner, array_of(v), flag) for v, flag in zip(carry, flags, strict=True)]
    )
    call(g, Scan(body, length, False, len(consts), len(carry)), ins, flags)


def _scanned(g: ProgramBuilder) -> tuple[int, list[Var]]:
    """A length, and arrays and references with that many elements along their leading axis."""
    first = g.maybe(lambda v: len(v.type.shape) > 0)
    if first is None or g.choose.chance(40):
        length, xs = g.choose.pick((2, 1, 3, 0, 1)), []
    else:
        length, xs = first.type.shape[0], [first]
        xs += arguments(g, 1, lambda v: v.type.shape[:1] == (length,))
    return length, xs + references(g, lambda r: r.type.shape[:1] == (length,))


STEPS: Final = Steps(nested={"scan": (6, scan)})
