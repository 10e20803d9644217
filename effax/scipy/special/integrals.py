"""Functions defined by integrals: exponential, sine, Fresnel's, Dawson's, Spence's and Owen's.

Sources: NIST Digital Library of Mathematical Functions, 6.6 to 6.9 (exponential integrals), 7.6 and
7.9 (Fresnel integrals), 25.12 (dilogarithm); Press et al., "Numerical Recipes" (2007), 6.8 (the sum
of Rybicki for Dawson's integral) and 5.2 (the algorithm of Lentz for continued fractions).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

import effax.numpy as jnp
from effax import lax
from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.ir.prims.common.special.gamma import BERNOULLI
from effax.scipy.formulas import floats, slopes
from effax.scipy.special.normal import ndtr

__all__ = ["dawsn", "exp1", "expi", "expn", "fresnel", "owens_t", "sici", "spence"]

OPERANDS: Final = {
    "n": "orders, whole numbers of at least 0, array or scalar.",
    "x": "array or scalar.",
    "h": "array or scalar.",
    "a": "array or scalar.",
}
RESULT: Final = "Floating array of the broadcast shape."
TERMS: Final = 120


def _fraction(start: Array, partials: Callable[[Array], tuple[Array, Array]]) -> Array:
    """Return 1/(start + a_1/(start + b_1 + a_2/...)), ``partials(k)`` are a_k and that of b_k."""
    tiny = 1e-30
    d = 1 / start
    c = jnp.full_like(d, 1 / tiny)

    def step(k: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        c, d, h = state
        a, b = partials(k)
        d = 1 / (a * d + b)
        c = b + a / c
        return c, d, h * (c * d)

    return lax.fori_loop(1, TERMS, step, (c, d, d))[2]


@shared_docs(OPERANDS, RESULT)
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the exponential integral, of ``exp(-x * t) / t**n`` for t from 1 to infinity.

    It is differentiated in ``x`` only, and nan for negative ``x``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.expn(2, jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return _expn(*floats("expn", n, x))


def _expn_slope(y: Array, n: Array, x: Array) -> Array:
    # E_n' = -E_{n-1}, and E_0 = exp(-x)/x with E_0' = -(1 + 1/x)·E_0
    lower = jnp.where(n >= 1, _expn(jnp.maximum(n - 1, 0), x), y * (1 + 1 / x))
    return -lower


@slopes(lambda y, n, x: jnp.where(jnp.isnan(y), y, jnp.nan), _expn_slope)
def _expn(n: Array, x: Array) -> Array:
    near = x < 1
    far = jnp.where(near, 1, jnp.minimum(x, 1e4))
    fraction = jnp.exp(-far) * _fraction(
        far + n, lambda k: (-(k * (n - 1 + k)).astype(x.dtype), far + n + 2 * k)
    )
    small = jnp.where(near & (x > 0), x, 0.5)
    value = jnp.where(near, _expn_series(n, small), fraction)
    first = jnp.exp(-x) / x
    value = jnp.where(n == 0, first, value)
    edge = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), jnp.inf)
    value = jnp.where(x == 0, edge, jnp.where(x == jnp.inf, 0, value))
    valid = (x >= 0) & (n >= 0) & (n == jnp.floor(n))
    return jnp.where(valid, value, jnp.nan)


def _expn_series(n: Array, x: Array) -> Array:
    """Return (-x)^(n-1)/(n-1)!·(ψ(n) - log x) - Σ (-x)^k/((k - n + 1)·k!) without k = n - 1."""
    total, term = jnp.zeros_like(x), jnp.ones_like(x)
    order = jnp.maximum(n, 1) - 1
    digamma = lax.digamma(order + 1)
    for k in range(22):
        special = order == k
        other = term / jnp.where(special, 1, order - k)
        total = total + jnp.where(special, term * (digamma - jnp.log(x)), other)
        term = term * (-x / (k + 1))
    return total


def exp1(x: ArrayLike) -> Array:
    """Return the exponential integral of order 1. Raises IllTyped for a complex ``x``.

    >>> special.exp1(jnp.array([0.0, 1.0]))
    Array([       inf, 0.21938343], dtype=float32)
    """
    (value,) = floats("exp1", x)
    return _expn(jnp.ones_like(value), value)


def expi(x: ArrayLike) -> Array:
    """Return the exponential integral Ei, of ``exp(t) / t`` for t up to ``x``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.expi(jnp.array([0.0, 1.0]))
    Array([    -inf, 1.8951179], dtype=float32)
    """
    return _expi(*floats("expi", x))


@slopes(lambda y, x: jnp.exp(x) / x)
def _expi(x: Array) -> Array:
    below = -_expn(jnp.ones_like(x), jnp.maximum(-x, 0))
    near = jnp.where((x > 0) & (x < 40), x, 1)

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        term, total = state
        term = term * near / k.astype(x.dtype)
        return term, total + term / k.astype(x.dtype)

    _, total = lax.fori_loop(1, TERMS, step, (jnp.ones_like(x), jnp.zeros_like(x)))
    inside = np.euler_gamma + jnp.log(near) + total
    large = jnp.where(x >= 40, x, 40)
    series = jnp.ones_like(x)
    for k in range(25, 0, -1):
        series = 1 + k * series / large
    above = jnp.exp(large - jnp.log(large)) * series
    value = jnp.where(x <= 0, below, jnp.where(x < 40, inside, above))
    value = jnp.where(x == jnp.inf, jnp.inf, value)
    return jnp.where(jnp.isnan(x), x, value)


def dawsn(x: ArrayLike) -> Array:
    """Return Dawson's integral, ``exp(-x**2)`` times that of ``exp(t**2)`` up to ``x``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.dawsn(jnp.array([0.0, 1.0]))
    Array([0.        , 0.53807956], dtype=float32)
    """
    return _dawsn(*floats("dawsn", x))


@slopes(lambda y, x: 1 - 2 * x * y)
def _dawsn(x: Array) -> Array:
    size = jnp.abs(x)
    small = jnp.where(size < 0.5, x, 0)
    near, term = jnp.zeros_like(x), small
    for k in range(16):
        near = near + term
        term = term * (-2 * small * small / (2 * k + 3))
    step = 0.25
    middle = jnp.clip(size, 0.5, 12)
    start = 2 * jnp.round(middle / (2 * step))
    rest = middle - start * step
    total = jnp.zeros_like(x)
    for k in range(-27, 28, 2):
        total = total + jnp.exp(-jnp.square(rest - k * step)) / (start + k)
    sampled = total / math.sqrt(math.pi)
    large = jnp.maximum(size, 12)
    inverse = 1 / (2 * large * large)
    series = jnp.ones_like(x)
    for k in range(12, 0, -1):
        series = 1 + (2 * k - 1) * inverse * series
    far = series / (2 * large)
    sign = jnp.sign(x)
    value = jnp.where(size < 0.5, near, sign * jnp.where(size < 12, sampled, far))
    return jnp.where(jnp.isnan(x), x, value)


def _complex(x: Array) -> Array:
    return x.astype(jnp.complex128 if x.dtype == np.float64 else jnp.complex64)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Return the sine and the cosine integral; the latter of ``abs(x)``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.sici(jnp.array([0.0]))
    (Array([0.], dtype=float32), Array([-inf], dtype=float32))
    """
    (value,) = floats("sici", x)
    return _si(value), _ci(value)


