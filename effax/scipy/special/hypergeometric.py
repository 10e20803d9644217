"""Hypergeometric functions, the Faddeeva function and spherical harmonics.

Sources: NIST Digital Library of Mathematical Functions, 13.2, 13.7 (Kummer's function), 15.2, 15.4,
15.8 (Gauss's function) and 14.30 (spherical harmonics); Pearson, Olver and Porter 2017, Numerical
methods for the computation of the confluent and Gauss hypergeometric functions; Weideman 1994,
Computation of the complex error function; Gautschi 1970, Efficient computation of the complex error
function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

import effax.numpy as jnp
from effax import lax
from effax.api.autodiff import jvp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import complex_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy.formulas import floats, numbers, slopes

__all__ = ["hyp1f1", "hyp2f1", "sph_harm_y", "wofz"]

OPERANDS: Final = dict.fromkeys("abcxz", "array or scalar.")
RESULT: Final = "Floating array of the broadcast shape."
MOST: Final = 100_000
"""The most terms of a series; nan where they do not suffice."""


def _sum_of_series(ratio: Callable[[Array], Array], first: Array) -> Array:
    """Return the sum of terms, of which each is ``ratio(k)`` times the one before it."""
    eps = float(jnp.finfo(first.dtype).eps)

    def grows(term: Array, total: Array) -> Array:
        return jnp.abs(term) > 0.25 * eps * jnp.abs(total)

    def more(state: tuple[Array, Array, Array, Array]) -> Array:
        k, term, before, total = state
        # Two terms, as one may vanish or be small by chance.
        return (k < MOST) & jnp.any(grows(term, total) | grows(before, total))

    def add(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, term, _, total = state
        following = term * ratio(k.astype(first.dtype))
        return k + 1, following, term, total + following

    k, term, _, total = lax.while_loop(more, add, (jnp.int32(0), first, first, first))
    return jnp.where((k == MOST) & (jnp.abs(term) > 1e3 * eps * jnp.abs(total)), jnp.nan, total)


def _ends(a: Array) -> Array:
    """Return whether a series ends: whether its parameter is a whole number up to 0."""
    return (a <= 0) & (a == jnp.floor(a))


def _gamma_ratio(above: list[Array], below: list[Array]) -> Array:
    """Return products of gamma functions; 0 at poles of those below, infinite at those above."""
    size = sum(map(lax.lgamma, above), jnp.zeros_like(above[0])) - sum(map(lax.lgamma, below), 0)
    sign = jnp.ones_like(size)
    for x in (*above, *below):
        negative = (x < 0) & (jnp.floor(x) % 2 != 0)
        sign = jnp.where(negative, -sign, sign)
    pole = jnp.zeros(size.shape, bool)
    for x in below:
        pole = pole | _ends(x)
    return jnp.where(pole, 0, sign * jnp.exp(jnp.where(pole, 0, size)))


def _slope_in(i: int, function: Callable[..., Array]) -> Callable[..., Array]:
    """Return the derivative of an elementwise function in operand i, by forward mode."""

    def slope(_: Array, *xs: Array) -> Array:
        def of(x: Array) -> Array:
            return function(*xs[:i], x, *xs[i + 1 :])

        return jvp(of, (xs[i],), (jnp.ones_like(xs[i]),))[1]

    return slope


def _confluent(a: Array, b: Array, x: Array) -> Array:
    # e^(-x)·M(a, b, x) = M(b - a, b, -x), so that all sums are of positive arguments.
    size = jnp.abs(x)
    p = jnp.where(x < 0, b - a, a)
    bound = 50 + 2 * (jnp.abs(p) * jnp.abs(p - b))
    far = (size > bound) & ~_ends(p)
    near = jnp.where(far, 1, size)
    summed = _sum_of_series(lambda k: (p + k) / (b + k) * near / (k + 1), jnp.ones_like(x))
    # Terms overflow before they decrease: the factor of negative x is applied to their sum.
    near_value = jnp.where(x < 0, summed * jnp.exp(-near), summed)
    large = jnp.where(far, size, 100)
    total, term = jnp.ones_like(x), jnp.ones_like(x)
    for k in range(20):
        term = term * (b - p + k) * (1 - p + k) / ((k + 1) * large)
        total = total + term
    lead = _gamma_ratio([b], [jnp.where(far, p, 1)]) * jnp.exp(
        (p - b) * jnp.log(large) + jnp.where(x < 0, 0, large)
    )
    value = jnp.where(far, lead * total, near_value)
    return jnp.where(_ends(b) & ~(_ends(a) & (a >= b)), jnp.inf, value)


def _confluent_slope(_: Array, a: Array, b: Array, x: Array) -> Array:
    return a / b * _hyp1f1(a + 1, b + 1, x)


@slopes(_slope_in(0, _confluent), _slope_in(1, _confluent), _confluent_slope)
def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    return _confluent(a, b, x)


@shared_docs(OPERANDS, RESULT)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return Kummer's confluent hypergeometric function M(a, b, x) of real numbers.

    Raises:
        IllTyped: an operand is complex.

    >>> special.hyp1f1(1.0, 2.0, jnp.array([1.0])).round(4)
    Array([1.7183], dtype=float32)
    """
    return _hyp1f1(*floats("hyp1f1", a, b, x))


