"""Discrete Fourier transforms by JAX's names."""

from __future__ import annotations

from collections.abc import Sequence

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.ir.dtypes import complex_dtype, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Fft, FftType

__all__ = ["FftType", "fft"]


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Return the Fourier transform along the last axes.

    Args:
        x: array or scalar.
        fft_type: a :class:`FftType` or its name: FFT, IFFT, RFFT (of real numbers, half of the
            last axis) or IRFFT.
        fft_lengths: sizes of the transformed axes, of real numbers for RFFT and IRFFT; ``x`` is
            returned for none.

    Returns:
        Array, real for IRFFT, else complex.

    Raises:
        BadArgument: an unknown transform.
        IllTyped: the last axes have other sizes, or RFFT of complex numbers.

    >>> lax.fft(jnp.array([1.0, 0.0, 0.0]), "RFFT", (3,))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    name = fft_type.name if isinstance(fft_type, FftType) else str(fft_type).upper()
    if name not in FftType.__members__:
        raise BadArgument("unknown transform", ", ".join(FftType.__members__), repr(fft_type))
    kind, value = FftType[name], as_value(x, "the operand of fft")
    if kind is FftType.RFFT and is_complex(value.dtype):
        raise IllTyped("rfft takes real arrays", "real numbers", str(value.type), "use FFT")
    dtype = pr.inexact(value.dtype, False)[0]
    value = pr.converted(value, dtype if kind is FftType.RFFT else complex_dtype(dtype), False)
    lengths = tuple(static_int(n, "a length of fft") for n in fft_lengths)
    return bind1(Fft(kind, lengths), value) if lengths else value
