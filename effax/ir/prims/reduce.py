"""Primitives that combine elements: reductions, cumulative ones, sort, contraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import BOOL, INT32, DType, as_dtype, family, int_bounds, is_integer
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.elementwise import (
    BITS,
    FLOATS,
    NUMBERS,
    ORDERED,
    arrays,
    check_dtype,
    check_same_dtype,
)
from effax.ir.prims.shape import check_axes
from effax.ir.types import ArrayType, Shape, Type


def without_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape that is left when these axes go."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


@dataclass(frozen=True, slots=True)
class Reduction(Primitive):
    """Combines the elements along ``axes``, which go."""

    axes: tuple[int, ...]
    accepts: ClassVar[frozenset[str]] = NUMBERS
    empty_error: ClassVar[bool] = False

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, self.accepts)
        check_axes(self, self.axes, x.ndim)
        return Typing((x.update(shape=without_axes(x.shape, self.axes)),))


def _wide(x: Value) -> Value:
    """The operand in float32 where its dtype is narrower, as XLA may have it."""
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype == np.float16 else x


def _accumulated(
    ufunc: Callable[..., Value], x: Value, axes: tuple[int, ...], start: object = None
) -> Value:
    """Reduce in a wide dtype and round once."""
    wide = _wide(x)
    kwargs = {} if start is None else {"initial": np.asarray(start, wide.dtype)}
    return np.asarray(ufunc(wide, axis=axes, **kwargs)).astype(x.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class ReduceSum(Reduction):
    """The sum of the elements; 0 of none."""

    name: ClassVar[str] = "reduce_sum"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (_accumulated(np.add.reduce, ins[0], self.axes),)


@dataclass(frozen=True, slots=True)
class ReduceProd(Reduction):
    """The product of the elements; 1 of none."""

    name: ClassVar[str] = "reduce_prod"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (_accumulated(np.multiply.reduce, ins[0], self.axes),)


def lowest(dtype: DType) -> bool | int | float:
    """The least value of an ordered dtype: the neutral element of max."""
    if family(dtype) == "bool":
        return False
    return int_bounds(dtype)[0] if is_integer(dtype) else float("-inf")


def greatest(dtype: DType) -> bool | int | float:
    """The greatest value of an ordered dtype: the neutral element of min."""
    if family(dtype) == "bool":
        return True
    return int_bounds(dtype)[1] if is_integer(dtype) else float("inf")


@dataclass(frozen=True, slots=True)
class ReduceMax(Reduction):
    """The greatest element, nan where there is one; of no elements, the least value."""

    name: ClassVar[str] = "reduce_max"
    accepts: ClassVar[frozenset[str]] = ORDERED

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (_accumulated(np.maximum.reduce, ins[0], self.axes, lowest(ins[0].dtype)),)


@dataclass(frozen=True, slots=True)
class ReduceMin(Reduction):
    """The least element, nan where there is one; of no elements, the greatest value."""

    name: ClassVar[str] = "reduce_min"
    accepts: ClassVar[frozenset[str]] = ORDERED

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (_accumulated(np.minimum.reduce, ins[0], self.axes, greatest(ins[0].dtype)),)


@dataclass(frozen=True, slots=True)
class ReduceAnd(Reduction):
    """``all`` of booleans, bitwise ``and`` of integers."""

    name: ClassVar[str] = "reduce_and"
    accepts: ClassVar[frozenset[str]] = BITS

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(np.bitwise_and.reduce(ins[0], axis=self.axes)),)


@dataclass(frozen=True, slots=True)
class ReduceOr(Reduction):
    """``any`` of booleans, bitwise ``or`` of integers."""

    name: ClassVar[str] = "reduce_or"
    accepts: ClassVar[frozenset[str]] = BITS

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(np.bitwise_or.reduce(ins[0], axis=self.axes)),)


@dataclass(frozen=True, slots=True)
class ArgReduction(Primitive):
    """The index, along ``axis``, of the first extreme element; nan counts as extreme."""

    axis: int
    index_dtype: DType

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, ORDERED)
        check_axes(self, (self.axis,), x.ndim)
        if x.shape[self.axis] == 0:
            raise IllTyped(f"{self.name} of an empty axis has no result", found=str(x))
        if not is_integer(self.index_dtype):
            raise IllTyped(f"{self.name} gives integers", found=str(self.index_dtype))
        shape = without_axes(x.shape, (self.axis,))
        return Typing((x.update(shape=shape, dtype=self.index_dtype, weak=False),))


@dataclass(frozen=True, slots=True)
class Argmax(ArgReduction):
    """The index of the first greatest element, or of the first nan."""

    name: ClassVar[str] = "argmax"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        found = np.asarray(np.argmax(_comparable(ins[0]), axis=self.axis))
        return (found.astype(self.index_dtype),)


@dataclass(frozen=True, slots=True)
class Argmin(ArgReduction):
    """The index of the first least element, or of the first nan."""

    name: ClassVar[str] = "argmin"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        found = np.asarray(np.argmin(_comparable(ins[0]), axis=self.axis))
        return (found.astype(self.index_dtype),)


def _comparable(x: Value) -> Value:
    """The operand in a dtype that NumPy sorts: its order is that of the values."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


