"""Bits of integers as arrays of booleans, and the spacing of floats."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import shared_docs
from effax.ir import prims as p
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.numpy.padding import pad
from effax.numpy.predicates import isfinite, real_operand
from effax.numpy.reduce import sum

__all__ = ["packbits", "spacing", "unpackbits"]

_PARAMETERS: Final = {
    "a": "array.",
    "axis": "axis; None for the flattened array.",
    "count": "number of bits to keep; a negative one drops as many, None keeps all.",
    "bitorder": '"big" for the most significant bit first, or "little".',
}


def _on_last_axis(
    a: ArrayLike, axis: int | None, bitorder: str, families: tuple[str, ...], what: str
) -> tuple[Array, int]:
    """Return the array with the axis at the end, and where it was."""
    x = as_value(a, f"the argument of {what}")
    if family(x.dtype) not in families or (what == "unpackbits" and x.dtype != np.uint8):
        raise IllTyped(f"{what} takes other elements", " or ".join(families), str(x.type))
    if bitorder not in ("big", "little"):
        raise BadArgument(f"unknown order of {what}", "'big' or 'little'", repr(bitorder))
    if axis is None:
        x = sh.ravel(x)
    place = plain_axis(-1 if axis is None else axis, x.ndim, what)
    return sh.moveaxis(x, place, -1), place


def _shifts(bitorder: str) -> np.ndarray:
    order = np.arange(8, dtype=np.uint8)
    return order if bitorder == "little" else order[::-1]


@shared_docs(_PARAMETERS, "Array of uint8 with an eighth of the elements along the axis.")
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return the bytes whose bits are set where elements are not zero, padded by zeros.

    Raises:
        IllTyped: the elements are not booleans or integers.

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x, place = _on_last_axis(a, axis, bitorder, ("bool", "int", "uint"), "packbits")
    bits = uf.astype(uf.not_equal(x, 0), np.uint8)
    bits = pad(bits, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 8)])
    bits = sh.reshape(bits, (*x.shape[:-1], bits.shape[-1] // 8, 8))
    packed = sum(uf.left_shift(bits, _shifts(bitorder)), -1, np.uint8)
    return sh.moveaxis(packed, -1, place)


@shared_docs(_PARAMETERS, "Array of uint8, zeros and ones, with 8 for each element along the axis.")
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Return the bits of bytes.

    Raises:
        IllTyped: the elements are not of uint8.

    >>> jnp.unpackbits(jnp.array([160], jnp.uint8), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    x, place = _on_last_axis(a, axis, bitorder, ("uint",), "unpackbits")
    bits = uf.right_shift(sh.expand_dims(x, -1), _shifts(bitorder))
    bits = sh.reshape(uf.bitwise_and(bits, 1), (*x.shape[:-1], 8 * x.shape[-1]))
    if count is not None:
        more = max(0, count - bits.shape[-1])
        bits = pad(bits, [(0, 0)] * (x.ndim - 1) + [(0, more)])[..., :count]
    return sh.moveaxis(bits, -1, place)


def spacing(x: ArrayLike, /) -> Array:
    """Return the distance to the next float away from 0, with the sign of ``x``.

    It is computed from the bits, since XLA takes subnormal numbers for zeros.

    Raises:
        IllTyped: ``x`` is complex.

    >>> jnp.spacing(jnp.array([1.0, -1.0]))
    Array([ 1.1920929e-07, -1.1920929e-07], dtype=float32)
    """
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x, "spacing"), "the operand of spacing"))
    value = pr.converted(as_value(x), dtype, weak)
    integer = np.dtype(f"i{dtype.itemsize}")
    mantissa = int(finfo(dtype).nmant)
    bits = bind1(p.BitcastConvertType(integer), value)
    size = uf.bitwise_and(bits, np.iinfo(integer).max)
    # The exponent less the number of bits of the mantissa, or a bit of a subnormal number.
    exponent = uf.right_shift(size, mantissa)
    normal = uf.left_shift(uf.subtract(exponent, mantissa), mantissa)
    subnormal = uf.left_shift(1, uf.maximum(uf.subtract(exponent, 1), 0))
    gap = uf.where(uf.greater(exponent, mantissa), normal, subnormal)
    # The sign bit, but not that of -0.
    negative = uf.bitwise_and(uf.less(bits, 0), uf.not_equal(size, 0))
    signed = uf.where(negative, uf.bitwise_or(gap, np.iinfo(integer).min), gap)
    made = bind1(p.BitcastConvertType(dtype), signed)
    return uf.where(isfinite(value), made, np.nan)
