"""Random indexers, and the steps that read and update arrays through them."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.ir import prims
from effax.ir.dtypes import is_float, is_integer
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span, indexed_shape
from effax.ir.prims import Iota
from effax.ir.prims import index as p
from effax.ir.syntax import Atom, Var
from effax.ir.types import ArrayType, Shape
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.shape import part_like
from effax.testing.generate.step import Steps


def indexer(g: ProgramBuilder, shape: Shape) -> tuple[Indexer, list[Atom]]:
    """Return an indexer for an array of the shape, and its operands."""
    dims: list[Dim] = []
    operands: list[Atom] = []
    picked: list[Shape] = []
    for n in shape:
        dim, operand = _dim(g, n, picked)
        dims.append(dim)
        if operand is not None:
            operands.append(operand)
            if isinstance(dim, Pick):
                picked.append(operand.type.shape)
    mode = Mode.DROP if picked and g.choose.chance(40) else Mode.CLIP
    return Indexer(tuple(dims), mode), operands


def _dim(g: ProgramBuilder, n: int, picked: list[Shape]) -> tuple[Dim, Atom | None]:
    kind = g.choose.below(10) if n else 0
    match kind:
        case 3 | 4:
            return Pick(g.choose.below(n)), None
        case 5:
            return _static_span(g, n), None
        case 6:
            size = 1 + g.choose.below(min(n, 2))
            step = g.choose.pick((1, 1, -1))
            return Span(None, size, step), g.integer()
        case 7 | 8 | 9:
            return Pick(None, kind == 9), _positions(g, picked)
        case 2:
            return Pick(None), g.integer()
        case _:
            return Span(0, n), None


def _static_span(g: ProgramBuilder, n: int) -> Span:
    step = g.choose.pick((1, 2, -1, -2))
    start = g.choose.below(n)
    room = n - 1 - start if step > 0 else start
    most = 1 + room // abs(step)
    return Span(start, g.choose.below(most + 1), step)


def _positions(g: ProgramBuilder, picked: list[Shape]) -> Atom:
    """Return an array of positions that broadcasts with the previous ones."""

    def fits(v: Var) -> bool:
        if not is_integer(v.type.dtype) or not 1 <= len(v.type.shape) <= 2:
            return False
        try:
            whole = np.broadcast_shapes(v.type.shape, *picked)
        except ValueError:
            return False
        return int(np.prod(whole)) <= 6

    found = g.maybe(fits)
    if found is not None:
        return found
    if any(len(shape) > 0 for shape in picked):
        return g.integer()
    if g.choose.chance(50):
        x = g.maybe(lambda v: is_float(v.type.dtype) and v.type.shape in ((2,), (3,), (1,)))
        if x is not None and not g.is_linear(x):
            return g.one(prims.ConvertElementType(g.features.ints[0]), g.squashed(x))
    counted = g.one(Iota(g.features.ints[0], (2 + g.choose.below(2),), 0))
    match g.choose.below(4):
        case 2:
            return g.one(prims.ShiftRightLogical(), counted, g.literal(counted.type.dtype, 1))
        case 3:
            return g.one(prims.Sub(), counted, g.literal(counted.type.dtype, 1))
        case _:
            return counted


def gather(g: ProgramBuilder) -> None:
    x = g.any_array(1)
    made, operands = indexer(g, x.type.shape)
    if fits(made, x.type.shape, operands):
        g.one(p.Gather(made), x, *operands)


def scatter(g: ProgramBuilder) -> None:
    x = g.operand(1)
    made, operands = indexer(g, x.type.shape)
    if not fits(made, x.type.shape, operands):
        return
    part = indexed_shape(made, x.type.shape, [o.type for o in operands])
    add = g.choose.chance(50) or (g.features.lowerable and any(o.type.shape for o in operands))
    value = part_like(g, x, part)
    magnitude = g.magnitude(x) + 4 * g.magnitude(value)
    prim = p.ScatterAdd(made) if add else p.Scatter(made)
    g.squashed(g.one(prim, x, value, *operands, magnitude=magnitude))


def fits(made: Indexer, shape: Shape, operands: list[Atom]) -> bool:
    """Return whether the indexed part is small enough."""
    part = indexed_shape(made, shape, [o.type for o in operands])
    return int(np.prod(part)) <= MAX_ELEMENTS


def part_type(ref: Var, made: Indexer, operands: list[Atom]) -> ArrayType:
    """Return the type of the indexed part of a reference."""
    inner = ref.type
    part = indexed_shape(made, inner.shape, [o.type for o in operands])
    cell = inner if isinstance(inner, ArrayType) else inner.inner
    return cell.update(shape=part)


def dynamic_slice(g: ProgramBuilder) -> None:
    x = g.any_array(1)
    sizes = tuple(g.choose.below(n + 1) if g.choose.chance(20) else min(n, 2) for n in x.type.shape)
    g.one(p.DynamicSlice(sizes), x, *(g.integer() for _ in sizes))


def dynamic_update_slice(g: ProgramBuilder) -> None:
    x = g.any_array(1)
    sizes = tuple(min(n, 1 + g.choose.below(2)) for n in x.type.shape)
    update = part_like(g, x, sizes)
    g.one(p.DynamicUpdateSlice(), x, update, *(g.integer() for _ in sizes))


STEPS: Final = Steps(
    linear=((2, dynamic_slice), (2, dynamic_update_slice), (3, gather), (3, scatter))
)
