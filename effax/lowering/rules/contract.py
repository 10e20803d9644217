"""Lowering of the general dot product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.ir import prims as p
from effax.ir.dtypes import FLOAT32, INT32, DType, family
from effax.ir.errors import LoweringError
from effax.ir.prims.reduce import without_axes
from effax.ir.types import ArrayType, array_type
from effax.lowering import ops
from effax.lowering.rules.common.pointwise import is_narrow
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer

PRECISIONS: Final = {"default": "DEFAULT", "high": "HIGH", "highest": "HIGHEST"}


def precision_of(name: str | None, what: str) -> str:
    """Return StableHLO's name of a precision. Raise LoweringError for an unknown one."""
    precision = PRECISIONS.get((name or "default").lower())
    if precision is None:
        raise LoweringError(
            f"{what} has an unknown precision", expected=", ".join(PRECISIONS), found=str(name)
        )
    return precision


def dot_general(w: Writer, prim: p.DotGeneral, ins: Sequence[Val]) -> Sequence[Val]:
    wanted = prim.preferred_element_type or ins[0].type.dtype
    return _dot(w, prim, ins, *_dot_dtypes(ins[0].type.dtype, wanted))


def dot_general_on_host(w: Writer, prim: p.DotGeneral, ins: Sequence[Val]) -> Sequence[Val]:
    """Write the product with wide operands where XLA's CPU backend may refuse narrow ones.

    It does so when the program runs. The products are exact in float32.
    """
    operand, wanted = ins[0].type.dtype, prim.preferred_element_type
    n_batch = len(prim.dimension_numbers[1][0])
    if n_batch > 1 and is_narrow(operand) and wanted not in (None, operand):
        return _dot(w, prim, ins, FLOAT32, FLOAT32)
    return dot_general(w, prim, ins)


def _dot(
    w: Writer, prim: p.DotGeneral, ins: Sequence[Val], work: DType, result: DType
) -> Sequence[Val]:
    """Write the product of operands in dtype ``work``, in dtype ``result``, and convert it."""
    lhs, rhs = ins
    wanted = prim.preferred_element_type or lhs.type.dtype
    lhs, rhs = ops.convert(w, lhs, work), ops.convert(w, rhs, work)
    (lc, rc), (lb, rb) = prim.dimension_numbers
    precision = precision_of(prim.precision, prim.name)
    batch = f"batching_dims = {ops.numbers(lb)} x {ops.numbers(rb)}, " if lb else ""
    type_ = _dot_type(prim, lhs.type, rhs.type, result)
    text = (
        f"stablehlo.dot_general {lhs}, {rhs}, {batch}contracting_dims = {ops.numbers(lc)} x "
        f"{ops.numbers(rc)}, precision = [{precision}, {precision}] : "
        f"{ops.signature([lhs, rhs], type_)}"
    )
    return (ops.convert(w, w.op1(text, type_), wanted),)


def _dot_type(prim: p.DotGeneral, lhs: ArrayType, rhs: ArrayType, dtype: DType) -> ArrayType:
    (lc, rc), (lb, rb) = prim.dimension_numbers
    batch = tuple([lhs.shape[a] for a in lb])
    kept = (without_axes(lhs.shape, (*lc, *lb)), without_axes(rhs.shape, (*rc, *rb)))
    return array_type((*batch, *kept[0], *kept[1]), dtype)


def _dot_dtypes(operand: DType, wanted: DType) -> tuple[DType, DType]:
    """Return the dtypes of the operands and of the result of the StableHLO operation."""
    if family(operand) == "bool":
        # Booleans: an "and" of pairs, then an "or". A count that is not 0 is the same, on every
        # backend.
        return (INT32, INT32) if family(wanted) == "bool" else (wanted, wanted)
    if is_narrow(operand):
        return operand, operand if wanted == operand else FLOAT32
    if family(operand) == family(wanted) != "float" and operand.itemsize <= wanted.itemsize:
        return operand, wanted
    both = np.promote_types(operand, wanted)
    return both, both


RULES: Final[LoweringRules] = NO_RULES.extend(p.DotGeneral, dot_general)
HOST_RULES: Final[LoweringRules] = NO_RULES.extend(p.DotGeneral, dot_general_on_host)
