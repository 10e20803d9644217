"""Quantiles of the normal distribution far from its mean."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.arrays.array import Array
from effax.numpy import ufuncs as uf

TAIL: Final = 2.0
"""Distance from the mean at which the tail begins."""

N_STEPS: Final = 5
N_FRACTIONS: Final = 24


def tail_quantile(u: Array, near: Array, far: Array) -> Array:
    """Return the quantile ``u`` of a standard normal variable conditioned to lie in (near, far).

    Args:
        u: probabilities in [0, 1).
        near: lower bounds, at least :data:`TAIL`; other elements yield unspecified numbers.
        far: upper bounds, which may be infinite.

    Returns:
        Array of the dtype and broadcast shape of the operands.

    With Mills' ratio m(x) = P(Z > x)/p(x), the distance d of the quantile from the near bound a
    solves d·(a + d/2) - log(m(a + d)/m(a)) = -log q, where q is the share of P(Z > a) above the
    quantile. The left side is convex with the slope 1/m, and Newton's method decreases from the
    solution for a constant m.

    Source: W. Gautschi's continued fraction of m, Abramowitz and Stegun 26.2.14.
    """
    kind = u.dtype
    if kind.itemsize < 4:
        u, near, far = (uf.astype(x, np.float32) for x in (u, near, far))
    near = uf.maximum(near, TAIL)
    # Nothing is left beyond, and infinity would spoil the derivative.
    far = uf.minimum(uf.maximum(far, near), uf.add(near, 50))
    width = uf.subtract(far, near)
    at_near = _mills_ratio(near)
    # P(Z > far)/P(Z > near) = exp(-(far² - near²)/2)·m(far)/m(near)
    decay = uf.exp(uf.multiply(-0.5, uf.multiply(width, uf.add(far, near))))
    rest = uf.true_divide(uf.multiply(decay, _mills_ratio(far)), at_near)
    log_share = uf.log1p(uf.multiply(u, uf.subtract(rest, 1)))
    root = uf.sqrt(
        uf.subtract(1, uf.true_divide(uf.true_divide(uf.multiply(2, log_share), near), near))
    )
    d = uf.true_divide(uf.multiply(-2, log_share), uf.multiply(near, uf.add(1, root)))
    for _ in range(N_STEPS):
        ratio = _mills_ratio(uf.add(near, d))
        exponent = uf.multiply(d, uf.add(near, uf.multiply(0.5, d)))
        excess = uf.add(uf.subtract(exponent, uf.log(uf.true_divide(ratio, at_near))), log_share)
        d = uf.subtract(d, uf.multiply(ratio, excess))
    return uf.astype(uf.add(near, d), kind)


def _mills_ratio(x: Array) -> Array:
    """Return 1/(x + 1/(x + 2/(x + 3/(x + ...)))) for ``x >= TAIL``."""
    denominator = x
    for k in range(N_FRACTIONS, 0, -1):
        denominator = uf.add(x, uf.true_divide(float(k), denominator))
    return uf.true_divide(1, denominator)
