"""Hypergeometric functions and spherical harmonics, by series and recurrences.

Source: NIST Digital Library of Mathematical Functions, 13.2 and 15.2 (series), 15.8
(transformations), 14.10 and 14.30 (spherical harmonics).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from effax import lax
from effax import numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument, NotSupported
from effax.scipy.formulas import floats
from effax.scipy.special.gammas import gammaln, gammasgn

__all__ = ["hyp1f1", "hyp2f1", "sph_harm_y"]

_PARAMETERS: Final = {
    "a": "array or scalar.",
    "b": "array or scalar.",
    "c": "array or scalar.",
    "x": "array or scalar.",
}

_TERMS: Final = 600


def _summed(x: Array, ratio: Callable[[Array], Array]) -> Array:
    """Return 1 + Σ of terms, each the one before times ``ratio(k)``·x/(k + 1)."""

    def step(state: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        total, term = state
        term = term * ratio(k) * x / (k + 1)
        return (total + term, term), None

    counts = jnp.arange(_TERMS, dtype=x.dtype)
    ones = jnp.ones_like(x)
    return lax.scan(step, (ones, ones), counts)[0][0]


@shared_docs(_PARAMETERS, "Floating array of the broadcast shape.")
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return Kummer's confluent hypergeometric function, for ``abs(x)`` up to 200.

    Raises:
        IllTyped: an operand is complex.

    >>> special.hyp1f1(-1.0, 1.0, jnp.array([2.0]))
    Array([-1.], dtype=float32)
    """
    a, b, x = floats("hyp1f1", a, b, x)
    # M(a, b, x) = exp(x)·M(b - a, b, -x), whose terms do not cancel
    negative = x < 0
    upper = jnp.where(negative, b - a, a)
    made = _summed(jnp.abs(x), lambda k: (upper + k) / (b + k))
    return jnp.where(negative, jnp.exp(x), 1) * made


@shared_docs(_PARAMETERS, "Floating array of the broadcast shape.")
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Return Gauss's hypergeometric function; nan for ``x > 1``.

    It loses digits between 0.97 and 1 where ``c - a - b`` is nearly a whole number.

    Raises:
        IllTyped: an operand is complex.

    >>> special.hyp2f1(-1.0, 1.0, 1.0, jnp.array([0.5]))
    Array([0.5], dtype=float32)
    """
    a, b, c, x = floats("hyp2f1", a, b, c, x)
    one = (a == 0) | (b == 0)
    # F(a, b; c; x) = (1 - x)^(-a)·F(a, c - b; c; x/(x - 1)) for x < 0
    negative = x < 0
    within = jnp.where((x > 1) | jnp.isnan(x), 0, x)
    b = jnp.where(negative, c - b, b)
    z = jnp.where(negative, within / (within - 1), within)
    near = z > _EDGE
    inner = _gauss(a, b, c, jnp.where(near, 0, z))
    made = jnp.where(near, _near_one(a, b, c, jnp.where(near, z, 1)), inner)
    factor = jnp.where(negative, jnp.where(negative, 1 - within, 1) ** -a, 1)
    made = jnp.where(one, 1, factor * made)
    return jnp.where((x > 1) | jnp.isnan(x), jnp.nan, made)


_EDGE: Final = 0.97


def _gauss(a: Array, b: Array, c: Array, z: Array) -> Array:
    return _summed(z, lambda k: (a + k) * (b + k) / (c + k))


def _near_one(a: Array, b: Array, c: Array, z: Array) -> Array:
    """Return F(a, b; c; z) for z near 1, by two series in 1 - z."""
    s, rest = c - a - b, 1 - z
    whole = jnp.round(s) == s
    shift = jnp.where(whole & (rest > 0), s + 1e-3, s)
    first = _ratio((c, shift), (c - a, c - b)) * _gauss(a, b, 1 - shift, rest)
    second = _ratio((c, -shift), (a, b)) * _gauss(c - a, c - b, 1 + shift, rest)
    power = jnp.where(rest > 0, jnp.where(rest > 0, rest, 1) ** shift, 0)
    at_one = jnp.where(s > 0, _ratio((c, s), (c - a, c - b)), jnp.inf)
    return jnp.where(rest > 0, first + power * second, at_one)


def _ratio(above: tuple[Array, Array], below: tuple[Array, Array]) -> Array:
    """Return Γ(p)·Γ(q)/(Γ(r)·Γ(t))."""
    size = sum((gammaln(v) for v in above), start=jnp.zeros_like(above[0]))
    size = size - gammaln(below[0]) - gammaln(below[1])
    sign = gammasgn(above[0]) * gammasgn(above[1]) * gammasgn(below[0]) * gammasgn(below[1])
    return jnp.where(jnp.isneginf(size), 0, sign * jnp.exp(size))


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Return the spherical harmonics of degrees ``n`` and orders ``m``.

    Args:
        n: integers, the degrees; not negative.
        m: integers, the orders; at most ``n`` in size.
        theta: polar angles.
        phi: azimuthal angles.
        diff_n: None: no derivatives are returned.
        n_max: greatest degree, that of ``n`` by default; greater ones count as it.

    Returns:
        Complex array of the broadcast shape.

    Raises:
        NotSupported: ``diff_n`` is given.
        ConcretizationError: ``n`` is traced and there is no ``n_max``.

    >>> special.sph_harm_y(jnp.array([1, 2]), jnp.array([0, 1]), 0.5, 0.0).shape
    (2,)
    """
    if diff_n is not None:
        raise NotSupported("sph_harm_y without derivatives", "None", f"diff_n={diff_n}")
    degrees, orders = as_value(n, "the degrees"), as_value(m, "the orders")
    polar, azimuth = floats("sph_harm_y", theta, phi)
    if n_max is None:
        n_max = int(np.max(np.asarray(degrees), initial=0))
    if n_max < 0:
        raise BadArgument("degrees are not negative", "at least 0", str(n_max))
    degrees, orders, polar, azimuth = jnp.broadcast_arrays(degrees, orders, polar, azimuth)
    size = jnp.abs(orders)
    legendre = _legendre(jnp.minimum(degrees, n_max), size, polar, n_max)
    turned = legendre * jnp.exp(1j * (size * azimuth).astype(legendre.dtype))
    # Y(n, -m) = (-1)^m·conj Y(n, m)
    mirrored = jnp.where(size % 2 == 0, 1, -1) * jnp.conj(turned)
    return jnp.where(orders < 0, mirrored, turned)


def _legendre(n: Array, m: Array, theta: Array, n_max: int) -> Array:
    """Return the normalized associated Legendre functions of cos θ, by their recurrence in n."""
    cosine, sine = jnp.cos(theta), jnp.abs(jnp.sin(theta))
    first = jnp.full_like(theta, 1 / math.sqrt(4 * math.pi))
    for k in range(1, n_max + 1):
        first = jnp.where(k <= m, -math.sqrt((2 * k + 1) / (2 * k)) * sine * first, first)
    before, made = jnp.zeros_like(theta), first
    order = m.astype(theta.dtype)
    for k in range(1, n_max + 1):
        above = k > m
        square = jnp.where(above, k * k - order * order, 1)
        a = jnp.sqrt((4 * k * k - 1) / square)
        b = jnp.sqrt(
            jnp.where(above, (k - 1) ** 2 - order * order, 0) / max(4 * (k - 1) ** 2 - 1, 1)
        )
        step = a * (cosine * made - b * before)
        active = above & (k <= n)
        before, made = jnp.where(active, made, before), jnp.where(active, step, made)
    return made
