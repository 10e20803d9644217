"""Bits of elements: another dtype's elements, leading zeros, products' high bits, fewer bits."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import static_int
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.joining import stack, unstack
from effax.arrays.shapes import reshape
from effax.ir import prims as p
from effax.ir.dtypes import DType, as_dtype, family, width
from effax.ir.errors import IllTyped, NotSupported
from effax.ir.types import array_type
from effax.lax import elementwise as el

__all__ = ["bitcast_convert_type", "clz", "mulhi", "reduce_precision"]


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the bits of ``operand`` as elements of another dtype.

    Args:
        operand: array or scalar.
        new_dtype: dtype of the result.

    Returns:
        Array of the shape of ``operand``; with a last axis for the parts of each element where the
        new dtype is narrower, and without its last axis, of such parts, where it is wider. The
        first part has the lowest bits.

    Raises:
        IllTyped: the last axis does not have as many elements as make one of the new dtype.

    >>> lax.bitcast_convert_type(jnp.array([1.0]), jnp.int32)
    Array([1065353216], dtype=int32)
    >>> lax.bitcast_convert_type(jnp.array([513], jnp.int16), jnp.int8)
    Array([[1, 2]], dtype=int8)
    """
    x, dtype = as_value(operand, "the operand of bitcast_convert_type"), allowed(new_dtype)
    have, want = width(x.dtype), width(dtype)
    if have == want:
        return bind1(p.BitcastConvertType(dtype), x)
    if have > want:
        return _bitcast(_split(_bitcast(x, _unsigned(have)), _unsigned(want)), dtype)
    if not x.shape or x.shape[-1] != want // have:
        raise IllTyped(
            "bitcast_convert_type joins the elements of the last axis",
            expected=f"a last axis of size {want // have}, for {dtype}",
            found=str(x.type),
        )
    return _bitcast(_joined(_bitcast(x, _unsigned(have)), _unsigned(want)), dtype)


def _unsigned(bits: int) -> DType:
    return as_dtype(f"uint{bits}")


def _bitcast(x: Array, dtype: DType) -> Array:
    return x if x.dtype == dtype else bind1(p.BitcastConvertType(dtype), x)


def _split(x: Array, part: DType) -> Array:
    """Return the parts of unsigned integers along a new last axis, the lowest bits first."""
    scalar = array_type((), x.dtype)
    shifts = range(0, width(x.dtype), width(part))
    mask = pr.literal((1 << width(part)) - 1, scalar)
    words = [bind1(p.ShiftRightLogical(), x, pr.literal(n, scalar)) for n in shifts]
    return stack([bind1(p.ConvertElementType(part), bind1(p.And(), w, mask)) for w in words], -1)


def _joined(x: Array, whole: DType) -> Array:
    """Return the unsigned integers whose parts are on the last axis; the inverse of a split."""
    scalar = array_type((), whole)
    made = None
    for i, part in enumerate(unstack(x, axis=-1)):
        wide = bind1(p.ConvertElementType(whole), part)
        word = bind1(p.ShiftLeft(), wide, pr.literal(i * width(x.dtype), scalar))
        made = word if made is None else bind1(p.Or(), made, word)
    assert made is not None
    return made


