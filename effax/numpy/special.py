"""Elementwise functions of analysis and number theory, and comparison up to a tolerance."""

from __future__ import annotations

import math

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.device_array import Array, ArrayLike, as_value
from effax.ir import prims
from effax.ir.dtypes import family, is_complex, is_float, is_inexact_dtype
from effax.ir.errors import IllTyped
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import (
    floor_divide,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    real_operand,
    remainder,
)
from effax.numpy.dtypes import finfo
from effax.numpy.reduce import any

__all__ = [
    "angle", "deg2rad", "degrees", "fabs", "gcd", "hypot", "isclose", "lcm", "ldexp", "log2",
    "log10", "logaddexp", "logaddexp2", "nan_to_num", "rad2deg", "radians", "reciprocal",
    "sinc",
]  # fmt: skip


def _both_inexact(x1: ArrayLike, x2: ArrayLike, what: str) -> tuple[Array, Array]:
    dtype, weak = pr.inexact(*pr.common_dtype((x1, x2), what))
    if is_complex(dtype):
        raise IllTyped(f"{what} takes real operands", expected="real numbers", found=str(dtype))
    return pr.converted(as_value(x1), dtype, weak), pr.converted(as_value(x2), dtype, weak)


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1² + x2²) without overflow. Its derivative where both are 0 is taken for 0."""
    a, b = _both_inexact(x1, x2, "hypot")
    infinite = uf.bitwise_or(isinf(a), isinf(b))
    greater = uf.maximum(uf.absolute(a), uf.absolute(b))
    plain = uf.bitwise_or(infinite, uf.equal(greater, 0))
    # The scale is a constant: the derivative of the whole does not depend on it.
    scale = bind1(prims.StopGradient(), uf.where(plain, 1, greater))
    squares = [uf.square(uf.true_divide(uf.where(plain, 1, x), scale)) for x in (a, b)]
    length = uf.multiply(scale, uf.sqrt(uf.add(*squares)))
    far = uf.absolute(uf.where(isinf(a), a, b))
    return uf.where(infinite, far, uf.where(plain, 0, length))


def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow; infinities that are equal share the derivative."""
    return _log_of_sum(*_both_inexact(x1, x2, "logaddexp"), 1.0)


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow; as :func:`logaddexp`."""
    return _log_of_sum(*_both_inexact(x1, x2, "logaddexp2"), float(np.log(2)))


def _log_of_sum(a: Array, b: Array, unit: float) -> Array:
    """The logarithm of the sum of exponentials, in a base whose natural logarithm is ``unit``.

    high + log1p(expm1(high - top) + exp(low - top)), where top is high as a constant: a smooth
    function of a and b also where they are equal, and log1p keeps what exp(low - top) adds.
    """
    in_order = uf.greater_equal(a, b)
    high, low = uf.where(in_order, a, b), uf.where(in_order, b, a)
    finite = isfinite(high)
    top = bind1(prims.StopGradient(), uf.masked(finite, high))
    gaps = [uf.subtract(uf.masked(finite, x), top) for x in (high, low)]
    if unit != 1:
        gaps = [uf.multiply(gap, unit) for gap in gaps]
    fine = uf.log1p(uf.add(uf.expm1(gaps[0]), uf.exp(gaps[1])))
    if unit != 1:
        fine = uf.multiply(fine, 1 / unit)
    return uf.where(finite, uf.add(top, fine), uf.maximum(a, b))


def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2."""
    return uf.true_divide(uf.log(x), float(np.log(2)))


def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10."""
    return uf.multiply(uf.log(x), float(1 / np.log(10)))


def sinc(x: ArrayLike, /) -> Array:
    """sin(πx) / (πx), and 1 at 0."""
    scaled = uf.multiply(_inexact(x, "sinc"), float(np.pi))
    near = uf.less(uf.absolute(scaled), 1)
    # Near 0 the quotient's derivatives lose all digits; those of the series do not.
    far = uf.where(near, 1, scaled)
    turned = uf.square(uf.masked(near, scaled))
    series: Array = uf.add(uf.multiply(turned, _SINC[0]), _SINC[1])
    for c in _SINC[2:]:
        series = uf.add(uf.multiply(series, turned), c)
    return uf.where(near, series, uf.true_divide(uf.sin(far), far))


# sin(s)/s = Σ (-1)^k s^(2k) / (2k + 1)!, the highest power first; for |s| < 1 what is left out
# is less than rounding in double precision, in the first derivatives too.
_SINC = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(10, -1, -1))


def _inexact(x: ArrayLike, what: str) -> Array:
    dtype, weak = pr.inexact(*pr.operand_kind(x, f"the operand of {what}"))
    return pr.converted(as_value(x), dtype, weak)


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x."""
    dtype, weak = pr.inexact(*pr.operand_kind(x, "the operand of reciprocal"))
    return bind1(prims.IntegerPow(-1), pr.typed(x, dtype, weak, "the operand of reciprocal"))


