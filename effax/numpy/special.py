"""Elementwise functions of analysis and number theory, and comparison within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import OPERANDS, shared_docs
from effax.ir import prims
from effax.ir.dtypes import FLOAT32, family, is_complex, is_float, is_inexact_dtype
from effax.ir.errors import IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip, floor_divide, fmod, remainder
from effax.numpy.dtypes import finfo
from effax.numpy.predicates import isfinite, isinf, isnan, isneginf, isposinf, real_operand
from effax.numpy.reduce import any

__all__ = [
    "angle", "deg2rad", "degrees", "fabs", "frexp", "gcd", "hypot", "isclose", "lcm",
    "ldexp", "log2", "log10", "nan_to_num", "rad2deg", "radians", "reciprocal", "sinc",
]  # fmt: skip


def _both_inexact(x1: ArrayLike, x2: ArrayLike, what: str) -> tuple[Array, Array]:
    dtype, weak = pr.inexact(*pr.common_dtype((x1, x2), what))
    if is_complex(dtype) and not what.startswith("logaddexp"):
        raise IllTyped(f"{what} takes real operands", expected="real numbers", found=str(dtype))
    return pr.converted(as_value(x1), dtype, weak), pr.converted(as_value(x2), dtype, weak)


@shared_docs(OPERANDS, "Floating array of the broadcast shape.")
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``sqrt(x1**2 + x2**2)`` without overflow; its derivative at (0, 0) is defined as 0.

    The second derivative at (0, 0) is nan; that of an even power, which is smooth, is exact.

    Raises:
        IllTyped: an operand is complex.

    >>> jnp.hypot(jnp.array([3.0]), 4.0)
    Array([5.], dtype=float32)
    """
    a, b = _both_inexact(x1, x2, "hypot")
    infinite = uf.bitwise_or(isinf(a), isinf(b))
    greater = uf.maximum(uf.absolute(a), uf.absolute(b))
    plain = uf.bitwise_or(infinite, uf.equal(greater, 0))
    # The scale is a constant: the derivative of the whole does not depend on it.
    scale = bind1(prims.StopGradient(), uf.where(plain, 1, greater))
    squares = [uf.square(uf.true_divide(uf.where(infinite, 1, x), scale)) for x in (a, b)]
    length = uf.multiply(scale, uf.magnitude(uf.add(*squares)))
    return uf.where(infinite, uf.absolute(uf.where(isinf(a), a, b)), length)


@shared_docs(OPERANDS, "Floating array of the broadcast shape.")
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``log(exp(x1) + exp(x2))`` without overflow; equal infinities share the derivative.

    >>> jnp.logaddexp(jnp.array([-jnp.inf]), 2.0)
    Array([2.], dtype=float32)
    """
    return _log_of_sum(*_both_inexact(x1, x2, "logaddexp"), 1.0)


@shared_docs(OPERANDS, "Floating array of the broadcast shape.")
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``log2(2**x1 + 2**x2)`` without overflow; equal infinities share the derivative.

    >>> jnp.logaddexp2(jnp.array([2.0]), 2.0)
    Array([3.], dtype=float32)
    """
    return _log_of_sum(*_both_inexact(x1, x2, "logaddexp2"), float(np.log(2)))


def _log_of_sum(a: Array, b: Array, unit: float) -> Array:
    """Return the logarithm of the sum of exponentials in the base exp(unit).

    high + log1p(expm1(high - top) + exp(low - top)), where top is high as a constant: a smooth
    function of a and b where they are equal too, and log1p keeps the term exp(low - top).
    """
    if is_complex(a.dtype):
        return _log_of_complex_sum(a, b, unit)
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