@dataclass(frozen=True, slots=True)
class Cumulative(Primitive):
    """A running combination along ``axis``, from its end where ``reverse``."""

    axis: int
    reverse: bool = False
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[np.ufunc]

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, self.accepts)
        check_axes(self, (self.axis,), x.ndim)
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x = np.flip(ins[0], self.axis) if self.reverse else ins[0]
        wide = _wide(x)
        run = self.ufunc.accumulate(wide, axis=self.axis, dtype=wide.dtype)
        run = run.astype(x.dtype, copy=False)
        return (np.flip(run, self.axis) if self.reverse else run,)


@dataclass(frozen=True, slots=True)
class CumSum(Cumulative):
    """Running sums."""

    name: ClassVar[str] = "cumsum"
    ufunc: ClassVar[np.ufunc] = np.add


@dataclass(frozen=True, slots=True)
class CumProd(Cumulative):
    """Running products."""

    name: ClassVar[str] = "cumprod"
    ufunc: ClassVar[np.ufunc] = np.multiply


@dataclass(frozen=True, slots=True)
class CumMax(Cumulative):
    """Running maxima; nan from the first nan on."""

    name: ClassVar[str] = "cummax"
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[np.ufunc] = np.maximum


@dataclass(frozen=True, slots=True)
class CumMin(Cumulative):
    """Running minima; nan from the first nan on."""

    name: ClassVar[str] = "cummin"
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[np.ufunc] = np.minimum


@dataclass(frozen=True, slots=True)
class CumLogSumExp(Cumulative):
    """Running logarithms of sums of exponentials."""

    name: ClassVar[str] = "cumlogsumexp"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[np.ufunc] = np.logaddexp


@dataclass(frozen=True, slots=True)
class Sort(Primitive):
    """Sorts all operands along ``dimension`` by the first ``num_keys`` of them, stably.

    Order of keys is lexicographic; nan is last.
    """

    dimension: int
    num_keys: int = 1
    name: ClassVar[str] = "sort"

    def typing(self, *ins: Type) -> Typing:
        types = arrays(self, ins)
        if not types or not 1 <= self.num_keys <= len(types):
            raise IllTyped("sort needs at least one key", found=f"{len(types)} operands")
        if any(t.shape != types[0].shape for t in types):
            raise IllTyped("sort has operands of different shape", found=", ".join(map(str, types)))
        check_axes(self, (self.dimension,), types[0].ndim)
        for key in types[: self.num_keys]:
            check_dtype(self, key, ORDERED)
        return Typing(tuple(types))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        keys = tuple(_comparable(k) for k in reversed(ins[: self.num_keys]))
        moved = [np.moveaxis(k, self.dimension, -1) for k in keys]
        order = np.moveaxis(np.lexsort(moved, axis=-1), -1, self.dimension)
        return tuple(np.take_along_axis(x, order, self.dimension) for x in ins)


@dataclass(frozen=True, slots=True)
class TopK(Primitive):
    """``(values, positions)`` of the ``k`` greatest elements along ``axis``, in descending order.

    nan is the greatest; of equal elements the first comes first.
    """

    k: int
    axis: int
    name: ClassVar[str] = "top_k"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, ORDERED)
        check_axes(self, (self.axis,), x.ndim)
        if not 0 <= self.k <= x.shape[self.axis]:
            raise IllTyped(
                f"{self.name} takes elements that there are",
                expected=f"k from 0 to {x.shape[self.axis]}",
                found=str(self.k),
            )
        found = x.update(shape=(*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :]))
        return Typing((found, found.update(dtype=INT32, weak=False)))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        # Ascending, the first of equal elements come last in what is read backward.
        backward = np.flip(_comparable(ins[0]), self.axis)
        order = np.argsort(backward, self.axis, kind="stable")
        n = order.shape[self.axis]
        last = np.take(order, range(n - 1, n - 1 - self.k, -1), self.axis)
        positions = (n - 1 - last).astype(INT32)
        return np.take_along_axis(ins[0], positions, self.axis), positions


DotDimensionNumbers = tuple[
    tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]
]


@dataclass(frozen=True, slots=True)
class DotGeneral(Primitive):
    """Contraction of two arrays: ``((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))``.

    Result axes: batch axes, what is left of the left operand, what is left of the right one.
    """

    dimension_numbers: DotDimensionNumbers
    preferred_element_type: DType | None = None
    precision: str | None = None
    name: ClassVar[str] = "dot_general"

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
    narrow = operands.kind == "V" or operands == as_dtype("float16")
    return as_dtype("float32") if narrow else np.promote_types(operands, result)
