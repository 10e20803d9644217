"""Arrays whose bits are read as elements of another dtype."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.joining import stack, unstack
from effax.arrays.shapes import reshape
from effax.ir import prims as p
from effax.ir.dtypes import DType, as_dtype, width
from effax.ir.errors import IllTyped, NotSupported
from effax.ir.types import array_type

__all__ = ["bitcast_convert_type"]


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
    if have == want or min(have, want) < _BYTE:
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


_BYTE = 8


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
