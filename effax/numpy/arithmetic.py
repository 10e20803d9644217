"""Elementwise functions composed of primitives: division, powers, rounding, logic."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import no_out
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.shared_docs import OPERANDS, shared_docs
from effax.ir import prims as p
from effax.ir.dtypes import (
    FLOAT32,
    DType,
    family,
    int_bounds,
    is_complex,
    is_float,
    is_inexact_dtype,
)
from effax.ir.errors import IllTyped
from effax.ir.syntax import Lit
from effax.ir.types import Shape, array_type
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.numpy.predicates import isinf, isnan, real_operand, signbit

__all__ = [
    "around", "clip", "copysign", "divmod", "fix", "floor_divide", "fmax", "fmin",
    "fmod", "heaviside", "mod", "modf", "pow", "power", "remainder", "round", "trunc",
]  # fmt: skip


def _real_operands(x1: ArrayLike, x2: ArrayLike, what: str) -> tuple[Array | Lit, Array | Lit]:
    """Return two operands in one real dtype. Raises IllTyped for complex ones."""
    dtype, weak = uf.number(*pr.common_dtype((x1, x2), what))
    if is_complex(dtype):
        raise IllTyped(f"{what} takes real operands", expected="real numbers", found=str(dtype))
    a, b = pr.brought_together((x1, x2), what, dtype, weak)
    return a, b


def _zero(like: Array | Lit) -> Lit:
    return pr.literal(0, array_type((), like.type.dtype, like.type.weak))


def _is_wrong(rest: Array, b: Array | Lit) -> Array:
    """Return whether a remainder is nonzero and its sign differs from the divisor's."""
    zero = _zero(b)
    signs_differ = uf.not_equal(bind1(p.Lt(), rest, zero), bind1(p.Lt(), b, zero))
    return uf.bitwise_and(signs_differ, bind1(p.Ne(), rest, zero))


def _by_zero(result: Array, b: Array | Lit) -> Array:
    """Return an integer quotient or remainder, 0 where the divisor is 0."""
    if is_float(result.dtype) or (isinstance(b, Lit) and b.value != 0):
        return result
    return uf.masked(_full(bind1(p.Ne(), b, _zero(b)), result.shape), result)


def _truncated_remainder(a: Array | Lit, b: Array | Lit) -> Array:
    """Return the remainder with the sign of the dividend."""
    return _by_zero(bind1(p.Rem(), a, b), b)


def _remainder(a: Array | Lit, b: Array | Lit) -> Array:
    """Return the remainder with the sign of the divisor."""
    rest = _truncated_remainder(a, b)
    if family(rest.dtype) == "uint":
        return rest
    moved = bind1(p.SelectN(), _is_wrong(rest, b), rest, bind1(p.Add(), rest, b))
    return _with_sign_of_zero(moved, b) if is_float(moved.dtype) else moved


def _with_sign_of_zero(x: Array, b: Array | Lit) -> Array:
    """Return x, whose zeros get the sign of b, with derivative 1."""
    opposite = bind1(p.Sub(), _zero(x), x)
    # 0 - (0 - x) is never -0, and -(0 - x) never 0; XLA simplifies x + 0, not these.
    up = bind1(p.Sub(), _zero(x), opposite)
    below = _full(bind1(p.Lt(), b, _zero(b)), x.shape)
    return bind1(p.SelectN(), below, up, uf.negative(opposite))


@shared_docs(OPERANDS, "Array of the broadcast shape.")
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the remainder of ``x1 / x2`` with the sign of ``x2``, as Python's ``%``.

    The remainder of integers by 0 is 0, as in NumPy. A zero has the sign of ``x2``.

    Raises:
        IllTyped: an operand is complex.

    >>> jnp.remainder(jnp.array([-7, 7]), 3)
    Array([2, 1], dtype=int32)
    """
    return _remainder(*_real_operands(x1, x2, "remainder"))


mod = remainder


@shared_docs(OPERANDS, "Array of the broadcast shape.")
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the remainder of ``x1 / x2`` with the sign of ``x1``; of integers by 0, 0.

    Raises:
        IllTyped: an operand is complex.

    >>> jnp.fmod(jnp.array([-7, 7]), 3)
    Array([-1,  1], dtype=int32)
    """
    return _truncated_remainder(*_real_operands(x1, x2, "fmod"))


