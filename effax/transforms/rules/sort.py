"""Rules of sorting and of positions of extrema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import INT32
from effax.ir.indexing import Indexer, Pick
from effax.ir.prims import Gather, Iota, Reshape
from effax.ir.prims.sort import ArgReduction
from effax.ir.syntax import Atom
from effax.ir.types import Shape
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchOut,
    JvpOut,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.rules.common.arrays import to_front
from effax.transforms.rules.common.generic_rules import NONLINEAR, array_rules, no_tangent
from effax.transforms.rules.shape import as_primitive


def _arg_after(prim: ArgReduction, size: int) -> ArgReduction:
    return replace(prim, axis=prim.axis + 1)


def _sort_jvp(
    b: RuleBuilder, prim: p.Sort, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Permute the tangents as their operands: positions are sorted along with them."""
    shape = primals[0].type.shape
    *outs, order = b.emit(prim, [*primals, b(Iota(INT32, shape, prim.dimension))])
    return JvpOut(outs, [_taken(b, t, order, prim.dimension) for t in tangents])


def _top_k_jvp(
    b: RuleBuilder, prim: p.TopK, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Return the tangents at the positions of the greatest elements."""
    values, positions = b.emit(prim, primals)
    return JvpOut([values, positions], [_taken(b, tangents[0], positions, prim.axis), None])


def _taken(b: RuleBuilder, t: Atom | None, positions: Atom, axis: int) -> Atom | None:
    """Return the elements of ``t`` at these positions along an axis (``take_along_axis``)."""
    if t is None:
        return None
    shape = positions.type.shape
    picks = [positions if i == axis else _along(b, i, shape) for i in range(len(shape))]
    return b(Gather(Indexer((Pick(None),) * len(shape))), t, *picks)


def _top_k_batch(
    b: RuleBuilder, prim: p.TopK, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    outs = b.emit(replace(prim, axis=prim.axis + 1), [to_front(b, ins[0], True, size)])
    return BatchOut(outs, [True, True])


def _along(b: RuleBuilder, axis: int, shape: Shape) -> Atom:
    """Return ``0, 1, 2, ...`` along an axis, of size 1 along the axes after it."""
    counted = b(Iota(INT32, (shape[axis],), 0))
    return b(Reshape((shape[axis],) + (1,) * (len(shape) - axis - 1)), counted)


def _sort_batch(
    b: RuleBuilder, prim: p.Sort, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    args = [to_front(b, x, has, size) for x, has in zip(ins, batched, strict=True)]
    outs = b.emit(replace(prim, dimension=prim.dimension + 1), args)
    return BatchOut(outs, [True] * len(outs))


_ARG: Final[Rules[ArgReduction]] = array_rules(
    jvp=no_tangent, transpose=NONLINEAR, batch=as_primitive(_arg_after)
)

RULES: Final[RuleSet] = (
    NO_RULES.extend(p.Argmax, _ARG)
    .extend(p.Argmin, _ARG)
    .extend(
        p.Sort,
        array_rules(jvp=_sort_jvp, transpose=NONLINEAR, batch=_sort_batch),
    )
    .extend(
        p.TopK,
        array_rules(jvp=_top_k_jvp, transpose=NONLINEAR, batch=_top_k_batch),
    )
)
