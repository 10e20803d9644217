"""Steps of contractions."""

from __future__ import annotations

from math import prod
from typing import Final

from effax.ir import prims as p
from effax.ir.syntax import Atom, Var
from effax.ir.types import ArrayType
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.step import Steps


def dot(g: ProgramBuilder) -> None:
    x = g.operand(1)
    shape = x.type.shape

    def fits(v: Var) -> bool:
        return (
            v.type.dtype == x.type.dtype
            and v.id not in g.linear
            and any(n == m for n in shape for m in v.type.shape)
        )

    y: Atom | None = g.maybe(fits)
    if y is None:
        y = g.value(_plain(x)) if g.is_linear(x) else x
    if prod(shape) * prod(y.type.shape) > MAX_ELEMENTS * 12:
        g.one(p.Neg(), x)
        return
    numbers = _dimension_numbers(g, shape, y.type.shape)
    ((contracted, _), _) = numbers
    count = prod(shape[a] for a in contracted)
    magnitude = g.magnitude(x) * g.magnitude(y) * max(count, 1)
    if g.choose.chance(40):
        (lc, rc), (lb, rb) = numbers
        numbers, x, y = ((rc, lc), (rb, lb)), y, x  # type: ignore[assignment]  # both are atoms here
    result = p.DotGeneral(numbers).typing(x.type, y.type).outs[0]
    if prod(result.shape) > MAX_ELEMENTS:
        g.one(p.Neg(), x)
        return
    g.squashed(g.one(p.DotGeneral(numbers), x, y, magnitude=magnitude))


def _plain(x: Var) -> ArrayType:
    assert isinstance(x.type, ArrayType)
    return x.type.strong()


def _dimension_numbers(
    g: ProgramBuilder, left: tuple[int, ...], right: tuple[int, ...]
) -> p.DotDimensionNumbers:
    """Return one contracted pair of axes mostly, sometimes a batch pair too, or none."""
    contract: list[tuple[int, int]] = []
    batch: list[tuple[int, int]] = []
    for pairs, percent in ((contract, 90), (batch, 40)):
        taken_left = {a for a, _ in contract}
        taken_right = {b for _, b in contract}
        free = [
            (a, b)
            for a, n in enumerate(left)
            for b, m in enumerate(right)
            if n == m and a not in taken_left and b not in taken_right
        ]
        if free and not g.choose.chance(100 - percent):
            pairs.append(g.choose.pick(free))
    lc, rc = (tuple(pair[i] for pair in contract) for i in (0, 1))
    lb, rb = (tuple(pair[i] for pair in batch) for i in (0, 1))
    return ((lc, rc), (lb, rb))


STEPS: Final = Steps(linear=((3, dot),))
