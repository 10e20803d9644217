"""Comparison of whole arrays."""

from __future__ import annotations

from effax.arrays.device_array import Array, ArrayLike, as_value
from effax.ir.errors import IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import isnan
from effax.numpy.promotion import broadcast_shapes
from effax.numpy.reduce import all as all_
from effax.numpy.special import isclose

__all__ = [
    "allclose", "array_equal", "array_equiv",
]  # fmt: skip


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether no elements differ by more than ``atol + rtol · |b|``."""
    return all_(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements."""
    x, y = as_value(a1, "the first array"), as_value(a2, "the second array")
    if x.shape != y.shape:
        return as_value(False)
    same = uf.equal(x, y)
    if equal_nan:
        same = uf.bitwise_or(same, uf.bitwise_and(isnan(x), isnan(y)))
    return all_(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements there."""
    x, y = as_value(a1, "the first array"), as_value(a2, "the second array")
    try:
        broadcast_shapes([x.shape, y.shape], "array_equiv")
    except IllTyped:
        return as_value(False)
    return all_(uf.equal(x, y))