def _log_of_complex_sum(a: Array, b: Array, unit: float) -> Array:
    """Return top + log(exp(a - top) + exp(b - top)), top the greater real part as a constant.

    The imaginary part is in (-π, π], in the base exp(unit).
    """
    greater = uf.maximum(uf.real(a), uf.real(b))
    top = bind1(prims.StopGradient(), uf.masked(isfinite(greater), greater))
    exp, log = (uf.exp, uf.log) if unit == 1 else (uf.exp2, log2)
    return uf.add(top, log(uf.add(*[exp(uf.subtract(x, top)) for x in (a, b)])))


def log2(x: ArrayLike, /) -> Array:
    """Return the base-2 logarithm of ``x``.

    >>> jnp.log2(jnp.array([8.0]))
    Array([3.], dtype=float32)
    """
    return _scaled(uf.log(x), float(np.log(2)), uf.true_divide)


def log10(x: ArrayLike, /) -> Array:
    """Return the base-10 logarithm of ``x``.

    >>> jnp.log10(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return _scaled(uf.log(x), float(1 / np.log(10)), uf.multiply)


def _scaled(x: Array, factor: float, scale: Callable[[ArrayLike, ArrayLike], Array]) -> Array:
    """Return ``scale(x, factor)``, by parts of a complex number: one of them may be infinite."""
    if not is_complex(x.dtype):
        return scale(x, factor)
    return bind1(prims.Complex(), *(scale(part, factor) for part in (uf.real(x), uf.imag(x))))


def sinc(x: ArrayLike, /) -> Array:
    """Return ``sin(pi * x) / (pi * x)``, 1 at 0.

    >>> jnp.sinc(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    value = _inexact(x, "sinc")
    scaled = uf.multiply(value, float(np.pi))
    near = uf.less(uf.absolute(scaled), 1)
    # Near 0 the quotient's derivatives lose all digits; those of the series do not.
    far = uf.where(near, 1, scaled)
    turned = uf.square(uf.masked(near, scaled))
    series: Array = uf.add(uf.multiply(turned, _SINC[0]), _SINC[1])
    for c in _SINC[2:]:
        series = uf.add(uf.multiply(series, turned), c)
    return uf.where(near, series, uf.true_divide(_sin_pi(value), far))


def _sin_pi(x: Array) -> Array:
    """Return sin(π·x), 0 at integers and, the limit of a quotient by x, at infinities.

    sin(π·x) = (-1)^n · sin(π·(x - n)) for the integer n nearest to the real part.
    """
    whole = bind1(prims.StopGradient(), uf.rint(uf.real(x)))
    bounded = isfinite(whole)
    whole = uf.masked(bounded, whole)
    odd = uf.not_equal(fmod(whole, 2), 0)
    turned = uf.multiply(uf.subtract(uf.where(isinf(x), 0, x), whole), float(np.pi))
    wave = uf.sin(turned)
    return uf.where(odd, uf.negative(wave), wave)


# sin(s)/s = Σ (-1)^k s^(2k) / (2k + 1)!, the highest power first; for |s| < 1 the remainder
# is below rounding in double precision, also in the first derivatives.
_SINC = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(10, -1, -1))


def _inexact(x: ArrayLike, what: str) -> Array:
    dtype, weak = pr.inexact(*pr.operand_kind(x, f"the operand of {what}"))
    return pr.converted(as_value(x), dtype, weak)


