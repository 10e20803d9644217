"""Contraction: the general dot product."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import BOOL, DType, as_dtype, family
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.numpy_semantics import is_narrow_float
from effax.ir.prims.common.operands import (
    NUMBERS,
    arrays,
    check_dtype,
    check_same_dtype,
)
from effax.ir.prims.reduce import without_axes
from effax.ir.prims.shape import check_axes
from effax.ir.types import ArrayType, Shape, Type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "DotDimensionNumbers",
    "DotGeneral",
]

DotDimensionNumbers = tuple[
    tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]
]


@dataclass(frozen=True, slots=True)
class DotGeneral(Primitive):
    """A contraction of two arrays over ``((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))``.

    Axes of the result: batch axes, remaining axes of lhs, remaining axes of rhs.
    """

    dimension_numbers: DotDimensionNumbers
    preferred_element_type: DType | None = None
    precision: str | None = None
    name: ClassVar[str] = "dot_general"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        lhs, rhs = arrays(self, ins, 2)
        check_dtype(self, lhs, NUMBERS | {"bool"})
        check_same_dtype(self, [lhs, rhs])
        (lc, rc), (lb, rb) = self.dimension_numbers
        check_axes(self, (*lc, *lb), lhs.ndim)
        check_axes(self, (*rc, *rb), rhs.ndim)
        pairs = [*zip(lc, rc, strict=False), *zip(lb, rb, strict=False)]
        matched = len(lc) == len(rc) and len(lb) == len(rb)
        if not matched or any(lhs.shape[a] != rhs.shape[b] for a, b in pairs):
            raise IllTyped(
                "dot_general pairs axes of different size",
                expected="equal sizes for each contracted and each batch pair",
                found=f"{lhs}, {rhs}, dimension_numbers={self.dimension_numbers}",
            )
        batch = tuple(lhs.shape[a] for a in lb)
        kept = (without_axes(lhs.shape, (*lc, *lb)), without_axes(rhs.shape, (*rc, *rb)))
        dtype = self.preferred_element_type or lhs.dtype
        shape = (*batch, *kept[0], *kept[1])
        return Typing((_dot_type(lhs, rhs, shape, dtype),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        # A product and a sum for each element of the result and of the contracted axes.
        terms = prod([ins[0].shape[i] for i in self.dimension_numbers[0][0]])
        each = 8 if ins[0].dtype.kind == "c" else 2
        return moved(ins, outs, flops=elements(outs) * terms * each)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        lhs, rhs = ins
        (lc, rc), (lb, rb) = self.dimension_numbers
        letters = iter(range(lhs.ndim + rhs.ndim))
        left = [next(letters) for _ in range(lhs.ndim)]
        right = [next(letters) for _ in range(rhs.ndim)]
        for a, b in (*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)):
            right[b] = left[a]
        out = [left[a] for a in lb]
        out += [s for i, s in enumerate(left) if i not in (*lc, *lb)]
        out += [s for i, s in enumerate(right) if i not in (*rc, *rb)]
        dtype = self.preferred_element_type or lhs.dtype
        work = _working_dtype(lhs.dtype, dtype)
        x, y = _converted(lhs, work), _converted(rhs, work)
        product = np.einsum(x, left, y, right, out, optimize=True)
        return (np.asarray(product).astype(dtype),)


def _converted(x: Value, dtype: DType) -> Value:
    return x.astype(dtype)


def _dot_type(lhs: ArrayType, rhs: ArrayType, shape: Shape, dtype: DType) -> ArrayType:
    return lhs.update(shape=shape, dtype=dtype, weak=lhs.weak and rhs.weak and dtype == lhs.dtype)


def _working_dtype(operands: DType, result: DType) -> DType:
    if family(operands) == "bool":
        return BOOL if family(result) == "bool" else result
    narrow = operands.kind == "V" or is_narrow_float(operands)
    return as_dtype("float32") if narrow else np.promote_types(operands, result)
