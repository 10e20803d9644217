"""Elementwise functions on NumPy arrays that no single NumPy function computes.

Integers wrap around, as in XLA. Floats narrower than float32 are computed in float32 and rounded
once. Complex division of infinities follows C99, annex G.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import ml_dtypes
import numpy as np

from effax.ir.dtypes import FLOAT0, DType, as_key_dtype, family, int_bounds, is_float
from effax.ir.key_dtype import words_of
from effax.ir.primitive import Value

Unary = Callable[[Value], Value]
Binary = Callable[[Value, Value], Value]


def is_narrow_float(dtype: DType) -> bool:
    """Return whether the dtype is a float of fewer than 32 bits."""
    return is_float(dtype) and dtype.itemsize < 4


def _wide(x: Value) -> Value:
    """Return a value of a narrow dtype in one of NumPy's own."""
    if is_narrow_float(x.dtype):
        return x.astype(np.float32)
    if x.dtype.kind == "V":
        return x.astype(np.int8 if family(x.dtype) == "int" else np.uint8)
    return x


def _wide1(meaning: Unary) -> Unary:
    """Return the same function, computed in a wide dtype and rounded once."""

    @wraps(meaning)
    def rounded(x: Value) -> Value:
        return meaning(_wide(x)).astype(x.dtype, copy=False)

    return rounded


def _wide2(meaning: Binary) -> Binary:
    """Return the same function, computed in a wide dtype and rounded once."""

    @wraps(meaning)
    def rounded(x: Value, y: Value) -> Value:
        return meaning(_wide(x), _wide(y)).astype(x.dtype, copy=False)

    return rounded


def _complex(real: Value, imag: Value) -> Value:
    made = np.empty(np.shape(real), np.complex64 if real.dtype == np.float32 else np.complex128)
    made.real, made.imag = real, imag
    return made


def _parts(x: Value) -> tuple[Value, Value]:
    return np.real(x), np.imag(x)


def sign(x: Value) -> Value:
    """Return x / |x|, 0 where x is 0 or -0, and nan where x is."""
    if x.dtype.kind == "c":
        size = np.abs(x)
        zero = size == 0
        size = np.where(zero, np.asarray(1, size.dtype), size)
        return np.where(zero, np.zeros_like(x), _complex(np.real(x) / size, np.imag(x) / size))
    # ml_dtypes returns -0 for -0.
    return np.where(x == 0, np.zeros_like(x), np.sign(x))


def square(x: Value) -> Value:
    """Return x·x; the real part of a complex square is (a - b)·(a + b), which does not cancel."""
    if x.dtype.kind != "c":
        return np.asarray(np.square(x))
    re, im = _parts(x)
    # a² - b² is never -0.
    return _complex((re - im) * (re + im) + np.asarray(0, re.dtype), 2 * (re * im))


def complex_div(x: Value, y: Value) -> Value:
    """Return x / y of complex numbers; infinite quotients are not nan + nan·i.

    Source: C99, annex G.5.1.
    """
    q = np.asarray(np.true_divide(x, y))
    lost = np.isnan(np.real(q)) & np.isnan(np.imag(q))
    if not lost.any():
        return q
    x, y = np.broadcast_arrays(x, y)
    (a, b), (c, d) = _parts(x), _parts(y)
    inf, zero = np.asarray(np.inf, a.dtype), np.asarray(0, a.dtype)
    # A number that is not nan over zero is infinite.
    by_zero = (c == 0) & (d == 0) & ~(np.isnan(a) & np.isnan(b))
    far, over_far = np.isinf(x), np.isinf(y)
    infinite = far & np.isfinite(y)
    propagate_zeros = over_far & np.isfinite(x)
    a, b = _unit_of_infinite(a, far), _unit_of_infinite(b, far)
    c, d = _unit_of_infinite(c, over_far), _unit_of_infinite(d, over_far)
    re, im = a * c + b * d, b * c - a * d
    pole = np.copysign(inf, np.real(y))
    for where, real, imag in (
        (propagate_zeros, zero * re, zero * im),
        (infinite, inf * re, inf * im),
        (by_zero, pole * np.real(x), pole * np.imag(x)),
    ):
        q = np.where(lost & where, _complex(real, imag), q)
    return q