def reciprocal(x: ArrayLike, /) -> Array:
    """Return ``1 / x``.

    >>> jnp.reciprocal(jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    dtype, weak = pr.inexact(*pr.operand_kind(x, "the operand of reciprocal"))
    return bind1(prims.IntegerPow(-1), pr.typed(x, dtype, weak, "the operand of reciprocal"))


def fabs(x: ArrayLike, /) -> Array:
    """Return the magnitude of a real ``x``, in a floating dtype.

    >>> jnp.fabs(jnp.array([-2]))
    Array([2.], dtype=float32)
    """
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x, "fabs"), "the operand of fabs"))
    return bind1(prims.Abs(), pr.typed(x, dtype, weak, "the operand of fabs"))


def deg2rad(x: ArrayLike, /) -> Array:
    """Return ``x`` degrees in radians.

    >>> jnp.deg2rad(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return _rounded_once(_inexact(x, "deg2rad"), lambda v: uf.multiply(v, float(np.pi / 180)))


def rad2deg(x: ArrayLike, /) -> Array:
    """Return ``x`` radians in degrees.

    >>> jnp.rad2deg(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return _rounded_once(_inexact(x, "rad2deg"), lambda v: uf.multiply(v, float(180 / np.pi)))


def _rounded_once(x: Array, function: Callable[[Array], Array]) -> Array:
    """Return a function of ``x``, computed in float32 where ``x`` has fewer bits."""
    if not (is_float(x.dtype) and x.dtype.itemsize < 4):
        return function(x)
    return pr.converted(function(pr.converted(x, FLOAT32, x.weak_type)), x.dtype, x.weak_type)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angle of complex numbers.

    Args:
        z: array or scalar.
        deg: whether to return degrees instead of radians.

    Returns:
        Floating array of the shape of ``z``.

    >>> jnp.angle(jnp.array([1.0, 1j]), deg=True)
    Array([ 0., 90.], dtype=float32)
    """
    value = _inexact(z, "angle")
    if not is_complex(value.dtype):
        # 0 or π, which does not change with z.
        return _rounded_once(bind1(prims.StopGradient(), value), lambda x: _angle(x, deg))
    return _angle(value, deg)


def _angle(z: Array, deg: bool) -> Array:
    turned = uf.arctan2(uf.imag(z), uf.real(z))
    return rad2deg(turned) if deg else turned


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisor, by Euclid's algorithm.

    Args:
        x1: integer arrays or scalars that broadcast together.
        x2: integer arrays or scalars that broadcast together.

    Returns:
        Integer array of the broadcast shape.

    Raises:
        IllTyped: an operand is not of integers.

    >>> jnp.gcd(jnp.array([12, 7]), 8)
    Array([4, 1], dtype=int32)
    """
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


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiple.

    Args:
        x1: integer arrays or scalars that broadcast together.
        x2: integer arrays or scalars that broadcast together.

    Returns:
        Integer array of the broadcast shape.

    Raises:
        IllTyped: an operand is not of integers.

    >>> jnp.lcm(jnp.array([4, 7]), 6)
    Array([12, 42], dtype=int32)
    """
    divisor = gcd(x1, x2)
    parts = floor_divide(uf.absolute(x2), uf.masked(uf.not_equal(divisor, 0), divisor, 1))
    return uf.multiply(uf.absolute(x1), parts)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 * 2**x2``.

    Args:
        x1: real array or scalar.
        x2: integer exponents that broadcast with ``x1``.

    Returns:
        Floating array of the broadcast shape.

    Raises:
        IllTyped: ``x1`` is complex, or ``x2`` is not of integers.

    >>> jnp.ldexp(jnp.array([1.5]), 3)
    Array([12.], dtype=float32)
    """
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x1, "ldexp"), "an operand of ldexp"))
    if is_inexact_dtype(pr.operand_kind(x2, "an operand of ldexp")[0]):
        raise IllTyped("ldexp takes integer exponents", found=str(pr.operand_kind(x2, "")[0]))
    value = start = pr.converted(as_value(x1), dtype, weak)
    limits = finfo(dtype)
    least, most = int(limits.minexp) - int(limits.nmant), int(limits.maxexp) - 1
    # Beyond these exponents every result is 0 or infinite.
    left = _bounded(x2, most - least + 2)
    # A power of 2 overflows or vanishes where the result may not: three factors do not. For numbers
    # from 1 on, the first one is normal, so that no factor but the last rounds.
    small = uf.less(uf.absolute(value), 1)
    part = clip(left, uf.where(small, least, int(limits.minexp)), most)
    for _ in range(3):
        value = uf.multiply(value, uf.exp2(uf.astype(part, dtype)))
        left = uf.subtract(left, part)
        part = clip(left, least, most)
    # Compiled powers of 2 that are subnormal are 0, and inf·0 is nan.
    return uf.where(isfinite(start), value, start)


def _bounded(n: ArrayLike, bound: int) -> Array:
    """Return integers limited to [-bound, bound], as int32."""
    value = as_value(n, "an operand of ldexp")
    if value.dtype.itemsize < 4:
        value = uf.astype(value, np.int32)
    value = uf.minimum(value, bound)
    if family(value.dtype) == "int":
        value = uf.maximum(value, -bound)
    return uf.astype(value, np.int32)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Return mantissas in [0.5, 1) and exponents with ``x = mantissa * 2**exponent``.

    The mantissa of 0, of infinities and of nan is the number itself, with the exponent 0.

    Args:
        x: real array or scalar.

    Returns:
        Floating array, and array of int32.

    Raises:
        IllTyped: ``x`` is complex.

    >>> jnp.frexp(jnp.array([6.0]))
    (Array([0.75], dtype=float32), Array([3], dtype=int32))
    """
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x, "frexp"), "the operand of frexp"))
    value = pr.converted(as_value(x), dtype, weak)
    usual = uf.bitwise_and(isfinite(value), uf.not_equal(value, 0))
    size = uf.where(usual, uf.absolute(value), 1)
    limits = finfo(dtype)
    # Subnormal numbers are scaled first, since compiled programs may take them as 0 in logarithms.
    small = uf.less(size, float(limits.smallest_normal))
    shift = int(limits.nmant) + 1
    scaled = uf.where(small, ldexp(size, shift), size)
    exponent = uf.add(uf.astype(uf.floor(log2(scaled)), np.int32), 1)
    part = ldexp(scaled, uf.negative(exponent))
    # The logarithm may be rounded across an integer.
    exponent = uf.where(uf.greater_equal(part, 1), uf.add(exponent, 1), exponent)
    exponent = uf.where(uf.less(part, 0.5), uf.subtract(exponent, 1), exponent)
    part = ldexp(scaled, uf.negative(exponent))
    part = uf.where(uf.less(value, 0), uf.negative(part), part)
    exponent = uf.subtract(exponent, uf.where(small, shift, 0))
    return uf.where(usual, part, value), uf.astype(uf.where(usual, exponent, 0), np.int32)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Return ``x`` with nans and infinities replaced by numbers.

    Args:
        x: array or scalar.
        copy: ignored; for compatibility with NumPy.
        nan: replacement of nan.
        posinf: replacement of infinity; the largest number by default.
        neginf: replacement of -infinity; the lowest number by default.

    Returns:
        Array of the shape and dtype of ``x``.

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan]))
    Array([1., 0.], dtype=float32)
    """
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
    """Return whether elements differ by at most ``atol + rtol * abs(b)``.

    Args:
        a: array or scalar.
        b: array or scalar that broadcasts with ``a``.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether nans are equal.

    Returns:
        Boolean array of the broadcast shape.

    >>> jnp.isclose(jnp.array([1.0, 2.0]), 1.0)
    Array([ True, False], dtype=bool)
    """
    if family(pr.dtype_of(a)[0]) == "key":
        return uf.equal(a, b)
    x, y = pr.in_common_dtype((a, b), "isclose", must_be_inexact=True)
    allowed = uf.add(atol, uf.multiply(rtol, uf.absolute(y)))
    near = uf.less_equal(uf.absolute(uf.subtract(x, y)), allowed)
    close = uf.bitwise_or(uf.equal(x, y), uf.bitwise_and(isfinite(y), near))
    if equal_nan:
        close = uf.bitwise_or(close, uf.bitwise_and(isnan(x), isnan(y)))
    return close


degrees = rad2deg
radians = deg2rad