@shared_docs(OPERANDS, "Array of the broadcast shape.")
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 / x2`` rounded down, as Python's ``//``; of integers by 0, 0, as in NumPy.

    At infinities it is ``floor(x1 / x2)``, as in the Array API standard.

    Raises:
        IllTyped: an operand is complex.

    >>> jnp.floor_divide(jnp.array([-7, 7]), 2)
    Array([-4,  3], dtype=int32)
    """
    a, b = _real_operands(x1, x2, "floor_divide")
    return _floor_divide(a, b)


def _floor_divide(a: Array | Lit, b: Array | Lit) -> Array:
    dtype = a.type.dtype
    if is_float(dtype) and dtype.itemsize < 2:
        # float8 is rounded once; XLA takes minutes to compile the chain below in float8_e4m3fn.
        quotient = _float_floor_divide(_as_float32(a), _as_float32(b))
        return pr.converted(quotient, dtype, quotient.weak_type)
    if is_float(dtype):
        return _float_floor_divide(a, b)
    rest = bind1(p.Rem(), a, b)
    quotient = bind1(p.Div(), a, b)
    if family(a.type.dtype) == "uint":
        return _by_zero(quotient, b)
    floor = bind1(p.SelectN(), _is_wrong(rest, b), quotient, uf.subtract(quotient, 1))
    return _by_zero(floor, b)


def _as_float32(x: Array | Lit) -> Array | Lit:
    weak = x.type.weak
    if isinstance(x, Lit):
        return pr.literal(x.value, array_type((), FLOAT32, weak))
    return pr.converted(x, FLOAT32, weak)


def _float_floor_divide(a: Array | Lit, b: Array | Lit) -> Array:
    # a - rest is a multiple of b, which rounding finds. Where the rest is 0 or nan, or b is
    # infinite, the quotient itself is it, with the sign of its zero.
    rest = bind1(p.Rem(), a, b)
    infinity = pr.literal(np.inf, array_type((), b.type.dtype, b.type.weak))
    finite = bind1(p.Ne(), bind1(p.Abs(), b), infinity)
    has_rest = uf.bitwise_and(uf.greater(uf.absolute(rest), 0), finite)
    multiple = bind1(p.SelectN(), has_rest, _full(a, rest.shape), bind1(p.Sub(), a, rest))
    quotient = bind1(p.Div(), multiple, b)
    one = pr.literal(1, array_type((), quotient.dtype, quotient.weak_type))
    lower = bind1(p.Sub(), quotient, one)
    down = uf.bitwise_and(has_rest, _is_wrong(rest, b))
    floor = uf.rint(bind1(p.SelectN(), down, quotient, lower))
    return uf.where(uf.bitwise_and(has_rest, uf.equal(floor, 0)), 0, floor)


T = TypeVar("T", Array, Array | Lit)


def _full(x: T, shape: Shape) -> T | Array:
    return x if x.type.shape == shape or not x.type.shape else pr.to_shape(x, shape)


@shared_docs(OPERANDS, "Pair of arrays of the broadcast shape.")
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Return ``floor_divide(x1, x2)`` and ``remainder(x1, x2)``.

    Raises:
        IllTyped: an operand is complex.

    >>> jnp.divmod(jnp.array([7]), 3)
    (Array([2], dtype=int32), Array([1], dtype=int32))
    """
    a, b = _real_operands(x1, x2, "divmod")
    return _floor_divide(a, b), _remainder(a, b)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 ** x2``; a static integer exponent expands into products.

    Args:
        x1: base.
        x2: exponent that broadcasts with ``x1``.

    Returns:
        Array of the promoted dtype and broadcast shape.

    Raises:
        IllTyped: an integer base has a negative exponent.

    >>> jnp.power(jnp.array([2, 3]), 3)
    Array([ 8, 27], dtype=int32)
    """
    n = _static_integer(x2)
    if n is not None:
        return _integer_power(x1, n)
    dtype, weak = pr.common_dtype((x1, x2), "power")
    if not is_inexact_dtype(dtype):
        return _power_of_integers(x1, x2, *uf.number(dtype, weak))
    return bind1(p.Pow(), *pr.brought_together((x1, x2), "power", dtype, weak))


def _static_integer(x: object) -> int | None:
    if isinstance(x, bool):
        return None
    if isinstance(x, int | np.integer):
        return int(x)
    if isinstance(x, DeviceArray) and not x.shape and family(x.dtype) in ("int", "uint"):
        return int(x)
    return None


def _integer_power(x: ArrayLike, n: int) -> Array:
    dtype, weak = uf.number(*pr.operand_kind(x, "the base of power"))
    if n < 0 and not is_inexact_dtype(dtype):
        raise _negative_power(str(n), dtype)
    if n == 2:
        return uf.square(x)
    return bind1(p.IntegerPow(n), pr.typed(x, dtype, weak, "the base of power"))


def _negative_power(power: str, dtype: DType) -> IllTyped:
    return IllTyped(
        "integers have no negative power",
        expected="a power that is at least 0",
        found=f"power {power} of {dtype}",
        remedy="convert the base to a floating dtype",
    )


def _power_of_integers(x1: ArrayLike, x2: ArrayLike, dtype: DType, weak: bool) -> Array:
    """Square and multiply over the bits of a nonnegative integer exponent."""
    n_bits = dtype.itemsize * 8 - (family(dtype) == "int")
    if not isinstance(x2, Array) or isinstance(x2, DeviceArray):
        known = np.asarray(x2)
        if known.size and known.min() < 0:
            raise _negative_power(str(known.min()), dtype)
        n_bits = int(known.max()).bit_length() if known.size else 0
    base, exponent = pr.brought_together((x1, x2), "power", dtype, weak)
    shape = pr.broadcast_shapes([base.type.shape, exponent.type.shape], "power")
    one = pr.literal(1, array_type((), dtype, base.type.weak))
    result: Array | Lit = pr.to_shape(one, shape)
    for _ in range(n_bits):
        odd = bind1(p.Ne(), bind1(p.And(), exponent, one), _zero(exponent))
        result = bind1(p.SelectN(), odd, result, bind1(p.Mul(), result, base))
        exponent = bind1(p.ShiftRightLogical(), exponent, one)
        base = bind1(p.Mul(), base, base)
    return pr.converted(pr.to_shape(result, shape), dtype, weak)


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the magnitude of ``x1`` with the sign of ``x2``.

    Args:
        x1: magnitudes.
        x2: signs, broadcast with ``x1``.

    Returns:
        Floating array of the broadcast shape.

    Raises:
        IllTyped: an operand is complex.

    >>> jnp.copysign(jnp.array([1.0, 2.0]), -1.0)
    Array([-1., -2.], dtype=float32)
    """
    dtype, weak = pr.inexact(*pr.common_dtype((x1, x2), "copysign"))
    a, b = (
        pr.converted(as_value(x), dtype, weak)
        for x in (real_operand(x1, "copysign"), real_operand(x2, "copysign"))
    )
    size = uf.absolute(a)
    return uf.where(signbit(b), uf.negative(size), size)


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return 0 where ``x1`` is negative, 1 where it is positive, else ``x2``.

    Args:
        x1: array or scalar.
        x2: value at 0, broadcast with ``x1``.

    Returns:
        Floating array of the broadcast shape.

    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    xs = [real_operand(x, "heaviside") for x in (x1, x2)]
    dtype, weak = pr.inexact(*pr.common_dtype(xs, "heaviside"))
    x = pr.converted(as_value(x1), dtype, weak)
    y = pr.converted(as_value(x2), dtype, weak)
    at_zero = uf.where(isnan(x), x, y)
    return uf.where(uf.less(x, 0), 0, uf.where(uf.greater(x, 0), 1, at_zero))


