"""The gamma and beta functions, incomplete ones, and counts by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import static_int
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument
from effax.lax import special as lax_special
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import power
from effax.numpy.predicates import isinf, isnan, signbit
from effax.scipy.formulas import floats, numbers, slopes
from effax.scipy.special.plane import gamma_of_complex, log_gamma_of_complex

__all__ = [
    "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc", "gammaincc",
    "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
]  # fmt: skip

OPERANDS: Final = {
    "a": "array or scalar.",
    "b": "array or scalar.",
    "x": "array or scalar.",
    "n": "whole numbers, array or scalar.",
    "q": "array or scalar; 1 by default, which is Riemann's function.",
    "z": "array or scalar.",
    "m": "array or scalar.",
    "k": "array or scalar.",
}
RESULT: Final = "Floating array of the broadcast shape."


def gammaln(x: ArrayLike) -> Array:
    """Return ``log(abs(gamma(x)))``. Raises IllTyped for a complex ``x``.

    >>> special.gammaln(jnp.array([1.0, 0.0]))
    Array([ 0., inf], dtype=float32)
    """
    return lax_special.lgamma(*floats("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """Return the logarithm of the gamma function; nan where that is negative.

    Of complex numbers, the analytic one, with its cut along the negative axis.

    >>> special.loggamma(jnp.array([1.0, -0.5]))
    Array([ 0., nan], dtype=float32)
    """
    (value,) = numbers("loggamma", x)
    if is_complex(value.dtype):
        return log_gamma_of_complex(value)
    negative = uf.less(value, 0)
    safe = uf.where(negative, 1, value)
    return uf.where(negative, math.nan, lax_special.lgamma(safe))


def digamma(x: ArrayLike) -> Array:
    """Return the derivative of ``gammaln``; nan at negative integers, -inf at 0.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.digamma(jnp.array([1.0]))
    Array([-0.5772157], dtype=float32)
    """
    return lax_special.digamma(*floats("digamma", x))


@shared_docs(OPERANDS, RESULT)
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the ``n``-th derivative of ``digamma``; it is differentiated in ``x`` only.

    Raises:
        IllTyped: an operand is complex.

    >>> special.polygamma(1, jnp.array([1.0]))
    Array([1.644934], dtype=float32)
    """
    return lax_special.polygamma(*floats("polygamma", n, x))


@shared_docs(OPERANDS, RESULT)
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Return Hurwitz's zeta function, the sum of ``(q + k) ** -x`` for k = 0, 1, 2, ...

    Raises:
        IllTyped: an operand is complex.

    >>> special.zeta(2.0, jnp.array([1.0]))
    Array([1.644934], dtype=float32)
    """
    return lax_special.zeta(*floats("zeta", x, 1.0 if q is None else q))


# The terms of Stirling's series, the highest power of 1/x² first.
_STIRLING: Final = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    total = uf.add(uf.multiply(x, coefficients[0]), coefficients[1])
    for c in coefficients[2:]:
        total = uf.add(uf.multiply(total, x), c)
    return total


def _of_positive(x: Array) -> Array:
    """Return Γ(x) for x >= 1/2: Stirling's formula from 10 on, else by Γ(x + 1) = x·Γ(x)."""
    far = uf.greater_equal(x, 10)
    large = uf.where(far, uf.minimum(x, 200), 10)
    series = uf.true_divide(_horner(_STIRLING, uf.true_divide(1, uf.square(large))), large)
    # The root of the power overflows only where its square does.
    root = power(large, uf.multiply(0.5, uf.subtract(large, 0.5)))
    root = uf.multiply(root, uf.exp(uf.multiply(0.5, uf.subtract(series, large))))
    high = uf.multiply(uf.square(root), math.sqrt(2 * math.pi))
    rest, product = uf.where(far, 1, x), uf.where(far, 1.0, uf.true_divide(x, x))
    for _ in range(8):
        above = uf.greater_equal(rest, 2.5)
        rest = uf.where(above, uf.subtract(rest, 1), rest)
        product = uf.where(above, uf.multiply(product, rest), product)
    return uf.where(far, high, uf.multiply(product, uf.exp(lax_special.lgamma(rest))))


@slopes(lambda y, x: uf.multiply(y, lax_special.digamma(x)))
def _gamma(x: Array) -> Array:
    low = uf.less(x, 0.5)
    whole = uf.equal(uf.floor(x), x)
    finite = uf.where(isinf(x), 1, x)
    size = _of_positive(uf.where(low, uf.subtract(1, finite), finite))
    # Γ(x)·Γ(1 - x) = π/sin(πx), with the sine of the distance to the nearest whole number
    near = uf.floor(uf.add(finite, 0.5))
    sine = uf.sin(uf.multiply(math.pi, uf.subtract(finite, near)))
    odd = uf.not_equal(uf.multiply(2, uf.floor(uf.multiply(0.5, near))), near)
    sine = uf.where(odd, uf.negative(sine), sine)
    mirrored = uf.true_divide(math.pi, uf.multiply(sine, size))
    value = uf.where(low, mirrored, size)
    pole = uf.bitwise_and(uf.less(x, 0), uf.bitwise_or(whole, isinf(x)))
    zero = uf.where(signbit(x), -math.inf, math.inf)
    value = uf.where(uf.equal(x, 0), zero, uf.where(pole, math.nan, value))
    return uf.where(uf.equal(x, math.inf), math.inf, value)


