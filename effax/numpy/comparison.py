"""Comparison of whole arrays."""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.promotion import broadcast_shapes
from effax.ir.errors import IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.predicates import isnan
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
    """Return whether no elements differ by more than ``atol + rtol * abs(b)``.

    Args:
        a: array or scalar.
        b: array or scalar that broadcasts with ``a``.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether nans are equal.

    Returns:
        Boolean scalar.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]), atol=0.2)
    Array(True, dtype=bool)
    """
    return all_(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: object, a2: object, equal_nan: bool = False) -> Array:
    """Return whether two arrays have the same shape and elements.

    Args:
        a1: first array, scalar, or nested sequences of them.
        a2: second one.
        equal_nan: whether nans are equal.

    Returns:
        Boolean scalar.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return as_value(False)
    same = uf.equal(x, y)
    if equal_nan:
        same = uf.bitwise_or(same, uf.bitwise_and(isnan(x), isnan(y)))
    return all_(same)


def array_equiv(a1: object, a2: object) -> Array:
    """Return whether two arrays broadcast to one shape and are equal there.

    Args:
        a1: first array, scalar, or nested sequences of them.
        a2: second one.

    Returns:
        Boolean scalar.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    x, y = asarray(a1), asarray(a2)
    try:
        broadcast_shapes([x.shape, y.shape], "array_equiv")
    except IllTyped:
        return as_value(False)
    return all_(uf.equal(x, y))