def _unit_of_infinite(part: Value, infinite: Value) -> Value:
    """Return a part of a number; of infinite numbers, ±1 if the part is infinite, else ±0."""
    unit = np.copysign(np.isinf(part).astype(part.dtype), part)
    return np.where(infinite, unit, part)


def log1p(x: Value) -> Value:
    """Return log(1 + x), accurate for small complex numbers as well, unlike NumPy's."""
    if x.dtype.kind != "c":
        return np.asarray(np.log1p(x))
    re, im = _parts(x)
    # |1 + x|² = 1 + (re·(2 + re) + im²)
    near = np.log1p(re * (2 + re) + im * im) / 2
    far = np.real(np.log(1 + x))
    return _complex(np.where(np.abs(x) < 0.5, near, far), np.arctan2(im, 1 + re))


def expm1(x: Value) -> Value:
    """Return exp(x) - 1, real for complex numbers on the real axis, unlike NumPy's."""
    if x.dtype.kind != "c":
        return np.asarray(np.expm1(x))
    re, im = _parts(x)
    # expm1(a)·cos b - (1 - cos b)  and  exp(a)·sin b
    real = np.expm1(re) * np.cos(im) - 2 * np.square(np.sin(im / 2))
    flat, lost = im == 0, np.isinf(re) & ~np.isfinite(im)
    # On the real axis, and +0 at a zero of either sign.
    real, imag = np.where(flat, np.expm1(re) + 0, real), np.where(flat, im, np.exp(re) * np.sin(im))
    # exp(-inf)·cis(b) = 0 and exp(inf)·cis(b) = inf + nan·i for any b that has no sine
    real = np.where(lost, np.where(re < 0, -np.ones_like(re), re), real)
    return _complex(real, np.where(lost & (re < 0), np.copysign(0, im), imag))


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent; at infinities ±1, with a zero of the sign of im(x)."""
    made = np.asarray(np.tanh(x))
    if x.dtype.kind != "c":
        return made
    re, im = _parts(x)
    return np.where(np.isinf(re), _complex(np.copysign(1, re), np.copysign(0, im)), made)


def tan(x: Value) -> Value:
    """Return the tangent, -i·tanh(i·x)."""
    if x.dtype.kind != "c":
        return np.asarray(np.tan(x))
    re, im = _parts(x)
    turned = tanh(_complex(-im, re))
    return _complex(np.imag(turned), -np.real(turned))


@_wide1
def rsqrt(x: Value) -> Value:
    """Return 1 / √x."""
    one = np.asarray(1, x.dtype)
    return complex_div(one, np.sqrt(x)) if x.dtype.kind == "c" else np.asarray(one / np.sqrt(x))


@_wide1
def logistic(x: Value) -> Value:
    """Return 1 / (1 + exp(-x))."""
    one = np.asarray(1, x.dtype)
    below = one + np.exp(-x)
    return complex_div(one, below) if x.dtype.kind == "c" else np.asarray(one / below)


@_wide2
def div(x: Value, y: Value) -> Value:
    """Return x / y; of integers truncated, and -1 (all bits set) for a zero divisor."""
    if x.dtype.kind == "c":
        return complex_div(x, y)
    if x.dtype.kind == "f":
        return np.asarray(np.true_divide(x, y))
    if x.dtype.kind == "u":
        most = np.asarray(int_bounds(x.dtype)[1], x.dtype)
        return np.where(y == 0, most, x // np.where(y == 0, 1, y).astype(x.dtype))
    # Division by -1 is negation, which wraps around at the least integer; NumPy's would trap.
    one = np.asarray(1, x.dtype)
    safe = np.where((y == 0) | (y == -1), one, y)
    floor = x // safe
    inexact = (floor * safe != x) & ((x < 0) != (safe < 0))
    truncated = floor + inexact.astype(x.dtype)
    return np.where(y == 0, -one, np.where(y == -1, -x, truncated))


@_wide2
def rem(x: Value, y: Value) -> Value:
    """Return the remainder with the sign of x; of integers, x itself for a zero divisor."""
    if x.dtype.kind == "f":
        return np.asarray(np.fmod(x, y))
    safe = np.where((y == 0) | (y == -1) if x.dtype.kind == "i" else y == 0, 1, y)
    return np.where(y == 0, x, np.fmod(x, safe.astype(x.dtype)))


@_wide2
def power(x: Value, y: Value) -> Value:
    """Return x to the power y; exp(y·log x) where a part is not finite, and 1 where y is 0."""
    made = np.asarray(np.power(x, y))
    if x.dtype.kind == "c":
        wild = ~(np.isfinite(x) & np.isfinite(y))
        made = _of_positive(x, y, made)
        if not wild.any():
            return made
        (a, b), (c, d) = _parts(np.log(x)), _parts(y)
        made = np.where(wild, np.exp(_complex(a * c - b * d, a * d + b * c)), made)
        return np.where(y == 0, np.ones_like(made), made)
    if x.dtype.kind != "f":
        return made
    # NumPy computes the square root for some layouts, which differs at -inf and -0.
    root = np.asarray(y == 0.5)
    if not root.any():
        return made
    return np.where(root, np.where(np.isneginf(x), -x, made + np.asarray(0, x.dtype)), made)


def _of_positive(x: Value, y: Value, made: Value) -> Value:
    """Return the power x^y with the sign of a zero imaginary part, for positive numbers x.

    That is the sign of its angle y·log x: c·b for a real exponent c, and c·b + d·0 where x is 1.
    """
    (a, b), (c, d) = _parts(x), _parts(y)
    real = (b == 0) & (a > 0) & ((d == 0) | (a == 1)) & (y != 0)
    turn = np.where(d == 0, c * b, c * b + d * 0)
    return _complex(np.real(made), np.where(real, turn, np.imag(made)))


def exp2(x: Value) -> Value:
    """Return 2^x, exact if x is an integer, which NumPy's is not at 127."""
    two = np.asarray(2, x.dtype)
    return np.asarray(np.exp2(x) if x.dtype.kind == "c" else np.power(two, x))


