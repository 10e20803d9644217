"""The error function and its kin, and the normal distribution."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument
from effax.lax import elementwise as el
from effax.lax import special as lax_special
from effax.numpy import ufuncs as uf
from effax.numpy.predicates import isinf
from effax.scipy.formulas import floats, numbers, slopes
from effax.scipy.special.plane import faddeeva

__all__ = ["erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

ROOT_HALF: Final = math.sqrt(0.5)
ROOT_PI: Final = math.sqrt(math.pi)

# Coefficients of (1 + 2x)·exp(x²)·erfc(x) for x >= 0, as a polynomial in t = (x - K)/(x + K) with
# the highest power first: interpolation at Chebyshev's points in t. The form is that of M. Shepherd
# and J. Laframboise, "Chebyshev approximation of (1 + 2x)exp(x²)erfc x in 0 <= x < ∞" (1981).
_K: Final = 3.75
_SCALED: Final = (
    1.3644024033145443e-11, 1.8240025042773818e-12, -1.689091555613108e-10,
    -4.9844152844245993e-11, 1.2007166392684951e-09, 5.826552475656065e-10,
    -7.094843440843675e-09, -4.454188309154417e-09, 4.163213221156018e-08,
    2.4363842659574258e-08, -2.616930395796968e-07, -5.832039466992171e-08,
    1.7537598965322038e-06, -9.728185029677076e-07, -1.1445178311518049e-05,
    2.238390038090339e-05, 5.164944451696205e-05, -0.0002901539762990061,
    0.00029371358771431225, 0.0017556258319139934, -0.009746579546733069,
    0.028362277421569364, -0.058693398590614, 0.09230432116019513, -0.10880393014170486,
    0.08227673849015112, 0.00358541548546365, -0.14024059858554702, 1.2375126308378275,
)  # fmt: skip


def erf(x: ArrayLike) -> Array:
    """Return the error function of ``x``. Raises IllTyped for a complex ``x``.

    >>> special.erf(jnp.array([0.0, jnp.inf]))
    Array([0., 1.], dtype=float32)
    """
    return el.erf(*floats("erf", x))


def erfc(x: ArrayLike) -> Array:
    """Return ``1 - erf(x)``, accurate where it is small. Raises IllTyped for a complex ``x``.

    >>> special.erfc(jnp.array([0.0, jnp.inf]))
    Array([1., 0.], dtype=float32)
    """
    return el.erfc(*floats("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """Return the inverse error function of ``x``. Raises IllTyped for a complex ``x``.

    >>> special.erfinv(jnp.array([0.0, 1.0]))
    Array([ 0., inf], dtype=float32)
    """
    return lax_special.erf_inv(*floats("erfinv", x))


@slopes(lambda x, y: uf.multiply(-ROOT_PI / 2, uf.exp(uf.square(x))))
def _erfc_inverse(y: Array) -> Array:
    """Refine an approximation by Halley's method on erfc(x) = y, for y <= 1."""
    upper = uf.greater(y, 1)
    rest = uf.where(upper, uf.subtract(2, y), y)
    tail = uf.less(rest, 1e-3)
    near = lax_special.erf_inv(uf.subtract(1, uf.where(tail, 0.5, rest)))
    inside = uf.bitwise_and(uf.greater(rest, 0), uf.less_equal(rest, 1))
    safe = uf.where(inside, rest, 0.5)
    x = uf.where(tail, lax_special.large_argument(safe), near)
    for _ in range(3 if x.dtype == np.float64 else 2):
        scaled = uf.multiply(uf.subtract(el.erfc(x), safe), uf.exp(uf.square(x)))
        step = uf.multiply(ROOT_PI / 2, scaled)
        # Halley's correction: erfc'' / erfc' = -2x.
        x = uf.add(x, uf.true_divide(step, uf.subtract(1, uf.multiply(x, step))))
    edge = uf.where(uf.equal(rest, 0), math.inf, math.nan)
    x = uf.where(inside, x, edge)
    return uf.where(upper, uf.negative(x), x)


def _wide(x: Array) -> Array:
    return x if x.dtype.itemsize >= 4 else uf.astype(x, np.float32)