def gamma(x: ArrayLike) -> Array:
    """Return the gamma function; nan at negative integers.

    >>> special.gamma(jnp.array([5.0, 0.0, -1.0]))
    Array([24., inf, nan], dtype=float32)
    """
    (value,) = numbers("gamma", x)
    if is_complex(value.dtype):
        return gamma_of_complex(value)
    wide = value if value.dtype.itemsize >= 4 else uf.astype(value, np.float32)
    return uf.astype(_gamma(wide), value.dtype)


def gammasgn(x: ArrayLike) -> Array:
    """Return the sign of the gamma function; nan at negative integers.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.gammasgn(jnp.array([1.0, -0.5, -1.0]))
    Array([ 1., -1., nan], dtype=float32)
    """
    (value,) = floats("gammasgn", x)
    floor = uf.floor(value)
    odd = uf.not_equal(uf.multiply(2, uf.floor(uf.multiply(0.5, floor))), floor)
    negative = uf.less(value, 0)
    sign = uf.where(uf.bitwise_and(negative, odd), -1, uf.where(signbit(value), 1, 1))
    sign = uf.where(uf.bitwise_and(uf.equal(value, 0), signbit(value)), -1, sign)
    pole = uf.bitwise_and(negative, uf.equal(floor, value))
    return uf.where(uf.bitwise_or(pole, isnan(value)), math.nan, uf.astype(sign, value.dtype))


@shared_docs(OPERANDS, RESULT)
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the logarithm of the magnitude of the beta function.

    Raises:
        IllTyped: an operand is complex.

    >>> special.betaln(1.0, jnp.array([2.0]))
    Array([-0.6931472], dtype=float32)
    """
    return _betaln(*floats("betaln", a, b))


def _betaln(a: Array, b: Array) -> Array:
    low, high = uf.minimum(a, b), uf.maximum(a, b)
    far = uf.bitwise_and(uf.greater_equal(high, 10), uf.greater(low, 0))
    plain = uf.add(
        lax_special.lgamma(low),
        uf.subtract(lax_special.lgamma(high), lax_special.lgamma(uf.add(low, high))),
    )
    value = uf.where(far, _far_betaln(uf.where(far, low, 1), uf.where(far, high, 11)), plain)
    pole = uf.bitwise_or(uf.equal(a, 0), uf.equal(b, 0))
    empty = uf.bitwise_and(uf.greater(low, 0), uf.equal(high, math.inf))
    value = uf.where(pole, math.inf, uf.where(empty, -math.inf, value))
    return uf.where(uf.bitwise_or(isnan(a), isnan(b)), math.nan, value)


def _far_betaln(low: Array, high: Array) -> Array:
    """Return log B by Stirling's formula for Γ(high)/Γ(low + high), which cancels."""
    total = uf.add(low, high)

    def rest(x: Array) -> Array:
        return uf.true_divide(_horner(_STIRLING, uf.true_divide(1, uf.square(x))), x)

    ratio = uf.multiply(uf.subtract(high, 0.5), uf.log1p(uf.true_divide(low, high)))
    ratio = uf.add(ratio, uf.multiply(low, uf.subtract(uf.log(total), 1)))
    ratio = uf.add(ratio, uf.subtract(rest(total), rest(high)))
    return uf.subtract(lax_special.lgamma(low), ratio)