def trunc(x: ArrayLike) -> Array:
    """Return ``x`` rounded towards 0. Raises IllTyped for complex ``x``.

    >>> jnp.trunc(jnp.array([-1.5, 1.5]))
    Array([-1.,  1.], dtype=float32)
    """
    dtype, _ = pr.operand_kind(real_operand(x, "trunc"), "the operand of trunc")
    return uf.where(uf.less(x, 0), uf.ceil(x), uf.floor(x)) if is_float(dtype) else as_value(x)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Return the fractional and integral parts of ``x``, both with its sign.

    Args:
        x: real array or scalar.
        out: unsupported.

    Returns:
        Pair of floating arrays of the shape of ``x``.

    >>> jnp.modf(jnp.array([-1.5]))
    (Array([-0.5], dtype=float32), Array([-1.], dtype=float32))
    """
    no_out(out, "modf")
    dtype, weak = pr.inexact(*pr.operand_kind(real_operand(x, "modf"), "the operand of modf"))
    value = pr.converted(as_value(x), dtype, weak)
    whole = trunc(value)
    # The fraction of an infinity is a zero; that of a negative integer is -0, with derivative 1.
    negative = uf.negative(uf.subtract(whole, value))
    finite = uf.where(signbit(value), negative, uf.subtract(value, whole))
    fraction = uf.where(isinf(value), copysign(0.0, value), finite)
    return pr.converted(fraction, dtype, weak), whole


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Return ``a`` rounded to a number of decimals, ties to even.

    Args:
        a: array or scalar.
        decimals: number of decimals; negative for tens, hundreds, ...
        out: unsupported.

    Returns:
        Array of the shape and dtype of ``a``.

    >>> jnp.round(jnp.array([1.25, 1.75]), 1)
    Array([1.2, 1.8], dtype=float32)
    """
    no_out(out, "round")
    dtype, _ = pr.operand_kind(a, "the operand of round")
    if not is_inexact_dtype(dtype):
        return _rounded_integers(as_value(a), 10 ** max(-decimals, 0))
    if is_complex(dtype):
        parts = round(uf.real(a), decimals), round(uf.imag(a), decimals)
        return bind1(p.Complex(), *parts)
    if decimals == 0:
        return uf.rint(a)
    if decimals > np.log10(float(finfo(dtype).max)):
        return as_value(a)
    # A half has too little range for the scale.
    value = uf.astype(a, np.float32) if dtype == np.float16 else a
    scale = float(10**decimals) if decimals > 0 else 10.0**decimals
    rounded = uf.true_divide(uf.rint(uf.multiply(value, scale)), scale)
    return uf.astype(rounded, dtype) if dtype == np.float16 else rounded