def _far_integrals(x: Array) -> tuple[Array, Array]:
    """Return Si - π/2 and Ci for x >= 5, by E_1(i·x)."""
    z = 1j * _complex(x)
    fraction = _fraction(z + 1, lambda k: (_complex(-(k * k).astype(x.dtype)), z + 1 + 2 * k))
    value = jnp.exp(-z) * fraction
    return jnp.imag(value), -jnp.real(value)


@slopes(lambda y, x: jnp.where(x == 0, 1, jnp.sin(x) / jnp.where(x == 0, 1, x)))
def _si(x: Array) -> Array:
    size = jnp.abs(x)
    small = jnp.where(size < 5, x, 0)
    near, term = jnp.zeros_like(x), small
    for k in range(22):
        near = near + term / (2 * k + 1)
        term = term * (-small * small / ((2 * k + 2) * (2 * k + 3)))
    far = jnp.pi / 2 + _far_integrals(jnp.clip(size, 5, 1e6))[0]
    far = jnp.where(jnp.isinf(x), jnp.pi / 2, far)
    return jnp.where(jnp.isnan(x), x, jnp.where(size < 5, near, jnp.sign(x) * far))


@slopes(lambda y, x: jnp.cos(x) / x)
def _ci(x: Array) -> Array:
    size = jnp.abs(x)
    small = jnp.where((size > 0) & (size < 5), size, 1)
    near, term = jnp.zeros_like(x), jnp.ones_like(x)
    for k in range(1, 22):
        term = term * (-small * small / ((2 * k - 1) * (2 * k)))
        near = near + term / (2 * k)
    near = np.euler_gamma + jnp.log(small) + near
    far = _far_integrals(jnp.clip(size, 5, 1e6))[1]
    value = jnp.where(size < 5, near, jnp.where(jnp.isinf(x), 0, far))
    value = jnp.where(x == 0, -jnp.inf, value)
    return jnp.where(jnp.isnan(x) | (x == -jnp.inf), jnp.nan, value)


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Return the integrals of ``sin(pi * t**2 / 2)`` and ``cos(pi * t**2 / 2)`` up to ``x``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.fresnel(jnp.array([jnp.inf]))
    (Array([0.5], dtype=float32), Array([0.5], dtype=float32))
    """
    (value,) = floats("fresnel", x)
    return _fresnel_sine(value), _fresnel_cosine(value)


@slopes(lambda y, x: jnp.sin(jnp.pi / 2 * x * x))
def _fresnel_sine(x: Array) -> Array:
    return _fresnel(x, 1)


@slopes(lambda y, x: jnp.cos(jnp.pi / 2 * x * x))
def _fresnel_cosine(x: Array) -> Array:
    return _fresnel(x, 0)


def _fresnel(x: Array, which: int) -> Array:
    """Return the cosine integral for 0, the sine integral for 1."""
    size = jnp.abs(x)
    small = jnp.where(size < 1.8, size, 0)
    square = jnp.pi / 2 * small * small
    near = jnp.zeros_like(x)
    term = small * (square if which else 1)
    for k in range(which, 44, 2):
        near = near + term / (2 * k + 1)
        term = term * (-square * square / ((k + 1) * (k + 2)))
    large = jnp.clip(size, 1.8, 1e4)
    half = jnp.pi / 2 * large * large
    b = 1 - 2j * _complex(half)

    def partials(k: Array) -> tuple[Array, Array]:
        n = (2 * k - 1).astype(x.dtype)
        return _complex(-n * (n + 1)), b + 4 * k

    h = _fraction(b, partials) * _complex(large) * (1 - 1j)
    value = (0.5 + 0.5j) * (1 - jnp.exp(1j * _complex(half)) * h)
    far = jnp.imag(value) if which else jnp.real(value)
    far = jnp.where(jnp.isinf(x), 0.5, far)
    return jnp.where(jnp.isnan(x), x, jnp.sign(x) * jnp.where(size < 1.8, near, far))


def spence(x: ArrayLike) -> Array:
    """Return Spence's function, the dilogarithm of ``1 - x``; nan for negative ``x``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.spence(jnp.array([0.0, 1.0]))
    Array([ 1.644934, -0.      ], dtype=float32)
    """
    return _spence(*floats("spence", x))


def _spence_slope(y: Array, x: Array) -> Array:
    near = jnp.abs(x - 1) < 1e-4
    ratio = jnp.log(x) / jnp.where(near, 1, 1 - x)
    return jnp.where(near, -1 + 0.5 * (x - 1) - (x - 1) ** 2 / 3, ratio)


@slopes(_spence_slope)
def _spence(x: Array) -> Array:
    high = x > 2
    r = jnp.where(high, 1 / jnp.where(high, x, 1), x)
    low = r < 0.5
    u = -jnp.log(jnp.where(low, 1 - r, r))
    total = jnp.zeros_like(x)
    for k in range(len(BERNOULLI), 0, -1):
        total = u * u * (total + BERNOULLI[k - 1] / math.factorial(2 * k + 1))
    middle = u * (1 - 0.25 * u + total)
    # At r it is π²/6 - log r·log(1 - r) less that at 1 - r, and at x -log²(x)/2 less that at 1/x.
    log = jnp.log(jnp.where(r > 0, r, 1))
    of_low = math.pi**2 / 6 - log * jnp.log1p(-jnp.where(low, r, 0)) - middle
    value = jnp.where(low, of_low, middle)
    value = jnp.where(high, -0.5 * log * log - value, value)
    value = jnp.where(x == 0, math.pi**2 / 6, jnp.where(x == jnp.inf, -jnp.inf, value))
    return jnp.where(x >= 0, value, jnp.nan)


@shared_docs(OPERANDS, RESULT)
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Return Owen's function, of the integral of a normal density over a wedge.

    It is the integral of ``exp(-h**2 * (1 + t**2) / 2) / (1 + t**2) / (2 * pi)`` up to ``a``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.owens_t(0.0, jnp.array([1.0]))
    Array([0.12500001], dtype=float32)
    """
    return _owens_t(*floats("owens_t", h, a))


