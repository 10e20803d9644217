"""Primitives that only move elements: reshape, broadcast, slice, pad, ..."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import INT32, DType, family
from effax.ir.errors import IllTyped
from effax.ir.primitive import ByReference, Primitive, Typing, Value
from effax.ir.prims.common.operands import arrays, check_same_dtype
from effax.ir.types import Shape, Type, array_type
from effax.ir.work import Work, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "BroadcastInDim",
    "Concatenate",
    "Constant",
    "ConstantArray",
    "DimValue",
    "ExpandDims",
    "Iota",
    "Pad",
    "Reshape",
    "Rev",
    "Slice",
    "Squeeze",
    "Transpose",
]


def check_axes(prim: Primitive, axes: Sequence[int], ndim: int) -> None:
    """Raise IllTyped unless the axes are distinct and in ``range(ndim)``."""
    if len(set(axes)) != len(axes) or not all(0 <= a < ndim for a in axes):
        raise IllTyped(
            f"{prim.name} names axes that the operand does not have, or one twice",
            expected=f"distinct axes in range({ndim})",
            found=str(tuple(axes)),
        )


@dataclass(frozen=True, slots=True)
class Reshape(Primitive):
    """The same elements in row-major order, in another shape."""

    new_sizes: Shape
    name: ClassVar[str] = "reshape"
    is_view: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        if x.size != prod(self.new_sizes) or any(n < 0 for n in self.new_sizes):
            raise IllTyped(
                "reshape changes the number of elements",
                expected=f"{x.size} elements, as in {x}",
                found=f"shape {self.new_sizes}",
            )
        return Typing((x.update(shape=self.new_sizes),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.reshape(ins[0], self.new_sizes),)


@dataclass(frozen=True, slots=True)
class BroadcastInDim(Primitive):
    """Operand axis ``i`` becomes result axis ``broadcast_dimensions[i]``; size 1 repeats."""

    shape: Shape
    broadcast_dimensions: tuple[int, ...]
    name: ClassVar[str] = "broadcast_in_dim"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        dims = self.broadcast_dimensions
        check_axes(self, dims, len(self.shape))
        fits = len(dims) == x.ndim and all(
            n in (1, self.shape[d]) for n, d in zip(x.shape, dims, strict=False)
        )
        if not fits or list(dims) != sorted(dims):
            raise IllTyped(
                "broadcast_in_dim cannot place the operand's axes",
                expected=f"an axis of {self.shape} per operand axis, increasing, of equal size",
                found=f"{x} with broadcast_dimensions={dims}",
            )
        return Typing((x.update(shape=self.shape),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        sizes = [1] * len(self.shape)
        for n, d in zip(ins[0].shape, self.broadcast_dimensions, strict=True):
            sizes[d] = n
        return (np.broadcast_to(np.reshape(ins[0], sizes), self.shape),)


@dataclass(frozen=True, slots=True)
class Transpose(Primitive):
    """Result axis ``i`` is operand axis ``permutation[i]``."""

    permutation: tuple[int, ...]
    name: ClassVar[str] = "transpose"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        if sorted(self.permutation) != list(range(x.ndim)):
            raise IllTyped(
                "transpose needs a permutation of the operand's axes",
                expected=f"a permutation of range({x.ndim})",
                found=str(self.permutation),
            )
        return Typing((x.update(shape=tuple(x.shape[p] for p in self.permutation)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.transpose(ins[0], self.permutation),)


@dataclass(frozen=True, slots=True)
class Squeeze(Primitive):
    """The operand without some of its axes of size 1."""

    dimensions: tuple[int, ...]
    name: ClassVar[str] = "squeeze"
    is_view: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_axes(self, self.dimensions, x.ndim)
        if any(x.shape[d] != 1 for d in self.dimensions):
            raise IllTyped(
                "squeeze removes axes of size 1 only", found=f"{x}, dimensions={self.dimensions}"
            )
        kept = tuple(n for i, n in enumerate(x.shape) if i not in self.dimensions)
        return Typing((x.update(shape=kept),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.squeeze(ins[0], self.dimensions),)


@dataclass(frozen=True, slots=True)
class ExpandDims(Primitive):
    """The operand with new axes of size 1 at these axes of the result."""

    dimensions: tuple[int, ...]
    name: ClassVar[str] = "expand_dims"
    is_view: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        ndim = x.ndim + len(self.dimensions)
        check_axes(self, self.dimensions, ndim)
        rest = iter(x.shape)
        shape = tuple(1 if i in self.dimensions else next(rest) for i in range(ndim))
        return Typing((x.update(shape=shape),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.expand_dims(ins[0], self.dimensions),)


@dataclass(frozen=True, slots=True)
class Concatenate(Primitive):
    """The operands, concatenated along an axis."""

    dimension: int
    name: ClassVar[str] = "concatenate"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        types = arrays(self, ins)
        if not types:
            raise IllTyped("concatenate has no operands", expected="at least one", found="none")
        check_same_dtype(self, types)
        check_axes(self, (self.dimension,), types[0].ndim)
        d = self.dimension
        rests = {(*t.shape[:d], *t.shape[d + 1 :]) for t in types if t.ndim == types[0].ndim}
        if len(rests) != 1 or any(t.ndim != types[0].ndim for t in types):
            raise IllTyped(
                "concatenate has operands that differ in more than the axis",
                expected=f"equal shapes, axis {d} aside",
                found=", ".join(map(str, types)),
            )
        total = sum(t.shape[d] for t in types)
        shape = (*types[0].shape[:d], total, *types[0].shape[d + 1 :])
        return Typing((types[0].update(shape=shape, weak=all(t.weak for t in types)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.concatenate(ins, self.dimension),)


@dataclass(frozen=True, slots=True)
class Pad(Primitive):
    """``pad(x, value)``: ``(low, high, interior)`` elements per axis; negative ones crop."""

    padding_config: tuple[tuple[int, int, int], ...]
    name: ClassVar[str] = "pad"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        x, value = arrays(self, ins, 2)
        check_same_dtype(self, [x, value])
        if value.shape or len(self.padding_config) != x.ndim:
            raise IllTyped(
                "pad takes a scalar and one configuration per axis",
                found=f"{x}, {value}, {self.padding_config}",
            )
        shape = tuple(
            low + n + max(n - 1, 0) * inner + high
            for n, (low, high, inner) in zip(x.shape, self.padding_config, strict=True)
        )
        if any(n < 0 for n in shape) or any(inner < 0 for _, _, inner in self.padding_config):
            raise IllTyped("pad returns a negative size", found=f"{x}, {self.padding_config}")
        return Typing((x.update(shape=shape, weak=x.weak and value.weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, value = ins
        config = self.padding_config
        sizes = [n + max(n - 1, 0) * i for n, (_, _, i) in zip(x.shape, config, strict=True)]
        dilated = np.full(sizes, value, x.dtype)
        dilated[tuple(slice(None, None, inner + 1) for _, _, inner in config)] = x
        added = [(max(low, 0), max(high, 0)) for low, high, _ in config]
        padded = np.pad(dilated, added, constant_values=value) if added else dilated
        crop = tuple(
            slice(max(-low, 0), n - max(-high, 0))
            for n, (low, high, _) in zip(padded.shape, config, strict=True)
        )
        return (padded[crop],)


@dataclass(frozen=True, slots=True)
class Rev(Primitive):
    """The operand with these axes reversed."""

    dimensions: tuple[int, ...]
    name: ClassVar[str] = "rev"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_axes(self, self.dimensions, x.ndim)
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.flip(ins[0], self.dimensions),)


@dataclass(frozen=True, slots=True)
class Slice(Primitive):
    """``x[start:limit:stride]`` along each axis, with positive strides, in bounds."""

    start_indices: tuple[int, ...]
    limit_indices: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    name: ClassVar[str] = "slice"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        strides = self.strides or (1,) * x.ndim
        fits = len(self.start_indices) == len(self.limit_indices) == len(strides) == x.ndim and all(
            0 <= a <= b <= n and s > 0
            for a, b, s, n in zip(
                self.start_indices, self.limit_indices, strides, x.shape, strict=False
            )
        )
        if not fits:
            raise IllTyped(
                "slice is out of bounds",
                expected="0 <= start <= limit <= size and stride > 0 for each axis",
                found=f"{x}[{self.start_indices}:{self.limit_indices}:{strides}]",
            )
        shape = tuple(
            -(-(b - a) // s)
            for a, b, s in zip(self.start_indices, self.limit_indices, strides, strict=True)
        )
        return Typing((x.update(shape=shape),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(outs, outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        strides = self.strides or (1,) * ins[0].ndim
        spans = zip(self.start_indices, self.limit_indices, strides, strict=True)
        return (ins[0][tuple(slice(*span) for span in spans)],)


class ConstantArray(ByReference):
    """An array that is a parameter; equal to another one of the same type and bytes."""

    __slots__ = ("_key", "value")

    label = "array"

    def __init__(self, value: np.ndarray) -> None:
        self.value: np.ndarray = value
        self._key: tuple[object, ...] = (value.dtype, value.shape, value.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantArray) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"ConstantArray({self.value!r:.60})"


@dataclass(frozen=True, slots=True)
class Constant(Primitive):
    """An array without operands, for rules that are traced when no argument can be added."""

    value: ConstantArray
    weak: bool = False
    name: ClassVar[str] = "constant"
    flops_per_element: ClassVar[int] = 0
    by_reference: ClassVar[tuple[str, ...]] = ("value",)

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, 0)
        value = self.value.value
        return Typing((array_type(value.shape, value.dtype, self.weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (self.value.value,)


@dataclass(frozen=True, slots=True)
class Iota(Primitive):
    """``0, 1, 2, ...`` along an axis, without operands."""

    dtype: DType
    shape: Shape
    dimension: int
    name: ClassVar[str] = "iota"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, 0)
        check_axes(self, (self.dimension,), len(self.shape))
        if family(self.dtype) in ("bool", "key", "void"):
            raise IllTyped("iota has a dtype of numbers", found=str(self.dtype))
        return Typing((array_type(self.shape, self.dtype),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        sizes = [1] * len(self.shape)
        sizes[self.dimension] = self.shape[self.dimension]
        counted = np.arange(self.shape[self.dimension]).astype(self.dtype).reshape(sizes)
        return (np.broadcast_to(counted, self.shape),)


@dataclass(frozen=True, slots=True)
class DimValue(Primitive):
    """The value of a size, which may be symbolic, as a weak integer."""

    dim: int
    name: ClassVar[str] = "dim_value"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, 0)
        return Typing((array_type((), INT32, weak=True),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(index(self.dim), INT32),)
