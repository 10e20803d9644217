"""The logarithm of the gamma function, its derivatives, and Hurwitz's zeta function.

Sources: NIST Digital Library of Mathematical Functions, 5.5 (recurrence, reflection), 5.11
(asymptotic expansions), 25.11 (Euler-Maclaurin). Polynomials interpolate at Chebyshev's points.
"""

from __future__ import annotations

import math
from typing import Final

from effax.ir.prims.common.special.reals import (
    RealValue,
    absolute,
    cosine,
    derivative,
    exp,
    floor,
    is_nan,
    is_small,
    log,
    log1p,
    loop,
    polynomial,
    power,
    sine,
    where,
)

# lgamma(2 + z)/z for |z| <= 1/2, in 2z.
_NEAR_TWO: Final = (
    1.2167067542304562e-13, -5.116584685713687e-13, 1.5491338158886129e-12, -6.566709534240663e-12,
    2.923176066319201e-11, -1.2481202067269968e-10, 5.339813130999916e-10, -2.3043112100202176e-09,
    1.0013314167996967e-08, -4.387338974983724e-08, 1.942529474587772e-07, -8.716982450984518e-07,
    3.981793163166481e-06, -1.863677987501598e-05, 9.032844783558553e-05, -0.0004615969392917596,
    0.0025726010534730713, -0.016838075263299536, 0.1612335167120566, 0.42278433509846713,
)  # fmt: skip
# digamma(x)/(x - r) for 1 <= x <= 2, in 2x - 3, where r is the root, the sum of two numbers.
_NEAR_ROOT: Final = (
    -8.25512972008104e-11, 2.4765474440031764e-10, -2.889363639216111e-10, 8.668257373761658e-10,
    -3.6788868183645545e-09, 1.10370884388543e-08, -3.166618072027162e-08, 9.500926192924096e-08,
    -2.8628755280038686e-07, 8.591324222417666e-07, -2.578107848270217e-06, 7.741156881253708e-06,
    -2.325823828431376e-05, 6.995020484160625e-05, -0.00021074841215733007, 0.000636888028319074,
    -0.0019350666647832667, 0.005936795278433826, -0.018550615381738605, 0.06013562106019355,
    -0.21181371064073026, 0.951055876031833,
)  # fmt: skip
_ROOT: Final = (1.4616321325302124, 1.2438149938918909e-08)
BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
"""B_2, B_4, ..."""

HALF_LOG_2_PI: Final = 0.5 * math.log(2 * math.pi)
MANY: Final = 10000


def lgamma(x: RealValue) -> RealValue:
    """Return log |Γ(x)|; inf at 0 and at negative integers."""
    reflected = x < 0
    size = where(reflected, 1 - x, x)
    value = _of_positive(size)
    # log |Γ(x)| = log(π/|sin(πx)|) - log Γ(1 - x)
    sine_ = absolute(sine((x - floor(x + 0.5)) * math.pi))
    mirrored = math.log(math.pi) - log(sine_) - value
    integer = (x <= 0) & floor(x).equals(x)
    value = where(reflected, mirrored, value)
    infinite = integer | absolute(x).equals(math.inf)
    return where(is_nan(x), x, where(infinite, math.inf, value))


def _of_positive(x: RealValue) -> RealValue:
    """Return log Γ(x) for x >= 0: Stirling's series from 8 on, else shifted to [1.5, 2.5]."""
    near = where(x < 8, x, 2.0)
    product, rest = near.like(1.0), near
    for _ in range(6):
        far = rest >= 2.5
        rest = where(far, rest - 1, rest)
        product = where(far, product * rest, product)
    # Γ(x) = Γ(x + 2)/(x(x + 1)) below 1/2, and Γ(x + 1)/x below 3/2.
    low, middle = near < 0.5, near < 1.5
    z = where(low, rest, where(middle, rest - 1, rest - 2))
    below = where(low, rest * (rest + 1), rest)
    shifted = where(middle & ~low, -log1p(rest - 1), log(product) - log(where(middle, below, 1.0)))
    value = z * polynomial(_NEAR_TWO, z * 2) + shifted
    far = where(x < 8, 8.0, x)
    series = (far - 0.5) * (log(far) - 1) + (HALF_LOG_2_PI - 0.5) + stirling(far)
    return where(x < 8, value, series)


def stirling(x: RealValue) -> RealValue:
    """Return log Γ(x) - (x - 1/2)·log x + x - log(2π)/2 for x >= 8."""
    inverse = 1 / x
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:9], 1)]
    return inverse * polynomial(terms[::-1], inverse * inverse)


def lgamma1p(x: RealValue) -> RealValue:
    """Return log Γ(1 + x) for x >= 0, accurate near 0."""
    near = where(x < 0.5, x, 0.0)
    return where(x < 0.5, near * polynomial(_NEAR_TWO, near * 2) - log1p(near), _of_positive(x + 1))