@shared_docs(OPERANDS, RESULT)
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the beta function, ``gamma(a) * gamma(b) / gamma(a + b)``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.beta(1.0, jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    p, q = floats("beta", a, b)
    sign = uf.multiply(gammasgn(p), uf.multiply(gammasgn(q), gammasgn(uf.add(p, q))))
    return uf.multiply(sign, uf.exp(_betaln(p, q)))


@shared_docs(OPERANDS, RESULT)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function, with derivatives in all operands.

    Raises:
        IllTyped: an operand is complex.

    >>> special.betainc(1.0, 1.0, jnp.array([0.25]))
    Array([0.25], dtype=float32)
    """
    return lax_special.betainc(*floats("betainc", a, b, x))


@shared_docs(OPERANDS, RESULT)
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized lower incomplete gamma function, with derivatives in both operands.

    Raises:
        IllTyped: an operand is complex.

    >>> special.gammainc(1.0, jnp.array([0.0, jnp.inf]))
    Array([0., 1.], dtype=float32)
    """
    return lax_special.igamma(*floats("gammainc", a, x))


@shared_docs(OPERANDS, RESULT)
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized upper incomplete gamma function, ``1 - gammainc(a, x)``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.gammaincc(1.0, jnp.array([0.0, jnp.inf]))
    Array([1., 0.], dtype=float32)
    """
    return lax_special.igammac(*floats("gammaincc", a, x))


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Return the logarithm of the multivariate gamma function.

    Args:
        a: array or scalar above ``(d - 1) / 2``.
        d: number of dimensions, a static integer.

    Returns:
        Floating array of the shape of ``a``.

    Raises:
        IllTyped: ``a`` is complex.

    >>> special.multigammaln(jnp.array([2.0]), 1)
    Array([0.], dtype=float32)
    """
    (value,) = floats("multigammaln", a)
    count = static_int(d, "the dimension of multigammaln")
    total = uf.add(uf.multiply(0, value), count * (count - 1) * 0.25 * math.log(math.pi))
    for k in range(count):
        total = uf.add(total, lax_special.lgamma(uf.subtract(value, k / 2)))
    return total


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Return ``gamma(n + 1)``; 0 for negative ``n``.

    Args:
        n: array or scalar.
        exact: must be False.

    Returns:
        Floating array of the shape of ``n``.

    Raises:
        BadArgument: ``exact`` is True.
        IllTyped: ``n`` is complex.

    >>> special.factorial(jnp.array([4, -1]))
    Array([24.,  0.], dtype=float32)
    """
    if exact:
        raise BadArgument("factorial of integers is not available", "exact=False", repr(exact))
    (value,) = floats("factorial", n)
    negative = uf.less(value, 0)
    return uf.where(negative, 0, gamma(uf.add(uf.where(negative, 1, value), 1)))


@shared_docs(OPERANDS, RESULT)
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Return the rising factorial ``gamma(z + m) / gamma(z)``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.poch(jnp.array([2.0]), 3.0)
    Array([24.], dtype=float32)
    """
    return _poch(*floats("poch", z, m))


@slopes(
    lambda y, z, m: uf.multiply(
        y, uf.subtract(lax_special.digamma(uf.add(z, m)), lax_special.digamma(z))
    ),
    lambda y, z, m: uf.multiply(y, lax_special.digamma(uf.add(z, m))),
)
def _poch(z: Array, m: Array) -> Array:
    total = uf.add(z, m)
    small = uf.less(uf.maximum(uf.absolute(z), uf.absolute(total)), 25)
    size = uf.exp(uf.subtract(lax_special.lgamma(total), lax_special.lgamma(z)))
    by_logs = uf.multiply(uf.multiply(gammasgn(total), gammasgn(z)), size)
    one = uf.where(small, total, 1), uf.where(small, z, 1)
    quotient = uf.where(small, uf.true_divide(gamma(one[0]), gamma(one[1])), by_logs)
    # A pole of the divisor alone is a zero; both have a finite ratio, by reflection.
    poles = [uf.bitwise_and(uf.less_equal(x, 0), uf.equal(uf.floor(x), x)) for x in (total, z)]
    reflected = uf.exp(
        uf.subtract(
            lax_special.lgamma(uf.subtract(1, uf.where(poles[1], z, 0))),
            lax_special.lgamma(uf.subtract(1, uf.where(poles[0], total, 0))),
        )
    )
    odd = uf.not_equal(uf.multiply(2, uf.floor(uf.multiply(0.5, m))), m)
    reflected = uf.where(odd, uf.negative(reflected), reflected)
    value = uf.where(poles[1], uf.where(poles[0], reflected, 0), quotient)
    return uf.where(uf.equal(m, 0), 1, value)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:  # noqa: N803  SciPy's name
    """Return the number of ways to choose ``k`` of ``N`` things.

    Args:
        N: number of things, array or scalar.
        k: number of those that are chosen, array or scalar.
        repetition: whether a thing may be chosen again.

    Returns:
        Floating array of the broadcast shape; 0 where ``k`` is negative or above ``N``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.comb(5, jnp.array([2, 6]))
    Array([10.,  0.], dtype=float32)
    """
    n, count = floats("comb", N, k)
    if repetition:
        n = uf.where(uf.equal(count, 0), n, uf.subtract(uf.add(n, count), 1))
    outside = uf.bitwise_or(uf.less(count, 0), uf.greater(count, n))
    outside = uf.bitwise_or(outside, uf.less(n, 0))
    return uf.where(outside, 0, _comb(*[uf.where(outside, 1, x) for x in (n, count)]))


@slopes(
    lambda y, n, k: uf.multiply(
        y,
        uf.subtract(
            lax_special.digamma(uf.add(n, 1)), lax_special.digamma(uf.add(uf.subtract(n, k), 1))
        ),
    ),
    lambda y, n, k: uf.multiply(
        y,
        uf.subtract(
            lax_special.digamma(uf.add(uf.subtract(n, k), 1)), lax_special.digamma(uf.add(k, 1))
        ),
    ),
)
def _comb(n: Array, k: Array) -> Array:
    # 1/C(n, k) = (n + 1)·B(n - k + 1, k + 1)
    rest = uf.subtract(n, k)
    value = uf.exp(uf.negative(uf.add(uf.log1p(n), _betaln(uf.add(rest, 1), uf.add(k, 1)))))
    whole = uf.bitwise_and(uf.equal(uf.floor(n), n), uf.equal(uf.floor(k), k))
    exact = uf.bitwise_and(whole, uf.less(value, 2.0 ** (23 if n.dtype.itemsize < 8 else 48)))
    return uf.where(exact, uf.rint(value), value)