def erfcinv(y: ArrayLike) -> Array:
    """Return the inverse of ``erfc``, accurate for small ``y``.

    Raises:
        IllTyped: ``y`` is complex.

    >>> special.erfcinv(jnp.array([0.0, 1.0, 2.0]))
    Array([ inf,   0., -inf], dtype=float32)
    """
    (value,) = floats("erfcinv", y)
    return uf.astype(_erfc_inverse(_wide(value)), value.dtype)


def erfcx(x: ArrayLike) -> Array:
    """Return ``exp(x**2) * erfc(x)``, which decreases as ``1 / x``.

    >>> special.erfcx(jnp.array([0.0, jnp.inf]))
    Array([1., 0.], dtype=float32)
    """
    (value,) = numbers("erfcx", x)
    if is_complex(value.dtype):
        return faddeeva(uf.multiply(value, 1j))
    return uf.astype(scaled_erfc(_wide(value)), value.dtype)


def scaled_erfc(x: Array) -> Array:
    """Return exp(x²)·erfc(x); for negative x, 2·exp(x²) less that at -x."""
    size = uf.absolute(x)
    infinite = isinf(x)
    finite = uf.where(infinite, 1, size)
    t = uf.true_divide(uf.subtract(finite, _K), uf.add(finite, _K))
    total = uf.multiply(t, _SCALED[0])
    for c in _SCALED[1:-1]:
        total = uf.multiply(uf.add(total, c), t)
    total = uf.add(total, _SCALED[-1])
    right = uf.where(infinite, 0, uf.true_divide(total, uf.add(1, uf.multiply(2, finite))))
    negative = uf.less(x, 0)
    reflected = uf.subtract(uf.multiply(2, uf.exp(uf.square(uf.where(negative, x, 0)))), right)
    return uf.where(negative, reflected, right)


def ndtr(x: ArrayLike) -> Array:
    """Return the cumulative distribution function of the normal distribution.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.ndtr(jnp.array([0.0, jnp.inf]))
    Array([0.5, 1. ], dtype=float32)
    """
    (value,) = floats("ndtr", x)
    return uf.multiply(0.5, el.erfc(uf.multiply(value, -ROOT_HALF)))


def ndtri(p: ArrayLike) -> Array:
    """Return the inverse of ``ndtr``: the quantiles of the normal distribution.

    Raises:
        IllTyped: ``p`` is complex.

    >>> special.ndtri(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    (value,) = floats("ndtri", p)
    return uf.astype(_quantile(_wide(value)), value.dtype)


# d ndtri(p) = √(2π)·exp(x²/2)·dp
@slopes(lambda x, p: uf.multiply(math.sqrt(2 * math.pi), uf.exp(uf.multiply(0.5, uf.square(x)))))
def _quantile(p: Array) -> Array:
    # 0 - x is 0 at the median, and -x is -0.
    return uf.subtract(0, uf.multiply(math.sqrt(2), _erfc_inverse(uf.multiply(2, p))))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Return the logarithm of ``ndtr``, accurate in both tails.

    Args:
        x: array or scalar.
        series_order: accepted as in JAX; the result is accurate to the dtype for every value.

    Returns:
        Floating array of the shape of ``x``.

    Raises:
        BadArgument: ``series_order`` is negative.
        IllTyped: ``x`` is complex.

    >>> special.log_ndtr(jnp.array([0.0, -100.0]))
    Array([-6.9314718e-01, -5.0055244e+03], dtype=float32)
    """
    if series_order < 0:
        raise BadArgument("unknown series order", "0 or more", repr(series_order))
    (value,) = floats("log_ndtr", x)
    return uf.astype(_log_ndtr(_wide(value)), value.dtype)


def _log_ndtr_slope(y: Array, x: Array) -> Array:
    # d log Φ(x) = φ(x)/Φ(x) = √(2/π)/erfcx(-x/√2)
    return uf.true_divide(math.sqrt(2 / math.pi), scaled_erfc(uf.multiply(x, -ROOT_HALF)))


@slopes(_log_ndtr_slope)
def _log_ndtr(x: Array) -> Array:
    tail = uf.less(x, -1)
    z = uf.multiply(x, -ROOT_HALF)
    scaled = scaled_erfc(uf.where(tail, z, 1))
    low = uf.subtract(uf.log(uf.multiply(0.5, scaled)), uf.multiply(0.5, uf.square(x)))
    low = uf.where(isinf(x), -math.inf, low)
    high = uf.log1p(uf.multiply(-0.5, el.erfc(uf.negative(z))))
    return uf.where(tail, low, high)
