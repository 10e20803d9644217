"""Indexed reads and updates of arrays: gather, scatter, and combining scatters.

The work of an update is that of the part that it writes, since XLA updates a dead operand in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from effax.ir import indexing
from effax.ir.dtypes import family
from effax.ir.errors import IllTyped
from effax.ir.indexing import Indexer, indexed_shape
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.operands import NUMBERS, ORDERED, arrays, check_dtype, check_same_dtype
from effax.ir.types import ArrayType, Shape, Type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Combining",
    "DynamicSlice",
    "DynamicUpdateSlice",
    "Gather",
    "Scatter",
    "ScatterAdd",
    "ScatterMax",
    "ScatterMin",
    "ScatterMul",
]


@dataclass(frozen=True, slots=True)
class Gather(Primitive):
    """``gather(x, *operands)``: ``x[indexer]``."""

    indexer: Indexer
    name: ClassVar[str] = "gather"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        x, *operands = arrays(self, ins, least=1)
        return Typing((x.update(shape=indexed_shape(self.indexer, x.shape, operands)),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved([*outs, *ins[1:]], outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (indexing.read(self.indexer, np.asarray(ins[0]), ins[1:]),)


def check_update(prim: Primitive, part: Shape, dtype: object, value: ArrayType) -> None:
    """Raise IllTyped unless ``value`` has the shape and dtype of the indexed part."""
    if value.shape != part or value.dtype != dtype:
        raise IllTyped(
            f"{prim.name} has a value of the wrong type for the indexed part",
            expected=f"shape {part} and dtype {dtype}",
            found=str(value),
            remedy="broadcast and convert the value first",
        )


@dataclass(frozen=True, slots=True)
class Scatter(Primitive):
    """``scatter(x, value, *operands)``: ``x`` with ``value`` at ``[indexer]``."""

    indexer: Indexer
    name: ClassVar[str] = "scatter"
    updates_first: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        x, value, *operands = arrays(self, ins, least=2)
        check_same_dtype(self, [x, value])
        check_update(self, indexed_shape(self.indexer, x.shape, operands), x.dtype, value)
        return Typing((x.update(weak=x.weak and value.weak),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins[1:], [ins[1]])

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        result = np.array(ins[0])
        indexing.write(self.indexer, result, ins[1], ins[2:])
        return (result,)


@dataclass(frozen=True, slots=True)
class Combining(Primitive):
    """``x`` with ``value`` combined at ``[indexer]``; at repeated positions all values count."""

    indexer: Indexer
    accepts: ClassVar[frozenset[str]] = NUMBERS
    updates_first: ClassVar[bool] = True
    ufunc: ClassVar[np.ufunc]

    def typing(self, *ins: Type) -> Typing:
        x, value, *operands = arrays(self, ins, least=2)
        check_dtype(self, x, self.accepts)
        check_same_dtype(self, [x, value])
        check_update(self, indexed_shape(self.indexer, x.shape, operands), x.dtype, value)
        return Typing((x.update(weak=x.weak and value.weak),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved([ins[1], *ins[1:]], [ins[1]], flops=elements([ins[1]]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        result = np.array(ins[0])
        indexing.write(self.indexer, result, ins[1], ins[2:], self.ufunc)
        return (result,)


@dataclass(frozen=True, slots=True)
class ScatterAdd(Combining):
    """``scatter_add(x, value, *operands)``: ``value`` added to ``x`` at ``[indexer]``."""

    name: ClassVar[str] = "scatter_add"
    ufunc: ClassVar[np.ufunc] = np.add


@dataclass(frozen=True, slots=True)
class ScatterMul(Combining):
    """``scatter_mul(x, value, *operands)``: ``x`` multiplied by ``value`` at ``[indexer]``."""

    name: ClassVar[str] = "scatter_mul"
    ufunc: ClassVar[np.ufunc] = np.multiply


@dataclass(frozen=True, slots=True)
class ScatterMax(Combining):
    """``scatter_max(x, value, *operands)``: the maximum of ``x`` and ``value`` at ``[indexer]``."""

    name: ClassVar[str] = "scatter_max"
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[np.ufunc] = np.maximum


@dataclass(frozen=True, slots=True)
class ScatterMin(Combining):
    """``scatter_min(x, value, *operands)``: the minimum of ``x`` and ``value`` at ``[indexer]``."""

    name: ClassVar[str] = "scatter_min"
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[np.ufunc] = np.minimum


@dataclass(frozen=True, slots=True)
class DynamicSlice(Primitive):
    """``dynamic_slice(x, *starts)``: a window of static sizes; starts are clamped."""

    slice_sizes: Shape
    name: ClassVar[str] = "dynamic_slice"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        x, *starts = arrays(self, ins, least=1)
        check_starts(self, starts, x.ndim)
        check_fits(self, self.slice_sizes, x.shape)
        return Typing((x.update(shape=self.slice_sizes),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved([*outs, *ins[1:]], outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (ins[0][window(ins[0].shape, self.slice_sizes, ins[1:])],)


@dataclass(frozen=True, slots=True)
class DynamicUpdateSlice(Primitive):
    """``dynamic_update_slice(x, update, *starts)``: writes a window; starts are clamped."""

    name: ClassVar[str] = "dynamic_update_slice"
    updates_first: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        x, update, *starts = arrays(self, ins, least=2)
        check_starts(self, starts, x.ndim)
        check_same_dtype(self, [x, update])
        check_fits(self, update.shape, x.shape)
        return Typing((x.update(weak=x.weak and update.weak),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins[1:], [ins[1]])

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        result = np.array(ins[0])
        result[window(result.shape, ins[1].shape, ins[2:])] = ins[1]
        return (result,)


def check_starts(prim: Primitive, starts: Sequence[Type], ndim: int) -> None:
    """Raise IllTyped unless there is one integer scalar per axis."""
    scalars = all(s.shape == () and family(s.dtype) in ("int", "uint") for s in starts)
    if len(starts) != ndim or not scalars:
        raise IllTyped(
            f"{prim.name} takes one integer scalar per axis",
            expected=f"{ndim} integer scalars",
            found=", ".join(map(str, starts)) or "none",
        )


def check_fits(prim: Primitive, sizes: Shape, shape: Shape) -> None:
    """Raise IllTyped unless a window of these sizes fits into the shape."""
    if len(sizes) != len(shape) or not all(0 <= k <= n for k, n in zip(sizes, shape, strict=False)):
        raise IllTyped(
            f"{prim.name} has a window that does not fit",
            expected=f"at most {shape}",
            found=str(sizes),
        )


def window(shape: Shape, sizes: Shape, starts: Sequence[Value]) -> tuple[slice, ...]:
    """Return the slices of a window whose starts are clamped so that it fits."""
    first = [max(0, min(int(s), n - k)) for s, n, k in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(a, a + k) for a, k in zip(first, sizes, strict=True))
