"""Rules of Fourier transforms, which are linear."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from effax.ir.dtypes import complex_dtype
from effax.ir.prims import elementwise as ew
from effax.ir.prims.fft import Fft, FftType
from effax.ir.prims.shape import Iota, Pad
from effax.ir.syntax import Atom
from effax.transforms.rulebook import (
    EMPTY_BOOK,
    BatchOut,
    Linear,
    RuleBook,
    RuleBuilder,
    Rules,
    WholeOnly,
)
from effax.transforms.rules.common import linear_jvp, no_refs
from effax.transforms.rules.linear import only
from effax.transforms.rules.pointwise import const, mul, scaled, where


def _transpose(
    b: RuleBuilder, prim: Fft, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # Transforms of complex numbers are symmetric matrices: their own transposes.
    ct = only(cts)
    match prim.fft_type:
        case FftType.RFFT:
            return [_of_rfft(b, prim, ct)]
        case FftType.IRFFT:
            return [_of_irfft(b, prim, ct)]
        case _:
            return [b(prim, ct)]


def _of_rfft(b: RuleBuilder, prim: Fft, ct: Atom) -> Atom:
    """<ct, rfft(x)> = <Re fft(ct with zeros for the other half), x>."""
    n = prim.fft_lengths[-1]
    ndim = len(ct.type.shape)
    missing = n - ct.type.shape[-1]
    config = [(0, 0, 0)] * (ndim - 1)
    whole = b(Pad((*config, (0, missing, 0))), ct, const(0, ct))
    return b(ew.Real(), b(Fft(FftType.FFT, prim.fft_lengths), whole))


def _of_irfft(b: RuleBuilder, prim: Fft, ct: Atom) -> Atom:
    """irfft(y) = Re Σ w_k y_k e^{...}/N with w = 1 where k is its own mirror image, else 2.

    So its transpose is w · conj(rfft(ct)) / N.
    """
    n = prim.fft_lengths[-1]
    made = b(Fft(FftType.RFFT, prim.fft_lengths), ct)
    shape = made.type.shape
    place = b(Iota(ct.type.dtype, shape, len(shape) - 1))
    inner = b(ew.Gt(), place, const(0, place))
    if n % 2 == 0:
        inner = b(ew.And(), inner, b(ew.Lt(), place, const(n // 2, place)))
    weights = where(b, inner, const(2, place), const(1, place))
    wide = b(ew.ConvertElementType(complex_dtype(ct.type.dtype)), weights)
    return scaled(b, mul(b, wide, b(ew.Conj(), made)), 1 / prod(prim.fft_lengths))


def _batch(
    b: RuleBuilder, prim: Fft, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


FOURIER: Final[RuleBook] = EMPTY_BOOK.extend(
    Fft, Rules(linear_jvp, _transpose, _batch, WholeOnly(), no_refs)
)
