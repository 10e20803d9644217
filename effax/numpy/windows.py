"""Windows: weights of samples that fall off to both sides."""

from __future__ import annotations

import math

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import nonnegative
from effax.arrays.conversion import as_value
from effax.arrays.creation import ones
from effax.arrays.promotion import default_dtype
from effax.lax.elementwise import stop_gradient
from effax.lax.special import bessel_i0e
from effax.numpy import ufuncs as uf
from effax.numpy.ranges import arange

__all__ = [
    "bartlett", "blackman", "hamming", "hanning", "i0", "kaiser",
]  # fmt: skip


def _phases(m: int, what: str) -> Array | None:
    """Return points from -1 to 1; None for windows of at most one."""
    n = nonnegative(m, f"the number of points of {what}")
    dtype = default_dtype(float)
    return arange(1 - n, n, 2, dtype) / (n - 1) if n > 1 else None


def _flat(m: int) -> Array:
    return ones(m, default_dtype(float))


def bartlett(M: int) -> Array:  # noqa: N803  NumPy's name
    """Return the triangular window ``1 - |x|``, for x from -1 to 1.

    Args:
        M: number of points.

    Returns:
        Vector of floats.

    Raises:
        BadArgument: the number of points is negative.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    x = _phases(M, "bartlett")
    return _flat(M) if x is None else 1 - uf.abs(x)


def _cosines(M: int, what: str, *weights: float) -> Array:  # noqa: N803  NumPy's name
    """Return the sum of weighted cosines of multiples of pi x."""
    x = _phases(M, what)
    if x is None:
        return _flat(M)
    terms = [w * uf.cos((k * math.pi) * x) for k, w in enumerate(weights) if k]
    total = terms[0] + weights[0]
    for term in terms[1:]:
        total = total + term
    return total


def blackman(M: int) -> Array:  # noqa: N803  NumPy's name
    """Return the window ``0.42 + 0.5 cos(pi x) + 0.08 cos(2 pi x)``, for x from -1 to 1.

    Args:
        M: number of points.

    Returns:
        Vector of floats.

    Raises:
        BadArgument: the number of points is negative.

    >>> jnp.round(jnp.blackman(5), 2)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _cosines(M, "blackman", 0.42, 0.5, 0.08)


def hamming(M: int) -> Array:  # noqa: N803  NumPy's name
    """Return the window ``0.54 + 0.46 cos(pi x)``, for x from -1 to 1.

    Args:
        M: number of points.

    Returns:
        Vector of floats.

    Raises:
        BadArgument: the number of points is negative.

    >>> jnp.round(jnp.hamming(5), 2)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _cosines(M, "hamming", 0.54, 0.46)


def hanning(M: int) -> Array:  # noqa: N803  NumPy's name
    """Return the window ``0.5 + 0.5 cos(pi x)``, for x from -1 to 1.

    Args:
        M: number of points.

    Returns:
        Vector of floats.

    Raises:
        BadArgument: the number of points is negative.

    >>> jnp.round(jnp.hanning(5), 2)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines(M, "hanning", 0.5, 0.5)


def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind, of order 0.

    Args:
        x: real array or scalar.

    Returns:
        Floating array.

    >>> jnp.i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    value = as_value(x, "the argument of i0")
    value = pr.converted(value, *pr.inexact(value.dtype, value.weak_type))
    # abs(x) with the derivative 0 at 0, where the factors' derivatives cancel.
    size = value * stop_gradient(uf.sign(value))
    return bessel_i0e(value) * uf.exp(size)


def kaiser(M: int, beta: ArrayLike) -> Array:  # noqa: N803  NumPy's name
    """Return the window ``i0(beta sqrt(1 - x**2)) / i0(beta)``, for x from -1 to 1.

    Args:
        M: number of points.
        beta: shape; 0 is a rectangle.

    Returns:
        Vector of floats.

    Raises:
        BadArgument: the number of points is negative.

    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    x = _phases(M, "kaiser")
    if x is None:
        return _flat(M)
    y = beta * uf.sqrt(1 - x * x)
    # The scaled function does not overflow where beta is large.
    scaled = bessel_i0e(y) / bessel_i0e(uf.astype(as_value(beta), y.dtype))
    return scaled * uf.exp(uf.abs(y) - uf.abs(beta))