def _owens_slope_a(y: Array, h: Array, a: Array) -> Array:
    return jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * jnp.pi * (1 + a * a))


def _owens_slope_h(y: Array, h: Array, a: Array) -> Array:
    # dT/dh = -φ(h)·(Φ(a·h) - 1/2)
    density = jnp.exp(-0.5 * h * h) / math.sqrt(2 * math.pi)
    return -density * (ndtr(a * h) - 0.5)


@slopes(_owens_slope_h, _owens_slope_a)
def _owens_t(h: Array, a: Array) -> Array:
    x, y = jnp.abs(h), jnp.abs(a)
    steep = y > 1
    safe = jnp.where(steep, jnp.minimum(y, 1e30), 1)
    flat_h = jnp.where(steep, x * safe, x)
    part = _wedge(flat_h, jnp.where(steep, 1 / safe, y))
    # T(h, a) + T(a·h, 1/a) = Φ(-h)/2 + Φ(-a·h)/2 - Φ(-h)·Φ(-a·h) for a > 0, h >= 0
    upper, lower = ndtr(-x), ndtr(-flat_h)
    both = 0.5 * (upper + lower) - upper * lower
    value = jnp.where(steep, both - part, part)
    value = jnp.where(jnp.isinf(y), 0.5 * upper, value)
    value = jnp.where(jnp.isinf(x), 0, value)
    value = jnp.where(jnp.isnan(h) | jnp.isnan(a), jnp.nan, value)
    return jnp.sign(a) * value


def _wedge(h: Array, a: Array) -> Array:
    """Return the integral for a <= 1, by Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = jnp.zeros_like(h)
    # The density is negligible beyond 8/h.
    end = jnp.minimum(a, 8 / jnp.maximum(h, 1e-3))
    for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
        square = jnp.square(0.5 * end * (node + 1))
        total = total + weight * jnp.exp(-0.5 * h * h * (1 + square)) / (1 + square)
    return total * end / (4 * jnp.pi)