def fabs(x: ArrayLike, /) -> Array:
    """The magnitude of real elements, in a floating dtype."""
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x, "fabs"), "the operand of fabs"))
    return bind1(prims.Abs(), pr.typed(x, dtype, weak, "the operand of fabs"))


def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians."""
    return uf.multiply(_inexact(x, "deg2rad"), float(np.pi / 180))


def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees."""
    return uf.multiply(_inexact(x, "rad2deg"), float(180 / np.pi))


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex elements."""
    real = uf.real(z)
    if not is_complex(pr.operand_kind(z, "the operand of angle")[0]):
        # 0 or π, which does not change with z.
        real = bind1(prims.StopGradient(), _inexact(real, "angle"))
    turned = uf.arctan2(uf.imag(z), real)
    return rad2deg(turned) if deg else turned


def gcd(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greatest common divisor of integers, by Euclid's algorithm."""
    from effax.lax.whiles import while_loop

    dtype, weak = pr.common_dtype((x1, x2), "gcd")
    if family(dtype) not in ("int", "uint"):
        raise IllTyped("gcd takes integers", expected="integers", found=str(dtype))
    shape = pr.broadcast_shapes([pr.shape_of(x1), pr.shape_of(x2)], "gcd")
    pair = [
        pr.to_shape(uf.absolute(pr.converted(as_value(x), dtype, weak)), shape) for x in (x1, x2)
    ]

    def step(pair: list[Array]) -> list[Array]:
        a, b = pair
        done = uf.equal(b, 0)
        rest = remainder(a, uf.masked(uf.invert(done), b, 1))
        return [uf.where(done, a, b), uf.masked(uf.invert(done), rest)]

    found: list[Array] = while_loop(lambda p: any(uf.not_equal(p[1], 0)), step, pair)
    return found[0]


def lcm(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The least common multiple of integers."""
    divisor = gcd(x1, x2)
    parts = floor_divide(uf.absolute(x2), uf.masked(uf.not_equal(divisor, 0), divisor, 1))
    return uf.multiply(uf.absolute(x1), parts)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 · 2**x2, for integers x2."""
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x1, "ldexp"), "an operand of ldexp"))
    if is_inexact_dtype(pr.operand_kind(x2, "an operand of ldexp")[0]):
        raise IllTyped("ldexp takes integer exponents", found=str(pr.operand_kind(x2, "")[0]))
    # In two halves, each of which is in range wherever the result is.
    half = right_half = floor_divide(x2, 2)
    right_half = uf.subtract(x2, half)
    value = pr.converted(as_value(x1), dtype, weak)
    for part in (half, right_half):
        value = uf.multiply(value, uf.exp2(uf.astype(part, dtype)))
    return value


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Elements with nan and the infinities replaced (by the greatest and least number)."""
    value = as_value(x, "the operand of nan_to_num")
    if is_complex(value.dtype):
        parts = (nan_to_num(p, copy, nan, posinf, neginf) for p in (uf.real(x), uf.imag(x)))
        return bind1(prims.Complex(), *parts)
    if not is_float(value.dtype):
        return value
    limits = finfo(value.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    value = uf.where(isnan(value), nan, value)
    value = uf.where(isposinf(value), high, value)
    return uf.where(isneginf(value), low, value)


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements differ by no more than ``atol + rtol · |b|``."""
    dtype, weak = pr.inexact(*pr.common_dtype((a, b), "isclose"))
    x, y = (pr.converted(as_value(o), dtype, weak) for o in (a, b))
    allowed = uf.add(atol, uf.multiply(rtol, uf.absolute(y)))
    near = uf.less_equal(uf.absolute(uf.subtract(x, y)), allowed)
    close = uf.bitwise_or(uf.equal(x, y), uf.bitwise_and(isfinite(y), near))
    if equal_nan:
        close = uf.bitwise_or(close, uf.bitwise_and(isnan(x), isnan(y)))
    return close


degrees = rad2deg
radians = deg2rad
