"""Bessel functions."""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike
from effax.lax import special as lax_special
from effax.numpy import ufuncs as uf
from effax.scipy.formulas import floats, slopes

__all__ = ["i0", "i0e", "i1", "i1e"]


def i0e(x: ArrayLike) -> Array:
    """Return ``exp(-abs(x)) * i0(x)``. Raises IllTyped for a complex ``x``.

    >>> special.i0e(jnp.array([0.0, jnp.inf]))
    Array([1., 0.], dtype=float32)
    """
    return lax_special.bessel_i0e(*floats("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """Return ``exp(-abs(x)) * i1(x)``. Raises IllTyped for a complex ``x``.

    >>> special.i1e(jnp.array([0.0, jnp.inf]))
    Array([0., 0.], dtype=float32)
    """
    return lax_special.bessel_i1e(*floats("i1e", x))


def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of order 0. Raises IllTyped for a complex ``x``.

    >>> special.i0(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return _i0(*floats("i0", x))


def i1(x: ArrayLike) -> Array:
    """Return the modified Bessel function of order 1. Raises IllTyped for a complex ``x``.

    >>> special.i1(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return _i1(*floats("i1", x))


def _grown(x: Array, scaled: Array) -> Array:
    """Return scaled·exp(|x|), by two factors, of which neither overflows alone."""
    half = uf.exp(uf.multiply(0.5, uf.absolute(x)))
    return uf.multiply(uf.multiply(scaled, half), half)


def _i0_slope(y: Array, x: Array) -> Array:
    return _i1(x)


@slopes(_i0_slope)
def _i0(x: Array) -> Array:
    infinite = uf.equal(uf.absolute(x), float("inf"))
    value = _grown(x, lax_special.bessel_i0e(x))
    return uf.where(infinite, float("inf"), value)


def _i1_slope(y: Array, x: Array) -> Array:
    # I1' = I0 - I1/x, and 1/2 at 0
    zero = uf.equal(x, 0)
    return uf.subtract(_i0(x), uf.where(zero, 0.5, uf.true_divide(y, uf.where(zero, 1, x))))


@slopes(_i1_slope)
def _i1(x: Array) -> Array:
    infinite = uf.equal(uf.absolute(x), float("inf"))
    return uf.where(infinite, x, _grown(x, lax_special.bessel_i1e(x)))
