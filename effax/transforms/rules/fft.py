"""Rules of Fourier transforms, which are linear."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import real_dtype
from effax.ir.prims import Fft, FftType, Iota
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchOut,
    Linear,
    RuleBuilder,
    RuleSet,
)
from effax.transforms.rules.common.generic_rules import array_rules, linear_jvp
from effax.transforms.rules.common.linear_operands import only
from effax.transforms.rules.common.pointwise import const, mul, scaled, where


def _transpose(
    b: RuleBuilder, prim: Fft, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # A complex transform is a symmetric matrix, its own transpose.
    ct = only(cts)
    match prim.fft_type:
        case FftType.RFFT:
            return [_of_rfft(b, prim, ct)]
        case FftType.IRFFT:
            return [_of_irfft(b, prim, ct)]
        case _:
            return [b(prim, ct)]


def _of_rfft(b: RuleBuilder, prim: Fft, ct: Atom) -> Atom:
    """Transpose rfft: y_k = Σ_n x_n·e^{-2πikn/N} for k <= N/2, so x_n' = Re Σ_k ct_k·e^{-2πikn/N}.

    With the weights w of :func:`_of_irfft` that sum is N·irfft(conj(ct)/w).
    """
    weighted = mul(b, _weights(b, prim, ct, 0.5), b(p.Conj(), ct))
    return scaled(b, b(Fft(FftType.IRFFT, prim.fft_lengths), weighted), prod(prim.fft_lengths))


def _of_irfft(b: RuleBuilder, prim: Fft, ct: Atom) -> Atom:
    """Transpose irfft: x_n = Re Σ_k w_k·y_k·e^{2πikn/N}/N, so y_k' = w_k·conj(rfft(ct))_k/N.

    The weight w_k is 1 if frequency k is its own mirror image (0 and N/2), else 2.
    """
    made = b(Fft(FftType.RFFT, prim.fft_lengths), ct)
    weighted = mul(b, _weights(b, prim, made, 2), b(p.Conj(), made))
    return scaled(b, weighted, 1 / prod(prim.fft_lengths))


def _weights(b: RuleBuilder, prim: Fft, like: Atom, weight: float) -> Atom:
    """Return 1 where a frequency of the last axis is its own mirror image, else ``weight``."""
    n = prim.fft_lengths[-1]
    shape = like.type.shape
    place = b(Iota(real_dtype(like.type.dtype), shape, len(shape) - 1))
    inner = b(p.Gt(), place, const(0, place))
    if n % 2 == 0:
        inner = b(p.And(), inner, b(p.Lt(), place, const(n // 2, place)))
    weights = where(b, inner, const(weight, place), const(1, place))
    return b(p.ConvertElementType(like.type.dtype), weights)


def _batch(
    b: RuleBuilder, prim: Fft, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


RULES: Final[RuleSet] = NO_RULES.extend(
    Fft,
    array_rules(jvp=linear_jvp, transpose=_transpose, batch=_batch),
)
