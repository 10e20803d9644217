"""Functions of complex numbers: gamma, its logarithm, and the error function's kin.

Sources: D. E. G. Hare, "Computing the principal branch of log-gamma" (1997); J. A. C. Weideman,
"Computation of the complex error function" (1994).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from effax import lax
from effax import numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.dtypes import is_complex
from effax.ir.errors import IllTyped
from effax.ir.state import cached
from effax.scipy.formulas import numbers

__all__ = ["wofz"]

# The terms of Stirling's series, the highest power of 1/z² first.
_STIRLING: Final = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_SHIFT: Final = 10


def log_gamma_of_complex(z: Array) -> Array:
    """Return the logarithm of the gamma function, analytic but for the negative axis.

    On that axis the sign of the zero imaginary part selects the side.
    """
    lower = jnp.signbit(z.imag)
    # On the upper side; the other one is its mirror image.
    up = lax.complex(z.real, jnp.abs(z.imag))
    left = z.real < 0.5
    safe = jnp.where(left, 1 - up, up)
    right = _of_right_side(safe)
    # log Γ(z) = log π - log sin(πz) - log Γ(1 - z), on the branch that is continuous
    turns = 2 * math.pi * jnp.floor(0.5 * z.real + 0.25)
    reflected = (
        math.log(math.pi) - _log_sine(up) - right + lax.complex(jnp.zeros_like(turns), turns)
    )
    made = jnp.where(left, reflected, right)
    return jnp.where(lower, jnp.conj(made), made)


def gamma_of_complex(z: Array) -> Array:
    """Return the gamma function; nan at its poles."""
    pole = (z.imag == 0) & (z.real <= 0) & (jnp.floor(z.real) == z.real)
    found = jnp.exp(log_gamma_of_complex(jnp.where(pole, 1, z)))
    return jnp.where(pole, complex(math.nan, math.nan), found)


def _of_right_side(z: Array) -> Array:
    """Return log Γ(z) for Re z >= 1/2, from Stirling's formula at z + 10."""
    total = jnp.zeros_like(z)
    for k in range(_SHIFT):
        total = total + jnp.log(z + k)
    far = z + _SHIFT
    square = 1 / (far * far)
    series = jnp.full_like(z, _STIRLING[0])
    for c in _STIRLING[1:]:
        series = series * square + c
    stirling = (far - 0.5) * jnp.log(far) - far + 0.5 * math.log(2 * math.pi) + series / far
    return stirling - total


def _log_sine(z: Array) -> Array:
    """Return the principal logarithm of sin(πz) for Im z >= 0, without overflow."""
    x = z.real - 2 * jnp.round(0.5 * z.real)
    # sin(πz) = exp(-iπz)·(1 - exp(2iπz))·i/2
    phase = 2 * math.pi * x
    decay = jnp.exp(-2 * math.pi * z.imag)
    rest = jnp.log(lax.complex(1 - decay * jnp.cos(phase), -decay * jnp.sin(phase)))
    angle = rest.imag - math.pi * x + math.pi / 2
    angle = angle - 2 * math.pi * jnp.round(angle / (2 * math.pi))
    return lax.complex(rest.real + math.pi * z.imag - math.log(2), angle)


_TERMS: Final = 40


@cached(1)
def _weideman() -> tuple[float, tuple[float, ...]]:
    """Return the scale and the coefficients, the highest power first."""
    n = _TERMS
    scale = math.sqrt(n / math.sqrt(2))
    angles = np.arange(-2 * n + 1, 2 * n) * math.pi / (2 * n)
    t = scale * np.tan(angles / 2)
    samples = np.concatenate([[0], np.exp(-t * t) * (scale**2 + t * t)])
    found = np.real(np.fft.fft(np.fft.fftshift(samples))) / (4 * n)
    return scale, tuple(found[1 : n + 1][::-1].tolist())


def faddeeva(z: Array) -> Array:
    """Return exp(-z²)·erfc(-iz): a rational function above the real axis, its reflection below."""
    below = z.imag < 0
    up = jnp.where(below, -z, z)
    scale, coefficients = _weideman()
    distance = scale - 1j * up
    ratio = (scale + 1j * up) / distance
    total = jnp.full_like(up, coefficients[0])
    for c in coefficients[1:]:
        total = total * ratio + c
    above = (2 * total / distance + 1 / math.sqrt(math.pi)) / distance
    finite = jnp.where(below, z, 0)
    return jnp.where(below, 2 * jnp.exp(-finite * finite) - above, above)


def wofz(z: ArrayLike) -> Array:
    """Return Faddeeva's function, ``exp(-z**2) * erfc(-1j * z)``.

    Raises:
        IllTyped: ``z`` is real.

    >>> special.wofz(jnp.array([0j]))
    Array([1.+0.j], dtype=complex64)
    """
    (value,) = numbers("wofz", z)
    if not is_complex(value.dtype):
        raise IllTyped("wofz takes complex numbers", "a complex dtype", str(value.type))
    return faddeeva(value)