def integer_power(x: Value, n: int) -> Value:
    """Return x to the power n by repeated squaring; integers wrap around."""
    wide = _wide(x)
    one = np.ones_like(wide)
    result, base, left = one, wide, abs(n)
    while left:
        if left & 1:
            result = base if result is one else result * base
        left >>= 1
        base = square(base) if left else base
    if n < 0:
        result = complex_div(one, result) if wide.dtype.kind == "c" else one / result
    return np.asarray(result).astype(x.dtype, copy=False)


def strong_zero_mul(x: Value, y: Value) -> Value:
    """Return the product, and 0 for 0 times any number."""
    product = np.asarray(np.multiply(x, y))
    return np.where(x == 0, np.zeros_like(product), product)


def nextafter(x: Value, y: Value) -> Value:
    """Return the next float after x toward y; y itself, with its sign, where x = y."""
    return np.where(x == y, y, np.nextafter(x, y))


def _width(dtype: DType) -> int:
    low, high = int_bounds(dtype)
    return (high - low).bit_length()


def _bits(x: Value) -> Value:
    """Return the bits of integers, as unsigned integers."""
    if x.dtype.kind == "V":
        return x.astype(np.int8).view(np.uint8) & np.uint8((1 << _width(x.dtype)) - 1)
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def _signed(x: Value) -> Value:
    """Return the bits of integers, as integers in two's complement."""
    if x.dtype.kind == "V":
        sign_bit = np.int8(1 << (_width(x.dtype) - 1))
        return (_bits(x).view(np.int8) ^ sign_bit) - sign_bit
    return np.asarray(x).view(f"i{x.dtype.itemsize}")


def _steps(y: Value) -> tuple[Value, Value]:
    """Return the number of bits to shift, and a mask of shifts by the width or more."""
    steps = y.astype(np.int64)
    too_far = (steps < 0) | (steps >= _width(y.dtype))
    return np.where(too_far, 0, steps), too_far


def shift_left(x: Value, y: Value) -> Value:
    """Return x · 2^y, modulo 2^bits."""
    steps, too_far = _steps(y)
    bits = _bits(x)
    return _as(np.where(too_far, 0, bits << steps.astype(bits.dtype)), x.dtype, bits.dtype)


def shift_right_logical(x: Value, y: Value) -> Value:
    """Return the bits of x moved down, with zeros above."""
    steps, too_far = _steps(y)
    bits = _bits(x)
    return _as(np.where(too_far, 0, bits >> steps.astype(bits.dtype)), x.dtype, bits.dtype)


def shift_right_arithmetic(x: Value, y: Value) -> Value:
    """Return ⌊x / 2^y⌋ of the bits of x read as a signed integer."""
    steps, too_far = _steps(y)
    signed = _signed(x)
    far = np.where(too_far, _width(x.dtype) - 1, steps)
    return _as(signed >> far.astype(signed.dtype), x.dtype, signed.dtype)