def _gauss_series(a: Array, b: Array, c: Array, z: Array) -> Array:
    return _sum_of_series(lambda k: (a + k) * (b + k) / ((c + k) * (k + 1)) * z, jnp.ones_like(z))


def _gauss(a: Array, b: Array, c: Array, x: Array) -> Array:
    """Return F(a, b; c; x) by series in x, in x/(x - 1), or in 1 - x."""
    polynomial = _ends(a) | _ends(b)
    # F(a, b; c; x) = (1 - x)^(-a)·F(a, c - b; c; x/(x - 1))
    turned = (x < 0) & ~polynomial
    z = jnp.where(turned, x / (x - 1), x)
    q = jnp.where(turned, c - b, b)
    factor = jnp.where(turned, (1 - jnp.where(turned, x, 0)) ** -a, 1)
    # F = A·F(a, q; 1 - d; 1 - z) + B·(1 - z)^d·F(c - a, c - q; 1 + d; 1 - z) with d = c - a - q
    d = c - a - q
    apart = jnp.abs(d - jnp.round(d)) > 0.05
    other = (z > 0.75) & (z < 1) & apart & ~polynomial & ~_ends(q)
    inside = polynomial | (z < 1)
    plain = _gauss_series(a, q, c, jnp.where(other | ~inside, 0, z))
    d_ = jnp.where(apart, d, 0.5)
    w = jnp.where(other, 1 - z, 0.5)
    first = _gamma_ratio([c, d_], [c - a, c - q]) * _gauss_series(a, q, 1 - d_, w)
    second = _gamma_ratio([c, -d_], [a, q]) * w**d_ * _gauss_series(c - a, c - q, 1 + d_, w)
    value = jnp.where(other, first + second, plain)
    at_one = jnp.where(d > 0, _gamma_ratio([c, jnp.where(d > 0, d, 1)], [c - a, c - q]), jnp.inf)
    value = jnp.where((z == 1) & ~polynomial, at_one, value)
    value = jnp.where((x > 1) & ~polynomial, jnp.nan, factor * value)
    short = (_ends(a) & (a >= c)) | (_ends(b) & (b >= c))
    return jnp.where(_ends(c) & ~short, jnp.inf, value)


def _gauss_slope(_: Array, a: Array, b: Array, c: Array, x: Array) -> Array:
    return a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x)


@slopes(_slope_in(0, _gauss), _slope_in(1, _gauss), _slope_in(2, _gauss), _gauss_slope)
def _hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    return _gauss(a, b, c, x)


@shared_docs(OPERANDS, RESULT)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Return Gauss's hypergeometric function F(a, b; c; x) of real numbers up to 1.

    It is nan above 1, where it is not real, unless it is a polynomial.

    Raises:
        IllTyped: an operand is complex.

    >>> special.hyp2f1(1.0, 1.0, 2.0, jnp.array([0.5])).round(4)
    Array([1.3863], dtype=float32)
    """
    return _hyp2f1(*floats("hyp2f1", a, b, c, x))


TERMS: Final = 64
SCALE: Final = math.sqrt(TERMS / math.sqrt(2))


def _weideman() -> tuple[float, ...]:
    """Return the coefficients of Weideman's rational approximation, of the highest power first."""
    m = 2 * TERMS
    t = SCALE * np.tan(np.arange(1 - m, m) * np.pi / (2 * m))
    f = np.concatenate([[0], np.exp(-(t**2)) * (SCALE**2 + t**2)])
    a = np.fft.fft(np.fft.fftshift(f)).real / (2 * m)
    return tuple(float(x) for x in a[1 : TERMS + 1][::-1])


COEFFICIENTS: Final = _weideman()


def _upper(z: Array) -> Array:
    """Return the function where the imaginary part is not negative."""
    far = jnp.abs(z) > 7
    near = jnp.where(far, 1, z)
    turned = (SCALE + 1j * near) / (SCALE - 1j * near)
    # Numbers in the code: a function with a derivative of its own has no constants.
    total = jnp.zeros_like(z)
    for coefficient in COEFFICIENTS:
        total = total * turned + coefficient
    by_series = 2 * total / (SCALE - 1j * near) ** 2 + 1 / math.sqrt(math.pi) / (SCALE - 1j * near)
    large = jnp.where(far, z, 10)
    fraction = large
    for k in range(12, 0, -1):
        fraction = large - k / 2 / fraction
    return jnp.where(far, 1j / math.sqrt(math.pi) / fraction, by_series)


