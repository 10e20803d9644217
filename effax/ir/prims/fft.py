"""Fourier transforms along the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import complex_dtype, real_dtype
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.operands import arrays
from effax.ir.types import Type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Fft",
    "FftType",
]


class FftType(Enum):
    """The kinds of transforms, by input and output."""

    FFT = "fft"
    IFFT = "ifft"
    RFFT = "rfft"
    IRFFT = "irfft"


TAKES = {
    FftType.FFT: ("complex64", "complex128"),
    FftType.IFFT: ("complex64", "complex128"),
    FftType.RFFT: ("float32", "float64"),
    FftType.IRFFT: ("complex64", "complex128"),
}
"""The dtypes of operands."""


@dataclass(frozen=True, slots=True)
class Fft(Primitive):
    """The transform of lengths ``fft_lengths`` along that many last axes.

    FFT, IFFT: complex to complex; IFFT divides by the number of elements. RFFT: real to the first
    n/2 + 1 elements along the last axis, which determine the rest by symmetry; IRFFT: its inverse.
    """

    fft_type: FftType
    fft_lengths: tuple[int, ...]
    name: ClassVar[str] = "fft"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        n = len(self.fft_lengths)
        half = self.fft_lengths[-1] // 2 + 1 if n else 0
        lengths = self.fft_lengths
        wanted = (*lengths[:-1], half) if self.fft_type is FftType.IRFFT else lengths
        names = TAKES[self.fft_type]
        if not n or x.shape[-n:] != wanted or x.dtype.name not in names or 0 in lengths:
            raise IllTyped(
                f"{self.fft_type.value} transforms whole axes",
                expected=f"{' or '.join(names)}, with last axes {wanted}, none empty",
                found=str(x),
            )
        lead = x.shape[:-n]
        match self.fft_type:
            case FftType.RFFT:
                out = x.update(shape=(*lead, *lengths[:-1], half), dtype=complex_dtype(x.dtype))
            case FftType.IRFFT:
                out = x.update(shape=(*lead, *lengths), dtype=real_dtype(x.dtype))
            case _:
                out = x
        return Typing((out.strong(),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        # 5·n·log2(n) along each axis; half of that for real numbers.
        real = self.fft_type in (FftType.RFFT, FftType.IRFFT)
        whole = elements(ins if self.fft_type is FftType.RFFT else outs)
        bits = sum([(n - 1).bit_length() for n in self.fft_lengths])
        return moved(ins, outs, flops=5 * whole * bits // (2 if real else 1))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        axes = tuple(range(-len(self.fft_lengths), 0))
        if self.fft_type is FftType.IRFFT:
            return (np.fft.irfftn(x, self.fft_lengths, axes).astype(real_dtype(x.dtype)),)
        if self.fft_type is FftType.RFFT:
            made = np.fft.rfftn(x, self.fft_lengths, axes)
        else:
            function = np.fft.fftn if self.fft_type is FftType.FFT else np.fft.ifftn
            made = function(x, self.fft_lengths, axes)
        return (made.astype(complex_dtype(x.dtype)),)