def _as(bits: Value, dtype: DType, container: DType) -> Value:
    """Return the integers of these bits."""
    whole = bits.astype(container)
    return whole.astype(dtype) if dtype.kind == "V" else whole.view(dtype)


def population_count(x: Value) -> Value:
    """Return the number of bits that are set."""
    return np.asarray(np.bitwise_count(_bits(x))).astype(x.dtype)


def equal(x: Value, y: Value) -> Value:
    """Return whether elements are equal; those of ``float0``, which has one value, are."""
    if x.dtype == FLOAT0:
        return np.ones(np.broadcast_shapes(np.shape(x), np.shape(y)), np.bool_)
    key = as_key_dtype(x.dtype)
    if key is not None:
        return _equal_words(words_of(x, key), words_of(y, key), len(key.words))
    return np.asarray(np.equal(x, y))


def not_equal(x: Value, y: Value) -> Value:
    """Return whether elements differ; those of ``float0``, which has one value, do not."""
    return np.asarray(np.not_equal(x, y)) if x.dtype.names is None else ~equal(x, y)


def _equal_words(x: Value, y: Value, n: int) -> Value:
    return np.asarray(np.all(np.equal(x, y), tuple(range(-n, 0))))


def maximum(x: Value, y: Value) -> Value:
    """Return the greater, where 0 is greater than -0; NumPy returns either zero."""
    return _tied_zeros(np.asarray(np.maximum(x, y)), x, y, np.add)


def minimum(x: Value, y: Value) -> Value:
    """Return the lesser, where -0 is less than 0; NumPy returns either zero."""
    return _tied_zeros(np.asarray(np.minimum(x, y)), x, y, lambda a, b: -(-a - b))


def _tied_zeros(result: Value, x: Value, y: Value, zero: Binary) -> Value:
    """Return the result with ``zero(x, y)`` where both operands are zero, which is rare."""
    if is_float(result.dtype):
        tied = x == y
        if tied.any():
            tied = tied & (result == 0)
            if tied.any():
                return np.where(tied, zero(x, y), result)
    return result


def clamp(low: Value, x: Value, high: Value) -> Value:
    """Return min(max(x, low), high)."""
    return minimum(maximum(x, low), high)


def convert(x: Value, dtype: DType) -> Value:
    """Convert as XLA does: floats saturate into integers, and nan becomes 0."""
    ints = ("int", "uint")
    if family(dtype) not in ints or not is_float(x.dtype):
        # The integers of ml_dtypes have at most 4 bits, and are not cast to each other.
        both = x.dtype.isbuiltin == 2 and family(x.dtype) in ints and family(dtype) in ints
        return (x.astype(np.int8) if both else x).astype(dtype)
    low, high = int_bounds(dtype)
    wide = np.trunc(np.where(np.isnan(x), 0, x.astype(np.float64)))
    # The greatest 64-bit integer is not a float: values that round up to it are set afterwards.
    full = wide >= float(high)
    inside = np.where(full, 0, np.maximum(wide, float(low))).astype(dtype)
    return np.where(full, np.asarray(high).astype(dtype), inside)


def reduced(x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """Round to floats of fewer bits, half to even bits, without subnormals; nan is kept."""
    info = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]  # ml_dtypes has no types
    y, dropped = x, int(info.nmant) - mantissa_bits
    if dropped > 0:
        bits = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").reshape(x.shape)
        unit = bits.dtype.type(1 << dropped)
        odd = (bits >> bits.dtype.type(dropped)) & bits.dtype.type(1)
        # A carry out of the mantissa adds 1 to the exponent.
        whole = (bits + (unit // 2 - 1 + odd).astype(bits.dtype)) & ~(unit - bits.dtype.type(1))
        y = np.where(np.isnan(x), x, whole.view(x.dtype).reshape(x.shape))
    if exponent_bits < info.iexp:
        bias = 2 ** (exponent_bits - 1) - 1
        size = np.abs(y.astype(np.float64))
        y = np.where(size >= 2.0 ** (bias + 1), np.copysign(np.inf, x), y)
        y = np.where(size < 2.0 ** (1 - bias), np.copysign(0.0, x), y)
    return y.astype(x.dtype)
