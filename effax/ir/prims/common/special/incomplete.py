"""The regularized incomplete gamma and beta functions, and what derivatives of samples need.

Both are a density-like factor times a series or a continued fraction. The factor is an exponential
of deviances, which do not cancel (C. Loader, "Fast and accurate computation of binomial
probabilities", 2000). For a large parameter near the argument, the incomplete gamma function is
expanded uniformly (N. Temme, "The asymptotic expansion of the incomplete gamma functions", 1979;
NIST Digital Library of Mathematical Functions, 8.11, 8.12, 8.17).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from effax.ir.prims.common.special.gamma import digamma, lgamma, lgamma1p, stirling
from effax.ir.prims.common.special.reals import (
    RealValue,
    absolute,
    derivative,
    erfc,
    exp,
    expm1,
    is_nan,
    is_small,
    log,
    log1p,
    loop,
    polynomial,
    power,
    sqrt,
    where,
)
from effax.ir.state import cached

MANY: Final = 20000
"""The bound of terms, of which about the root of the largest parameter are taken."""

LARGE: Final = 100.0
"""The least parameter that the uniform expansion takes."""


def _curvature(m: RealValue) -> RealValue:
    """Return (m - log(1 + m))/m² for m > -1, which is smooth at 0."""
    near = absolute(m) < 0.5
    small = where(near, m, 0.0)
    # log(1 + m) = 2·atanh(r), r = m/(2 + m)
    half = 1 / (small + 2)
    r = small * half
    square = r * r
    series = polynomial([1 / (2 * k + 3) for k in range(17)][::-1], square)
    inside = half - series * r * half * half * 2
    large = where(near, 1.0, m)
    return where(near, inside, (large - log1p(large)) / (large * large))


def _gamma_factor(a: RealValue, x: RealValue) -> RealValue:
    """Return x^a·exp(-x)/Γ(a + 1), for a > 0 and 0 < x < inf."""
    big = a >= 10
    base = where(big, a, 10.0)
    m = (x - base) / base
    drop = base * where(m > -0.9, m * m * _curvature(where(m > -0.9, m, 0.0)), m - log(x / base))
    of_large = exp(-drop - stirling(base)) / sqrt(base * (2 * math.pi))
    small = where(big, 1.0, a)
    inside = where(x < 700, x, 1.0)
    of_small = power(inside, small) * exp(-inside) / exp(lgamma1p(small))
    return where(big, of_large, where(x < 700, of_small, 0.0))


def _power_series(a: RealValue, x: RealValue) -> RealValue:
    """Return the sum of x^n/((a + 1)···(a + n)): P(a, x) is it times the factor."""

    def again(n: RealValue, term: RealValue, total: RealValue) -> RealValue:
        return ~is_small(term, total)

    def step(n: RealValue, term: RealValue, total: RealValue) -> tuple[RealValue, ...]:
        term = term * (x / (a + n))
        return n + 1, term, total + term

    one = a * 0 + 1
    return loop([one, one, one], again, step, MANY)[2]


def _fraction(a: RealValue, x: RealValue) -> RealValue:
    """Return 1/(x + 1 - a - 1·(1 - a)/(x + 3 - a - ...)) by Lentz: a·Q(a, x) over the factor."""
    tiny = 1e-30
    b = x + 1 - a
    d = 1 / b

    def again(
        n: RealValue, b: RealValue, c: RealValue, d: RealValue, h: RealValue, change: RealValue
    ) -> RealValue:
        return ~is_small(change, h)

    def step(
        n: RealValue, b: RealValue, c: RealValue, d: RealValue, h: RealValue, change: RealValue
    ) -> tuple[RealValue, ...]:
        numerator = n * (a - n)
        b = b + 2
        d = 1 / _apart(numerator * d + b, tiny)
        c = _apart(b + numerator / c, tiny)
        more = h * (d * c)
        return n + 1, b, c, d, more, more - h

    one = a * 0 + 1
    return loop([one, b, one / tiny, d, d, d], again, step, MANY)[4]


def _apart(x: RealValue, tiny: float) -> RealValue:
    return where(absolute(x) < tiny, tiny, x)


def _near_one(a: RealValue, x: RealValue) -> RealValue:
    """Return Q(a, x) for small a < x, where P(a, x) is near 1."""

    def again(n: RealValue, factor: RealValue, term: RealValue, total: RealValue) -> RealValue:
        return ~is_small(term, total)

    def step(
        n: RealValue, factor: RealValue, term: RealValue, total: RealValue
    ) -> tuple[RealValue, ...]:
        factor = factor * (-x / n)
        term = factor / (a + n)
        return n + 1, factor, term, total + term

    one = a * 0 + 1
    start = [one * 2, -x, -x / (a + 1), -x / (a + 1)]
    total = loop(start, again, step, MANY)[3]
    logarithm = a * log(x) - lgamma1p(a)
    return -expm1(logarithm) - exp(logarithm) * a * total


@cached(maxsize=1)
def _expansion() -> tuple[tuple[float, ...], ...]:
    """Return the coefficients of Temme's C_k(η) in powers of η, the highest first.

    μ = Σ α_n·η^n solves μ·μ' = η·(1 + μ). C_0 = 1/μ - 1/η has the coefficients (n + 2)·α_{n+2},
    less 1 for n = 0, and C_k has (n + 2)·c_{k-1,n+2} + (-1)^k·g_k·c_{0,n} with g_k =
    (2k + 1)!!·α_{2k+1}. Terms below the precision for a > LARGE and |η| < 1/2 are left out.
    """
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, 48):
        inner = sum((alpha[i] * alpha[n + 1 - i] for i in range(2, n)), Fraction(0))
        alpha.append(alpha[n - 1] / (n + 1) - inner / 2)
    first = [(n + 2) * alpha[n + 2] - (n == 0) for n in range(46)]
    row, rows, odd = first, [first], Fraction(1)
    for k in range(1, 8):
        odd *= 2 * k + 1
        g = odd * alpha[2 * k + 1] * (-1) ** k
        row = [(n + 2) * row[n + 2] + g * first[n] for n in range(len(row) - 2)]
        rows.append(row)
    return tuple([_leading(row, LARGE**-k) for k, row in enumerate(rows)])


def _leading(row: list[Fraction], scale: float) -> tuple[float, ...]:
    sizes = [abs(float(c)) * scale * 0.5**n for n, c in enumerate(row)]
    count = max([n for n, size in enumerate(sizes) if size > 1e-17], default=0) + 1
    return tuple([float(c) for c in row[: max(count, 2)]][::-1])


def _correction(a: RealValue, eta: RealValue) -> RealValue:
    """Return Σ C_k(η)·a^-k."""
    inverse = 1 / a
    rows = [polynomial(row, eta) for row in _expansion()]
    total = rows[-1]
    for row in rows[-2::-1]:
        total = total * inverse + row
    return total


def _eta(a: RealValue, x: RealValue) -> RealValue:
    """Return the η with η²/2 = λ - 1 - log λ and the sign of λ - 1, where λ = x/a."""
    m = (x - a) / a
    return m * sqrt(_curvature(m) * 2)


def _uniform(a: RealValue, x: RealValue, upper: bool) -> RealValue:
    """Return P or Q for large a and x near a."""
    eta = _eta(a, x)
    z = eta * sqrt(a * 0.5)
    rest = exp(-(z * z)) / sqrt(a * (2 * math.pi)) * _correction(a, eta)
    return erfc(z) * 0.5 + rest if upper else erfc(-z) * 0.5 - rest


def _regions(a: RealValue, x: RealValue) -> tuple[RealValue, RealValue, RealValue, RealValue]:
    """Return where a and x are finite and positive, and which of the three methods applies."""
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    m = (x - a) / a
    near = inside & (a > LARGE) & (m > -0.4) & (m < 0.6)
    fraction = inside & ~near & (x >= 1.1) & (x > a)
    return inside, near, fraction, inside & ~near & ~fraction


def _gamma_ratio(a: RealValue, x: RealValue, upper: bool) -> RealValue:
    inside, near, fraction, series = _regions(a, x)
    p = where(inside, a, 1.0), where(inside, x, 1.0)
    factor = _gamma_factor(*p)
    tail = factor * p[0] * _fraction(where(fraction, a, 1.0), where(fraction, x, 2.0))
    head = factor * _power_series(where(series, a, 1.0), where(series, x, 0.5))
    large = _uniform(where(near, a, 2 * LARGE), where(near, x, 2 * LARGE), upper)
    if not upper:
        return where(near, large, where(fraction, 1 - tail, head))
    small = series & (x < 1.1) & ((x > a) | (a < 0.5))
    steep = _near_one(where(small, a, 0.5), where(small, x, 0.75))
    return where(near, large, where(fraction, tail, where(small, steep, 1 - head)))


def _at_edges(a: RealValue, x: RealValue, value: RealValue, upper: bool) -> RealValue:
    """Return the value, or its limit: P is 0 for x = 0 or a = inf, and 1 for a = 0 or x = inf."""
    zero, one = (1.0, 0.0) if upper else (0.0, 1.0)
    value = where(x.equals(0) | a.equals(math.inf), zero, value)
    value = where(a.equals(0) | x.equals(math.inf), one, value)
    both = (a.equals(0) & x.equals(0)) | (a.equals(math.inf) & x.equals(math.inf))
    return where(both | (a < 0) | (x < 0) | is_nan(a) | is_nan(x), math.nan, value)


def igamma(a: RealValue, x: RealValue) -> RealValue:
    """Return P(a, x), the probability of gamma variates of shape a up to x."""
    return _at_edges(a, x, _gamma_ratio(a, x, upper=False), upper=False)


def igammac(a: RealValue, x: RealValue) -> RealValue:
    """Return Q(a, x) = 1 - P(a, x)."""
    return _at_edges(a, x, _gamma_ratio(a, x, upper=True), upper=True)


def random_gamma_grad(a: RealValue, x: RealValue) -> RealValue:
    """Return dx/da for the sample x of a gamma variate of shape a at fixed probability P(a, x)."""
    inside, near, fraction, series = _regions(a, x)
    p, q = where(inside, a, 1.0), where(inside, x, 1.0)
    steep = log(q) - digamma(p + 1)
    at = where(series, a, 1.0), where(series, x, 0.5)
    head = -(steep * _power_series(*at) + derivative(_power_series, 0)(*at))
    at = where(fraction, a, 1.0), where(fraction, x, 2.0)
    h = _fraction(*at)
    tail = p * h * steep + h + p * derivative(_fraction, 0)(*at)
    at = where(near, a, 2 * LARGE), where(near, x, 2 * LARGE)
    value = q / p * where(near, _uniform_slope(*at), where(fraction, tail, head))
    value = where(inside, value, math.nan)
    return where((x.equals(0) & (a > 0)), 0.0, value)


def _uniform_slope(a: RealValue, x: RealValue) -> RealValue:
    """Return -dP/da over the factor of P, from P = erfc(-z)/2 - exp(-z²)/√(2πa)·C."""
    eta, d_eta = _eta(a, x), derivative(_eta, 0)(a, x)
    # z = η·√(a/2), and dz·√(2πa)/√π = η/2 + a·dη.
    d_z = eta * 0.5 + a * d_eta
    c = _correction(a, eta)
    d_c = derivative(lambda a, x: _correction(a, _eta(a, x)), 0)(a, x)
    d_rest = d_c - c * (eta * eta * 0.5 + a * eta * d_eta + 0.5 / a)
    return (d_rest - d_z) * exp(stirling(a))


def igamma_grad_a(a: RealValue, x: RealValue) -> RealValue:
    """Return dP(a, x)/da."""
    inside = _regions(a, x)[0]
    p, q = where(inside, a, 1.0), where(inside, x, 1.0)
    factor = _gamma_factor(p, q)
    slope = where(factor.equals(0), 0.0, -random_gamma_grad(p, q) * (factor * p / q))
    edge = where((a > 0) & (x.equals(0) | x.equals(math.inf)), x.like(0.0), math.nan)
    return where(inside, slope, edge)


def _log_beta_part(low: RealValue, high: RealValue) -> RealValue:
    """Return log Γ(low + high) - log Γ(high) for low <= high and high >= 10."""
    total = low + high
    return (
        (high - 0.5) * log1p(low / high) + low * (log(total) - 1) + stirling(total) - stirling(high)
    )


def _beta_factor(a: RealValue, b: RealValue, x: RealValue, y: RealValue) -> RealValue:
    """Return x^a·y^b/(a·B(a, b)), for y = 1 - x."""
    big = (a >= 10) & (b >= 10)
    p, q = where(big, a, 10.0), where(big, b, 10.0)
    total = p + q
    u, v = where(big, x, 0.5), where(big, y, 0.5)
    shift = q * u - p * v
    drop = _deviance(p, shift, total * u) + _deviance(q, -shift, total * v)
    root = sqrt(q / (p * total * (2 * math.pi)))
    of_large = exp(stirling(total) - stirling(p) - stirling(q) - drop) * root
    p, q = where(big, 1.0, a), where(big, 1.0, b)
    return where(big, of_large, _mixed_factor(p, q, x, y))


def _deviance(p: RealValue, shift: RealValue, q: RealValue) -> RealValue:
    """Return p·log(p/q) + q - p for shift = q - p."""
    m = shift / p
    near = m > -0.9
    small = where(near, m, 0.0)
    return p * where(near, small * small * _curvature(small), m - log(where(near, 1.0, q / p)))


def _mixed_factor(a: RealValue, b: RealValue, x: RealValue, y: RealValue) -> RealValue:
    """Return the factor where one parameter is below 10."""
    swapped = b < a
    low, high = where(swapped, b, a), where(swapped, a, b)
    steep = high >= 10
    ratio = _log_beta_part(where(steep, low, 1.0), where(steep, high, 10.0))
    mild = where(steep, 1.0, high)
    ratio = where(steep, ratio, lgamma(where(steep, 1.0, low) + mild) - lgamma(mild))
    ratio = ratio - lgamma1p(where(low < 10, low, 1.0))
    scale = where(swapped, b / a, 1.0)
    logs = a * log(x) + where(y > 0.5, b * log1p(-x), b * log(y))
    apart = exp(logs + ratio)
    both = power(x, a) * power(y, b) * exp(ratio)
    return scale * where(steep, apart, both)


def _beta_fraction(a: RealValue, b: RealValue, x: RealValue) -> RealValue:
    """Return the continued fraction of I_x(a, b) over the factor, by Lentz (DLMF 8.17.22)."""
    tiny = 1e-30
    one = a * 0 + 1
    d = 1 / _apart(1 - (a + b) * x / (a + 1), tiny)

    def again(
        m: RealValue, c: RealValue, d: RealValue, h: RealValue, change: RealValue
    ) -> RealValue:
        return ~is_small(change, h)

    def step(
        m: RealValue, c: RealValue, d: RealValue, h: RealValue, change: RealValue
    ) -> tuple[RealValue, ...]:
        twice = m * 2
        even = m * (b - m) * x / ((a - 1 + twice) * (a + twice))
        d = 1 / _apart(1 + even * d, tiny)
        c = _apart(1 + even / c, tiny)
        half = h * (d * c)
        odd = -((a + m) * (a + b + m) * x) / ((a + twice) * (a + 1 + twice))
        d = 1 / _apart(1 + odd * d, tiny)
        c = _apart(1 + odd / c, tiny)
        more = half * (d * c)
        return m + 1, c, d, more, more - h

    return loop([one, one, d, d, d], again, step, MANY)[3]


def betainc(a: RealValue, b: RealValue, x: RealValue) -> RealValue:
    """Return I_x(a, b), the probability of beta variates up to x."""
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < math.inf) & (b < math.inf)
    p, q, u = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    v = 1 - u
    swapped = u * (p + q + 2) > p + 1
    p, q = where(swapped, q, p), where(swapped, p, q)
    u, v = where(swapped, v, u), where(swapped, u, v)
    part = _beta_factor(p, q, u, v) * _beta_fraction(p, q, u)
    value = where(swapped, 1 - part, part)
    value = where(inside, value, math.nan)
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    whole = a.equals(math.inf) & b.equals(math.inf)
    low = x.equals(0) | (a.equals(math.inf)) | (b.equals(0))
    high = x.equals(1) | (b.equals(math.inf)) | (a.equals(0))
    value = where(x.equals(0), 0.0, where(high, 1.0, where(low, 0.0, value)))
    undetermined = (a.equals(0) & b.equals(0)) | whole
    return where(valid & ~undetermined, value, math.nan)


betainc_grad_a: Final = derivative(betainc, 0)
betainc_grad_b: Final = derivative(betainc, 1)
