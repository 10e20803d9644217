"""Convolution: the contraction of windows of one array with another array."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import DType, as_dtype
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.numpy_semantics import is_narrow_float
from effax.ir.prims.common.operands import NUMBERS, arrays, check_dtype, check_same_dtype
from effax.ir.types import Shape, Type
from effax.ir.work import Work, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "ConvGeneralDilated",
]

Pairs = tuple[tuple[int, int], ...]


def dilated(size: int, step: int) -> int:
    """Return the size of an axis with ``step - 1`` zeros between neighbours."""
    return (size - 1) * step + 1 if size else 0


@dataclass(frozen=True, slots=True)
class ConvGeneralDilated(Primitive):
    """``conv_general_dilated(lhs, rhs)``: sums of products of windows of lhs with rhs.

    Axes of lhs: batch, features, space; of rhs: features out, features in of one group, space; of
    the result: batch, features, space. The first four parameters have an entry per axis of space;
    negative ``padding`` (low, high) crops. Each group of features is convolved with its part of
    rhs.
    """

    window_strides: tuple[int, ...]
    padding: Pairs
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    feature_group_count: int = 1
    precision: str | None = None
    preferred_element_type: DType | None = None
    name: ClassVar[str] = "conv_general_dilated"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        lhs, rhs = arrays(self, ins, 2)
        check_dtype(self, lhs, NUMBERS - {"complex"})
        check_same_dtype(self, [lhs, rhs])
        n = len(self.window_strides)
        each = (self.padding, self.lhs_dilation, self.rhs_dilation)
        if not lhs.ndim == rhs.ndim == n + 2 or any(len(field) != n for field in each):
            raise IllTyped(
                "a convolution has axes of batch, of features, and of space",
                expected=f"two arrays of {n + 2} axes, and {n} entries of each parameter",
                found=f"{lhs}, {rhs}, {self}",
            )
        if min((*self.window_strides, *self.lhs_dilation, *self.rhs_dilation), default=1) < 1:
            raise IllTyped("strides and dilations are positive", found=str(self))
        groups = self.feature_group_count
        if groups < 1 or lhs.shape[1] != rhs.shape[1] * groups or rhs.shape[0] % groups:
            raise IllTyped(
                "a convolution has features that do not match",
                expected=f"features of lhs: {groups} groups of those of rhs; "
                f"features out: a multiple of {groups}",
                found=f"{lhs}, {rhs}",
            )
        shape = (lhs.shape[0], rhs.shape[0], *self.space(lhs.shape, rhs.shape))
        dtype = self.preferred_element_type or lhs.dtype
        weak = lhs.weak and rhs.weak and dtype == lhs.dtype
        return Typing((lhs.update(shape=shape, dtype=dtype, weak=weak),))

    def space(self, lhs: Shape, rhs: Shape) -> Shape:
        """Return the sizes of the result's axes of space."""
        sizes = zip(
            lhs[2:], rhs[2:], self.window_strides, self.padding, self.lhs_dilation,
            self.rhs_dilation, strict=True,
        )  # fmt: skip
        return tuple(
            max(0, (dilated(n, a) + low + high - dilated(k, b)) // stride + 1)
            for n, k, stride, (low, high), a, b in sizes
        )

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        # A product and a sum for each pair of elements, those with padding and holes left out.
        lhs, rhs = ins[0].shape, ins[1].shape
        pairs = prod(map(_pairs, lhs[2:], rhs[2:], outs[0].shape[2:], *self._axes_of_space()))
        return moved(ins, outs, flops=2 * lhs[0] * rhs[0] * rhs[1] * pairs)

    def _axes_of_space(self) -> tuple[Sequence[int], Pairs, Sequence[int], Sequence[int]]:
        return (self.window_strides, self.padding, self.lhs_dilation, self.rhs_dilation)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        lhs, rhs = ins
        space = self.space(lhs.shape, rhs.shape)
        wanted = self.preferred_element_type or lhs.dtype
        narrow = lhs.dtype.kind == "V" or is_narrow_float(lhs.dtype)
        work = as_dtype("float32") if narrow else np.promote_types(lhs.dtype, wanted)
        groups = self.feature_group_count
        x = self._dilated(lhs.astype(work))
        x = x.reshape(x.shape[0], groups, rhs.shape[1], *x.shape[2:])
        w = rhs.astype(work)
        w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        total = np.zeros((lhs.shape[0], groups, w.shape[1], *space), work)
        for at in np.ndindex(*rhs.shape[2:]):
            starts = [k * b for k, b in zip(at, self.rhs_dilation, strict=True)]
            windows = [
                slice(start, start + (n - 1) * stride + 1 if n else start, stride)
                for start, n, stride in zip(starts, space, self.window_strides, strict=True)
            ]
            picked: Value = w[_beside(3, [slice(k, k + 1) for k in at])].reshape(w.shape[:3])
            total += np.einsum("bgi...,goi->bgo...", x[_beside(3, windows)], picked)
        return (total.reshape(lhs.shape[0], rhs.shape[0], *space).astype(wanted),)

    def _dilated(self, x: Value) -> Value:
        """Return the left operand with zeros between neighbours, padded or cropped."""
        sizes = [dilated(n, a) for n, a in zip(x.shape[2:], self.lhs_dilation, strict=True)]
        apart = np.zeros((*x.shape[:2], *sizes), x.dtype)
        apart[_beside(2, [slice(None, None, a) for a in self.lhs_dilation])] = x
        source: list[slice] = []
        target: list[slice] = []
        padded: list[int] = []
        for n, (low, high) in zip(sizes, self.padding, strict=True):
            padded.append(max(0, n + low + high))
            first = max(0, -low)
            last = max(first, min(n, padded[-1] - low))
            source.append(slice(first, last))
            target.append(slice(first + low, last + low))
        made = np.zeros((*x.shape[:2], *padded), x.dtype)
        made[_beside(2, target)] = apart[_beside(2, source)]
        return made


def _pairs(
    n: int, k: int, out: int, stride: int, padding: tuple[int, int], holes: int, step: int
) -> int:
    """Return how many elements of an axis of ``n`` all windows of ``k`` elements meet."""
    last = dilated(n, holes) - 1
    total = 0
    for first in range(-padding[0], k * step - padding[0], step):
        low = max(0, -(first // stride))
        high = min(out - 1, (last - first) // stride)
        # Of ``first + i·stride``, those are elements that the number of holes divides.
        met = [
            i for i in range(low, min(high + 1, low + holes)) if not (first + i * stride) % holes
        ]
        if met:
            total += (high - met[0]) // (holes // gcd(holes, stride)) + 1
    return total


def _beside(n: int, last: Sequence[slice]) -> tuple[slice, ...]:
    """Return an index of parts of the last axes, and of all of the first ``n`` axes."""
    return (*(slice(None) for _ in range(n)), *last)
