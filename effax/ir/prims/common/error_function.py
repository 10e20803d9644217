"""The error function and its complement on NumPy arrays, to double precision.

Rational functions on four intervals, each evaluated on the elements that are in it.

Source: S. Moshier's and Sun Microsystems' fdlibm, `s_erf.c` (1993).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from effax.ir.primitive import Value

Part = Callable[[Value], Value]

# erf(x) = x + x·P(x²)/Q(x²) for |x| < 0.84375; the constant term first.
_P: Final = (
    1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
    -5.77027029648944159157e-03, -2.37630166566501626084e-05,
)  # fmt: skip
_Q: Final = (
    1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
    1.32494738004321644526e-04, -3.96022827877536812320e-06,
)  # fmt: skip
# erf(x) = 0.845... + P(|x| - 1)/Q(|x| - 1) for 0.84375 <= |x| < 1.25.
_MIDDLE: Final = 8.45062911510467529297e-01
_PA: Final = (
    -2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
    3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
)  # fmt: skip
_QA: Final = (
    1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
    1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02,
)  # fmt: skip
# erfc(x) = exp(-x² - 0.5625 + P(1/x²)/Q(1/x²))/x for 1.25 <= x < 1/0.35, and from there on.
_RA: Final = (
    -9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01,
    -6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02,
    -8.12874355063065934246e01, -9.81432934416914548592e00,
)  # fmt: skip
_SA: Final = (
    1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02,
    6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02,
    6.57024977031928170135e00, -6.04244152148580987438e-02,
)  # fmt: skip
_RB: Final = (
    -9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01,
    -1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03,
    -4.83519191608651397019e02,
)  # fmt: skip
_SB: Final = (
    1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03,
    3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02,
    -2.24409524465858183362e01,
)  # fmt: skip

# This many elements at a time fit a processor's cache.
_CHUNK: Final = 1 << 13


def erf(x: Value) -> Value:
    """Return the error function."""
    return _in_chunks(_erf, x)


def erfc(x: Value) -> Value:
    """Return 1 - erf(x), accurate to all digits where it is small."""
    return _in_chunks(_erfc, x)


def _in_chunks(function: Part, x: Value) -> Value:
    flat = np.asarray(x, np.float64).reshape(-1)
    found = np.empty(flat.shape, x.dtype)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _CHUNK):
            found[start : start + _CHUNK] = function(flat[start : start + _CHUNK])
    return found.reshape(x.shape)


def _erf(x: Value) -> Value:
    size = np.abs(x)
    near = size < _FIRST
    if near.all():
        return np.asarray(x + x * _ratio(x))
    found = np.where(np.isnan(x), x, np.sign(x))
    found[near] = x[near] + x[near] * _ratio(x[near])
    _fill(found, (size >= _FIRST) & (size < _SECOND), x, lambda y, s: s * (_MIDDLE + _shoulder(y)))
    _fill(found, (size >= _SECOND) & (size < 6), x, lambda y, s: s * (1 - _tail(y)))
    return found


def _erfc(x: Value) -> Value:
    size = np.abs(x)
    found = np.where(np.isnan(x), x, 1 - np.sign(x))
    near = size < _FIRST
    # Both differences are exact, so no digits cancel where erf(x) is about 1/2.
    low, high = near & (x < 0.25), near & (x >= 0.25)
    found[low] = 1 - (x[low] + x[low] * _ratio(x[low]))
    found[high] = 0.5 - (x[high] - 0.5 + x[high] * _ratio(x[high]))
    middle = (size >= _FIRST) & (size < _SECOND)
    _fill(found, middle, x, lambda y, s: 1 - s * (_MIDDLE + _shoulder(y)))
    _fill(found, (size >= _SECOND) & (size < 28), x, lambda y, s: 1 - s + s * _tail(y))
    return found


_FIRST: Final = 0.84375
_SECOND: Final = 1.25
_THIRD: Final = 1 / 0.35


def _fill(found: Value, where: Value, x: Value, part: Callable[[Value, Value], Value]) -> None:
    """Write ``part(|x|, sign(x))`` where the mask is set."""
    if where.any():
        here = x[where]
        found[where] = part(np.abs(here), np.sign(here))


def _ratio(x: Value) -> Value:
    square = x * x
    return np.asarray(_polynomial(_P, square) / _polynomial(_Q, square))


def _shoulder(size: Value) -> Value:
    return np.asarray(_polynomial(_PA, size - 1) / _polynomial(_QA, size - 1))


def _tail(size: Value) -> Value:
    """Return erfc of a magnitude of at least 1.25."""
    inverse = 1 / (size * size)
    ratio = _polynomial(_RA, inverse) / _polynomial(_SA, inverse)
    far = size >= _THIRD
    if far.any():
        ratio[far] = _polynomial(_RB, inverse[far]) / _polynomial(_SB, inverse[far])
    # exp(-x²) = exp(-z²)·exp((z - x)(z + x)), with z the upper half of x's digits: z² is exact.
    z = (size.view(np.int64) & np.int64(-1 << 32)).view(np.float64)
    exponential = np.exp(-z * z - 0.5625) * np.exp((z - size) * (z + size) + ratio)
    return np.asarray(exponential / size)


def _polynomial(coefficients: Sequence[float], x: Value) -> Value:
    total = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total *= x
        total += c
    return total