def digamma(x: RealValue) -> RealValue:
    """Return the derivative of log Γ(x); nan at negative integers, -inf at 0."""
    reflected = x < 0
    size = where(reflected, 1 - x, x)
    value = _slope_of_positive(size)
    # ψ(x) = ψ(1 - x) - π·cot(πx)
    angle = (x - floor(x + 0.5)) * math.pi
    value = where(reflected, value - math.pi * cosine(angle) / sine(angle), value)
    pole = reflected & floor(x).equals(x)
    value = where(pole, math.nan, value)
    return where(x.equals(0), -1 / x, where(x.equals(math.inf), math.inf, value))


def _slope_of_positive(x: RealValue) -> RealValue:
    near = where(x < 10, x, 1.5)
    rest, terms = near, near.like(0.0)
    for _ in range(8):
        far = rest > 2
        rest = where(far, rest - 1, rest)
        terms = where(far, terms + 1 / rest, terms)
    low = near < 1
    terms = where(low, -1 / where(low, near, 1.0), terms)
    rest = where(low, near + 1, rest)
    value = ((rest - _ROOT[0]) - _ROOT[1]) * polynomial(_NEAR_ROOT, rest * 2 - 3) + terms
    far = where(x < 10, 10.0, x)
    inverse = 1 / far
    square = inverse * inverse
    series = [b / (2 * k) for k, b in enumerate(BERNOULLI[:8], 1)]
    tail = log(far) - inverse * 0.5 - square * polynomial(series[::-1], square)
    return where(x < 10, value, tail)


def zeta(x: RealValue, q: RealValue) -> RealValue:
    """Return the sum of (q + k)^-x for k >= 0, for x > 1, by the formula of Euler and Maclaurin.

    It is inf where a term is infinite, and nan for a negative q unless x is an integer.
    """
    integer = floor(x).equals(x)
    valid = (x > 1) & ((q > 0) | integer) & (x < math.inf)
    safe = where(valid, x, 2.0)
    start = where(valid & (absolute(q) < math.inf), q, 10.0)

    def again(total: RealValue, at: RealValue, last: RealValue) -> RealValue:
        # The expansion converges from about x on; for large x the sum does before.
        return ((at < 10) | (at < safe)) & ~((at > 1) & is_small(last, total))

    def step(
        total: RealValue, at: RealValue, last: RealValue
    ) -> tuple[RealValue, RealValue, RealValue]:
        return total + last, at + 1, power(at + 1, -safe)

    state = [start * 0, start, power(start, -safe)]
    total, at, last = loop(state, again, step, MANY)
    expanded = (at >= 10) & (at >= safe)
    tail = at * last / (safe - 1) + last * 0.5
    # B_2k/(2k)!·x(x + 1)...(x + 2k - 2)·at^(-x - 2k + 1)
    factor = safe * last / at
    for k, b in enumerate(BERNOULLI, 1):
        tail = tail + factor * (b / math.factorial(2 * k))
        factor = factor * ((safe + (2 * k - 1)) / at) * ((safe + 2 * k) / at)
    value = where(q.equals(math.inf), 0.0, total + where(expanded, tail, 0.0))
    pole = (x > 1) & (q <= 0) & floor(q).equals(q)
    value = where(pole, math.inf, where(valid, value, math.nan))
    limit = where(q > 1, 0.0, where(q.equals(1), x.like(1.0), math.inf))
    value = where(x.equals(math.inf), limit, value)
    value = where(x.equals(1), math.inf, value)
    return where(is_nan(x) | is_nan(q), math.nan, value)


def zeta_grad_x(x: RealValue, q: RealValue) -> RealValue:
    """Return dζ(x, q)/dx, the sum of -log(q + k)·(q + k)^-x, for x > 1 and q > 0.

    It is the derivative of the formula of Euler and Maclaurin, whose remainder's is as small.
    """
    valid = (x > 1) & (q > 0)
    return where(valid, derivative(zeta, 0)(where(valid, x, 2.0), where(valid, q, 1.0)), math.nan)


def polygamma(n: RealValue, x: RealValue) -> RealValue:
    """Return the n-th derivative of digamma, for a whole n >= 0."""
    # ψ⁽ⁿ⁾(x) = (-1)^(n+1)·n!·ζ(n + 1, x)
    odd = (n * 0.5 - floor(n * 0.5)) > 0
    size = exp(lgamma(n + 1)) * zeta(where(n > 0, n, 1.0) + 1, x)
    value = where(n.equals(0), digamma(x), where(odd, size, -size))
    return where((n >= 0) & floor(n).equals(n), value, math.nan)