def view(x: Array, dtype: DTypeLike | None, type: None = None) -> Array:
    """Return the bits of an array as elements of another dtype, along its last axis.

    Raises:
        NotSupported: ``type`` is given.
        IllTyped: the bits of the last axis are no whole number of elements.
    """
    if type is not None:
        raise NotSupported("a view has no type", "None", repr(type))
    target = allowed(dtype) if dtype is not None else x.dtype
    have, want = width(x.dtype), width(target)
    if have == want:
        return bitcast_convert_type(x, target)
    if not x.shape or x.shape[-1] * have % want:
        raise IllTyped(
            "a view divides or joins the elements of the last axis",
            expected=f"a last axis of whole elements of {target}",
            found=str(x.type),
        )
    *rest, size = x.shape
    if have > want:
        return reshape(bitcast_convert_type(x, target), (*rest, size * have // want))
    parts = want // have
    return bitcast_convert_type(reshape(x, (*rest, size // parts, parts)), target)


def _integers(x: ArrayLike, what: str) -> Array:
    """Return the bits of integers as unsigned ones. Raises IllTyped for other dtypes."""
    value = as_value(x, f"an operand of {what}")
    if family(value.dtype) not in ("int", "uint"):
        raise IllTyped(f"{what} takes integers", "an integer dtype", str(value.type))
    return _bitcast(value, _unsigned(width(value.dtype)))


def clz(x: ArrayLike) -> Array:
    """Return the number of leading zero bits of each element.

    Args:
        x: array of integers, or scalar.

    Returns:
        Array of the shape and dtype of ``x``.

    Raises:
        IllTyped: ``x`` has no integer dtype.

    >>> lax.clz(jnp.array([1, 255], jnp.uint8))
    Array([7, 0], dtype=uint8)
    """
    value = as_value(x, "the operand of clz")
    filled, n = _integers(value, "clz"), width(value.dtype)
    for shift in (1 << k for k in range((n - 1).bit_length())):
        filled = el.bitwise_or(filled, el.shift_right_logical(filled, shift))
    zeros = el.sub(n, el.population_count(filled))
    return bind1(p.ConvertElementType(value.dtype, value.weak_type), zeros)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the high bits of the products, which have twice the bits of the operands.

    Args:
        x: array of integers, or scalar.
        y: array or scalar of the dtype of ``x``.

    Returns:
        Array of the common shape and dtype.

    Raises:
        IllTyped: the dtype is not an integer one, or dtypes or shapes do not fit.

    >>> lax.mulhi(jnp.array([200], jnp.uint8), jnp.array([3], jnp.uint8))
    Array([2], dtype=uint8)
    """
    zero = el.bitwise_and(el.bitwise_and(x, y), 0)
    v, u = el.bitwise_or(x, zero), el.bitwise_or(y, zero)
    a, b = _integers(v, "mulhi"), _integers(u, "mulhi")
    high = _high_bits(a, b)
    if family(v.dtype) == "int":
        # As an unsigned number, a negative one is greater by 2**n, so its product by 2**n·other.
        for number, other in ((v, b), (u, a)):
            high = el.sub(high, el.select(el.lt(number, 0), other, el.mul(other, 0)))
    return _bitcast(high, v.dtype)


def _high_bits(a: Array, b: Array) -> Array:
    """Return the high bits of products of unsigned integers, from products of their parts.

    Source: H. S. Warren, Hacker's Delight, 8-2.
    """
    n = width(a.dtype) // 2
    mask = (1 << n) - 1
    (a1, a0), (b1, b0) = ((el.shift_right_logical(x, n), el.bitwise_and(x, mask)) for x in (a, b))
    low = el.add(el.mul(a1, b0), el.shift_right_logical(el.mul(a0, b0), n))
    middle = el.add(el.mul(a0, b1), el.bitwise_and(low, mask))
    carries = el.add(el.shift_right_logical(low, n), el.shift_right_logical(middle, n))
    return el.add(el.mul(a1, b1), carries)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Return ``operand`` rounded to floats of fewer bits, in its dtype.

    Numbers too large for the exponent become infinite, too small ones zero.

    Args:
        operand: array of floats, or scalar.
        exponent_bits: number of bits of the exponent, at least 1.
        mantissa_bits: number of bits of the mantissa.

    Returns:
        Array of the shape and dtype of ``operand``; its derivative is rounded likewise.

    Raises:
        IllTyped: ``operand`` has no floating dtype, or the numbers of bits are out of range.

    >>> lax.reduce_precision(jnp.array([1.1, 1e9]), 5, 3)
    Array([1.125,   inf], dtype=float32)
    """
    exponent = static_int(exponent_bits, "exponent_bits of reduce_precision")
    mantissa = static_int(mantissa_bits, "mantissa_bits of reduce_precision")
    (x,) = el.operands("reduce_precision", operand)
    return bind1(p.ReducePrecision(exponent, mantissa), x)
