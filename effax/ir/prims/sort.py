"""Sorting: ``sort``, ``top_k``, ``argmax``, ``argmin``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import INT32, DType, is_integer
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.numpy_semantics import is_narrow_float
from effax.ir.prims.common.operands import (
    ORDERED,
    arrays,
    check_dtype,
)
from effax.ir.prims.reduce import without_axes
from effax.ir.prims.shape import check_axes
from effax.ir.types import Type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "ArgReduction",
    "Argmax",
    "Argmin",
    "Sort",
    "TopK",
]


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
            raise IllTyped(f"{self.name} returns integers", found=str(self.index_dtype))
        shape = without_axes(x.shape, (self.axis,))
        return Typing((x.update(shape=shape, dtype=self.index_dtype, weak=False),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins, outs, flops=elements(ins) - elements(outs))


@dataclass(frozen=True, slots=True)
class Argmax(ArgReduction):
    """The index of the first greatest element, or of the first nan."""

    name: ClassVar[str] = "argmax"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        found = np.asarray(np.argmax(comparable(ins[0]), axis=self.axis))
        return (found.astype(self.index_dtype),)


@dataclass(frozen=True, slots=True)
class Argmin(ArgReduction):
    """The index of the first least element, or of the first nan."""

    name: ClassVar[str] = "argmin"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        found = np.asarray(np.argmin(comparable(ins[0]), axis=self.axis))
        return (found.astype(self.index_dtype),)


def comparable(x: Value) -> Value:
    """Return the operand in a dtype that NumPy sorts, by the same order, with nan last."""
    return x.astype(np.float32) if x.dtype.kind == "V" or is_narrow_float(x.dtype) else x


@dataclass(frozen=True, slots=True)
class Sort(Primitive):
    """All operands, sorted along ``dimension`` by the first ``num_keys`` of them, stably.

    The order of keys is lexicographic; nan is last.
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

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        rounds = max(ins[0].shape[self.dimension] - 1, 0).bit_length()
        return moved(ins, outs, flops=elements(ins[: self.num_keys]) * rounds)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        keys = tuple(comparable(k) for k in reversed(ins[: self.num_keys]))
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
                f"{self.name} has too few elements",
                expected=f"k from 0 to {x.shape[self.axis]}",
                found=str(self.k),
            )
        found = x.update(shape=(*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :]))
        return Typing((found, found.update(dtype=INT32, weak=False)))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        rounds = max(ins[0].shape[self.axis] - 1, 0).bit_length()
        return moved(ins, outs, flops=elements(ins) * rounds)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        # A stable ascending sort of the reversed operand, read backward, keeps the first of equals.
        backward = np.flip(comparable(ins[0]), self.axis)
        order = np.argsort(backward, self.axis, kind="stable")
        n = order.shape[self.axis]
        last = np.take(order, range(n - 1, n - 1 - self.k, -1), self.axis)
        positions = (n - 1 - last).astype(INT32)
        return np.take_along_axis(ins[0], positions, self.axis), positions