@slopes(lambda w, z: 2j / math.sqrt(math.pi) - 2 * z * w)
def _wofz(z: Array) -> Array:
    low = jnp.imag(z) < 0
    above = _upper(jnp.where(low, -z, z))
    # w(-z) = 2·exp(-z²) - w(z)
    square = jnp.where(low, z, 0) ** 2
    value = jnp.where(low, 2 * jnp.exp(-square) - above, above)
    # On the real axis the real part is that of a Gaussian, to its own precision.
    x = jnp.real(z)
    on_axis = lax.complex(jnp.exp(-x * x), jnp.imag(value))
    return jnp.where(jnp.imag(z) == 0, on_axis, value)


@shared_docs(OPERANDS, "Complex array of the shape of ``z``.")
def wofz(z: ArrayLike) -> Array:
    """Return the Faddeeva function, ``exp(-z**2) * erfc(-1j * z)``.

    Raises:
        IllTyped: the operand is not a number.

    >>> special.wofz(jnp.array([1j])).real.round(4)
    Array([0.4276], dtype=float32)
    """
    (value,) = numbers("wofz", z)
    return _wofz(value.astype(complex_dtype(value.dtype)))


@shared_docs(
    {},
    "Complex array of the broadcast shape.",
    n="degrees, whole numbers of at least 0.",
    m="orders, whole numbers from -n to n; the function is 0 for others.",
    theta="polar angles, from 0 to π.",
    phi="azimuths.",
    diff_n="must be None.",
    n_max="bound of the degrees; by default their maximum, which takes a known value.",
)
def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Return the spherical harmonics Y of degree n and order m, with the phase of Condon-Shortley.

    Raises:
        BadArgument: ``diff_n`` is not None.
        ConcretizationError: degrees are traced without ``n_max``.
        IllTyped: degrees or orders are not integers.

    >>> special.sph_harm_y(1, 0, jnp.array([0.0]), 0.0).real.round(4)
    Array([0.4886], dtype=float32)
    """
    if diff_n is not None:
        raise BadArgument("sph_harm_y returns no derivatives", "diff_n=None", str(diff_n))
    degrees, orders = jnp.asarray(n), jnp.asarray(m)
    if degrees.dtype.kind not in "iu" or orders.dtype.kind not in "iu":
        found = f"{degrees.dtype} and {orders.dtype}"
        raise IllTyped("degrees and orders are integers", "integers", found)
    most = int(np.max(degrees.numpy(), initial=0)) if n_max is None else n_max
    polar, azimuth = floats("sph_harm_y", theta, phi)
    degrees, orders, polar, azimuth = jnp.broadcast_arrays(degrees, orders, polar, azimuth)
    size = jnp.abs(orders)
    legendre = _normalized_legendre(degrees, size, polar, most)
    wave = lax.complex(jnp.cos(size * azimuth), jnp.sin(size * azimuth))
    value = legendre * wave
    sign = jnp.where(size % 2 == 0, 1, -1)
    return jnp.where(orders < 0, sign * jnp.conj(value), value)


def _normalized_legendre(n: Array, m: Array, theta: Array, most: int) -> Array:
    """Return sqrt((2n + 1)/(4π)·(n - m)!/(n + m)!)·P_n^m(cos θ) for m ≥ 0; 0 for m > n."""
    c, s = jnp.cos(theta), jnp.sin(theta)
    first = jnp.full_like(c, math.sqrt(1 / (4 * math.pi)))

    def diagonal(k: Array, p: Array) -> Array:
        # P_k^k from P_(k-1)^(k-1)
        return jnp.where(k <= m, -s * jnp.sqrt((2 * k + 1) / (2 * k)).astype(c.dtype) * p, p)

    start = lax.fori_loop(1, most + 1, diagonal, first)
    order = m.astype(c.dtype)

    def upwards(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        # The degree l is m + k: P_l from those of l - 1 and l - 2.
        before, now = state
        l = order + k  # noqa: E741  the name of the degree
        square = l * l - order * order
        up = jnp.sqrt((4 * l * l - 1) / square)
        down = jnp.sqrt(((l - 1) ** 2 - order * order) / jnp.maximum(4 * (l - 1) ** 2 - 1, 1))
        following = up * (c * now - down * before)
        more = m + k <= n
        return jnp.where(more, now, before), jnp.where(more, following, now)

    found = lax.fori_loop(1, most + 1, upwards, (jnp.zeros_like(c), start))[1]
    return jnp.where(m > n, 0, found)
