"""Rules of ``dot_general``, which is linear in each operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.prims import ConvertElementType, DotGeneral
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchOut,
    Linear,
    RuleBuilder,
    RuleSet,
)
from effax.transforms.rules.common.arrays import after_batch, array_of, permuted
from effax.transforms.rules.common.generic_rules import array_rules, bilinear_jvp
from effax.transforms.rules.common.linear_operands import at, linear_operand, only
from effax.transforms.rules.convert import convert_back


def _dot_transpose(
    b: RuleBuilder,
    prim: DotGeneral,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    """Contract the cotangent with the other operand along that operand's free axes.

    The axes of a result are (batch, free axes of x, free axes of y). For z = x·y with batch b,
    z_bik = Σ_j x_bij·y_bjk, so x_bij' = Σ_k z_bik'·y_bjk. The result's axes are then in the
    order (batch, free axes of this operand, contracted axes), and are permuted back.
    """
    ct = only(cts)
    position, x, (y,) = linear_operand(prim, ins)
    contract, batch = prim.dimension_numbers
    mine, other = (
        (contract[position], batch[position]),
        (contract[1 - position], batch[1 - position]),
    )
    shape = x.type.shape
    kept = [i for i in range(len(shape)) if i not in (*mine[0], *mine[1])]
    y_kept = tuple(i for i in range(len(y.type.shape)) if i not in (*other[0], *other[1]))
    n_batch = len(batch[0])
    first = n_batch if position else n_batch + len(kept)
    along = tuple(range(first, first + len(y_kept)))
    if y.type.dtype != ct.type.dtype:
        y = b(ConvertElementType(ct.type.dtype), y)
    numbers = ((along, y_kept), (tuple(range(n_batch)), other[1]))
    made = b(DotGeneral(numbers, None, prim.precision), ct, y)
    # Contracted axes come in the order of the other operand's axes.
    paired = sorted(range(len(other[0])), key=other[0].__getitem__)
    order = [*mine[1], *kept, *(mine[0][i] for i in paired)]
    made_in_order = permuted(b, made, [order.index(i) for i in range(len(shape))])
    return at(position, convert_back(b, made_in_order, array_of(x)), ins)


def _dot_batch(
    b: RuleBuilder, prim: DotGeneral, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    contract, batch = prim.dimension_numbers
    sides = [
        (after_batch(c), after_batch(d)) if has else (c, d)
        for c, d, has in zip(contract, batch, batched, strict=True)
    ]
    (lc, lb), (rc, rb) = sides
    if batched[0] and batched[1]:
        numbers = ((lc, rc), ((0, *lb), (0, *rb)))
        return BatchOut([b(replace(prim, dimension_numbers=numbers), *ins)], [True])
    # The batch axis is the first free axis of its operand.
    z = b(replace(prim, dimension_numbers=((lc, rc), (lb, rb))), *ins)
    place = len(lb)
    if batched[1]:
        place += len(ins[0].type.shape) - len(lb) - len(lc)
    rest = (i for i in range(len(z.type.shape)) if i != place)
    return BatchOut([permuted(b, z, [place, *rest])], [True])


RULES: Final[RuleSet] = NO_RULES.extend(
    DotGeneral,
    array_rules(jvp=bilinear_jvp, transpose=_dot_transpose, batch=_dot_batch),
)
