"""Reductions and cumulative reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import ml_dtypes
import numpy as np

from effax.ir.dtypes import DType, family, int_bounds, is_integer
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.numpy_semantics import is_narrow_float
from effax.ir.prims.common.operands import (
    BITS,
    FLOATS,
    NUMBERS,
    ORDERED,
    arrays,
    check_dtype,
)
from effax.ir.prims.shape import check_axes
from effax.ir.state import cached
from effax.ir.types import Shape, Type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "CumLogSumExp",
    "CumMax",
    "CumMin",
    "CumProd",
    "CumSum",
    "Cumulative",
    "ReduceAnd",
    "ReduceMax",
    "ReduceMin",
    "ReduceOr",
    "ReduceProd",
    "ReduceSum",
    "Reduction",
]


def without_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return the shape without these axes."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


@dataclass(frozen=True, slots=True)
class Reduction(Primitive):
    """A combination of the elements along ``axes``, which are removed."""

    axes: tuple[int, ...]
    accepts: ClassVar[frozenset[str]] = NUMBERS
    empty_error: ClassVar[bool] = False

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, self.accepts)
        check_axes(self, self.axes, x.ndim)
        return Typing((x.update(shape=without_axes(x.shape, self.axes)),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins, outs, flops=max(elements(ins) - elements(outs), 0))


def _wide(x: Value) -> Value:
    """Return an operand of a narrow dtype in float32, in which XLA may accumulate."""
    # NumPy's kind of float8_e5m2 is that of its own floats.
    narrow = x.dtype.kind == "V" or is_narrow_float(x.dtype)
    return x.astype(np.float32) if narrow else x


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
    """Return the least value of an ordered dtype: the neutral element of max."""
    if family(dtype) == "bool":
        return False
    return int_bounds(dtype)[0] if is_integer(dtype) else -_greatest_float(dtype)


def greatest(dtype: DType) -> bool | int | float:
    """Return the greatest value of an ordered dtype: the neutral element of min."""
    if family(dtype) == "bool":
        return True
    return int_bounds(dtype)[1] if is_integer(dtype) else _greatest_float(dtype)


def all_bits(dtype: DType) -> bool | int | float:
    """Return the neutral element of a bitwise and."""
    return -1 if family(dtype) == "int" else greatest(dtype)


@cached(maxsize=None)
def _greatest_float(dtype: DType) -> float:
    """Return infinity, or the greatest number of a dtype that has no infinity."""
    if np.isinf(np.asarray(np.inf).astype(dtype)):
        return float("inf")
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]  # its stub is bare


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
        # NumPy starts from -1, which is no value of unsigned dtypes of fewer than 8 bits.
        ones = np.asarray(all_bits(ins[0].dtype), ins[0].dtype)[()]
        return (np.asarray(np.bitwise_and.reduce(ins[0], axis=self.axes, initial=ones)),)


@dataclass(frozen=True, slots=True)
class ReduceOr(Reduction):
    """``any`` of booleans, bitwise ``or`` of integers."""

    name: ClassVar[str] = "reduce_or"
    accepts: ClassVar[frozenset[str]] = BITS

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(np.bitwise_or.reduce(ins[0], axis=self.axes)),)


@dataclass(frozen=True, slots=True)
class Cumulative(Primitive):
    """A running combination along ``axis``, from its end if ``reverse``."""

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
