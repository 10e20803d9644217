"""Powers of Box and Cox, Bernoulli's numbers, and Bessel functions by recurrence."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Final

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import static_int
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument
from effax.scipy.formulas import floats

__all__ = ["bernoulli", "bessel_jn", "boxcox", "boxcox1p"]

OPERANDS: Final = {"x": "array or scalar.", "lmbda": "power, array or scalar."}
RESULT: Final = "Floating array of the broadcast shape."


@shared_docs(OPERANDS, RESULT)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return ``(x**lmbda - 1) / lmbda``, and ``log(x)`` for power 0.

    Raises:
        IllTyped: an operand is complex.

    >>> special.boxcox(jnp.array([1.0, 3.0]), 2.0)
    Array([0., 4.], dtype=float32)
    """
    value, power = floats("boxcox", x, lmbda)
    return _transformed(jnp.log(value), power)


@shared_docs(OPERANDS, RESULT)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return ``((1 + x)**lmbda - 1) / lmbda``, and ``log(1 + x)`` for power 0.

    Raises:
        IllTyped: an operand is complex.

    >>> special.boxcox1p(jnp.array([0.0, 2.0]), 2.0)
    Array([0., 4.], dtype=float32)
    """
    value, power = floats("boxcox1p", x, lmbda)
    return _transformed(jnp.log1p(value), power)


def _transformed(log: Array, power: Array) -> Array:
    tiny = jnp.abs(power) < 1e-30
    safe = jnp.where(tiny, 1, power)
    return jnp.where(tiny, log, jnp.expm1(safe * log) / safe)


def bernoulli(n: int) -> Array:
    """Return Bernoulli's numbers of index 0 to ``n``. Raises BadArgument for a negative one.

    >>> special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],
          dtype=float32)
    """
    count = static_int(n, "the index of bernoulli")
    if count < 0:
        raise BadArgument("bernoulli takes an index of at least 0", "0 or more", str(count))
    numbers: list[Fraction] = []
    for m in range(count + 1):
        rest = sum((comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0))
        numbers.append((Fraction(m == 0) * 1 - rest) / (m + 1) if m else Fraction(1))
    return jnp.asarray([float(b) for b in numbers], float)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Return Bessel functions of the first kind of orders 0 to ``v``, by Miller's recurrence.

    Args:
        z: array or scalar.
        v: highest order.
        n_iter: order at which the recurrence starts; above ``v`` and the largest magnitude of z.

    Returns:
        Floating array of shape (v + 1, *z.shape).

    Raises:
        BadArgument: ``v`` is negative, or not below ``n_iter``.
        IllTyped: ``z`` is complex.

    >>> special.bessel_jn(jnp.array([0.0]), v=1)
    Array([[1.],
           [0.]], dtype=float32)
    """
    order, start = static_int(v, "v"), static_int(n_iter, "n_iter")
    if not 0 <= order < start:
        raise BadArgument("orders of bessel_jn do not fit", "0 <= v < n_iter", f"{order}, {start}")
    (x,) = floats("bessel_jn", z)
    zero = x == 0
    inverse = 2 / jnp.where(zero, 1, x)
    above, here = jnp.zeros_like(x), jnp.full_like(x, 1e-30)
    total = jnp.zeros_like(x)
    kept: list[Array] = []
    for k in range(start, 0, -1):
        above, here = here, k * inverse * here - above
        # The values are rescaled before they overflow.
        scale = jnp.where(jnp.abs(here) > 1e20, 1e-20, 1.0).astype(x.dtype)
        above, here, total = above * scale, here * scale, total * scale
        kept = [y * scale for y in kept]
        if (k - 1) % 2 == 0:
            total = total + (here if k == 1 else 2 * here)
        if k - 1 <= order:
            kept.append(here)
    found = jnp.stack(kept[::-1]) / total
    first = jnp.zeros_like(found).at[0].set(1)
    return jnp.where(zero, first, found)