def _rounded_integers(x: Array, unit: int) -> Array:
    """Return integers rounded to multiples of a unit, ties to even multiples, modulo 2^bits."""
    if unit == 1 or family(x.dtype) == "bool":
        return x
    if unit > int_bounds(x.dtype)[1]:
        return uf.multiply(x, 0)
    quotient, rest = divmod(x, unit)
    # 2·rest may overflow, which unit - rest does not.
    left = uf.subtract(unit, rest)
    odd = uf.not_equal(uf.bitwise_and(quotient, 1), 0)
    up = uf.bitwise_or(uf.greater(rest, left), uf.bitwise_and(uf.equal(rest, left), odd))
    return uf.multiply(uf.add(quotient, uf.astype(up, x.dtype)), unit)


def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Return ``arr`` limited to the interval [min, max].

    Args:
        arr: array or scalar.
        min: lower bound; None for none.
        max: upper bound; None for none.

    Returns:
        Array of the promoted dtype and broadcast shape.

    Raises:
        IllTyped: ``arr`` is complex.

    >>> jnp.clip(jnp.array([-1, 5]), 0, 3)
    Array([0, 3], dtype=int32)
    """
    for x in (min, max):
        if x is not None:
            real_operand(x, "clip")
    result = as_value(real_operand(arr, "clip"))
    if min is not None:
        result = uf.maximum(min, result)
    return result if max is None else uf.minimum(max, result)


@shared_docs(OPERANDS, "Array of the promoted dtype and broadcast shape.")
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the larger operand; if one is nan, the other.

    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0)
    Array([1., 0.], dtype=float32)
    """
    return uf.where(uf.bitwise_or(uf.greater(x1, x2), isnan(x2)), x1, x2)


@shared_docs(OPERANDS, "Array of the promoted dtype and broadcast shape.")
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the smaller operand; if one is nan, the other.

    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0)
    Array([0., 0.], dtype=float32)
    """
    return uf.where(uf.bitwise_or(uf.less(x1, x2), isnan(x2)), x1, x2)


around = round
fix = trunc
pow = power
