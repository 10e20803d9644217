"""Creation of arrays from Python and NumPy values, and arrays of one number."""

from __future__ import annotations

from array import array as buffers
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.binding import bind1
from effax.arrays.config import allowed, config
from effax.arrays.conversion import (
    as_value,
    from_numpy,
    is_python_scalar,
    not_an_array,
    own_array,
)
from effax.arrays.joining import stack
from effax.arrays.placed import placed_by
from effax.arrays.promotion import default_dtype, dtype_of
from effax.arrays.ref import Ref
from effax.arrays.traced_array import TracedArray
from effax.ir.dtypes import (
    DType,
    family,
    int_bounds,
    is_complex,
    promote,
)
from effax.ir.errors import BadArgument, IllTyped, NotFitting
from effax.ir.prims import BroadcastInDim, Copy
from effax.ir.prims.common.numpy_semantics import convert
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType, Shape, array_type

__all__ = [
    "array", "asarray", "copy", "empty", "empty_like", "full", "full_like", "ones", "ones_like",
    "zeros", "zeros_like",
]  # fmt: skip


def array(
    object: object,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return an array of a number, an array of any library, or nested sequences of them.

    Args:
        object: value to convert.
        dtype: dtype of the result; by default the one to which the elements promote.
        copy: ignored; arrays are immutable and share no memory.
        order: "K", "A" or "C"; arrays are always row-major.
        ndmin: least number of axes; new axes of size 1 come first.
        device: the first device, its platform, or a sharding over it; None is the first.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of the shape of ``object``.

    Raises:
        IllTyped: ``object`` is none of these (a reference, a string, ...).
        BadArgument: nested sequences differ in length, or an integer overflows the dtype.

    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    made = asarray(object, dtype, order, copy=copy, device=device, out_sharding=out_sharding)
    missing = ndmin - made.ndim
    return sh.expand_dims(made, tuple(range(missing))) if missing > 0 else made


def asarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return ``a`` as an array; an array of the requested dtype is returned unchanged.

    Args:
        a: number, array of any library, or nested sequences of them.
        dtype: dtype of the result; by default the one to which the elements promote.
        order: "K", "A" or "C"; arrays are always row-major.
        copy: whether to copy an array even if nothing changes.
        device: the first device, its platform, or a sharding over it; None is the first.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of the shape of ``a``.

    Raises:
        IllTyped: ``a`` is none of these (a reference, a string, ...).
        BadArgument: an integer overflows the dtype, where none is requested.

    >>> jnp.asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    if order not in (None, "K", "A", "C"):
        raise BadArgument("arrays are in row-major order", "order 'C' or 'K'", repr(order))
    return placed_by(_as_array(a, dtype, copy), device, out_sharding, "asarray")


def _as_array(a: object, dtype: DTypeLike | None, copy: bool | None) -> Array:
    if isinstance(a, Array):
        made = a if dtype is None else pr.astype(a, dtype)
        return pr.copied(a) if copy and made is a else made
    if is_python_scalar(a):
        return _number(a, dtype)
    if isinstance(a, np.ndarray | np.generic):
        a = a if isinstance(a, np.generic) else np.asarray(a)
        if dtype is None or a.dtype.kind not in "iuf" or a.dtype.itemsize < 8:
            made = as_value(a, "the argument of asarray")
            return made if dtype is None else pr.astype(made, dtype)
        # Without the detour over a 32-bit dtype, which changes values.
        return from_numpy(np.array(convert(np.asarray(a), default_dtype(dtype))))
    if isinstance(a, list | tuple | range):
        return _nested(list(a), dtype)
    if isinstance(a, bytearray):
        return _as_array(np.frombuffer(bytes(a), np.uint8), dtype, copy)
    if not isinstance(a, Ref) and (hasattr(a, "__array__") or isinstance(a, memoryview | buffers)):
        return _as_array(np.asarray(a), dtype, copy)
    own = own_array(a)
    if own is not None:
        return _as_array(own, dtype, copy)
    raise not_an_array(a, "the argument of asarray")


_MOST_AXES: Final = 64
"""The axes of NumPy's arrays."""


def _number(x: bool | int | float | complex, dtype: DTypeLike | None) -> Array:
    if dtype is None:
        return as_value(x)
    target = default_dtype(dtype)
    if isinstance(x, complex) and not is_complex(target):
        raise IllTyped("a complex number does not convert to a real dtype", str(target), str(x))
    return filled((), x, array_type((), target))


def _leaves(a: Sequence[object], level: int = 1) -> Iterator[object]:
    for x in a:
        if isinstance(x, list | tuple):
            if level == _MOST_AXES:
                raise BadArgument(
                    "nested sequences do not form an array", f"{_MOST_AXES} levels at most"
                )
            yield from _leaves(x, level + 1)
        else:
            yield x


def _nested(a: list[object], dtype: DTypeLike | None) -> Array:
    leaves = list(_leaves(a))
    target = _dtype_of_leaves(leaves) if dtype is None else default_dtype(dtype)
    if any(isinstance(x, TracedArray) or own_array(x) is not None for x in leaves):
        return stack([asarray(x, target) for x in a])
    try:
        plain = _plain(a) if any(isinstance(x, Array) for x in leaves) else a
        value = np.array(plain, None if leaves else target)
    except OverflowError as error:
        raise NotFitting(
            "an integer does not fit into the dtype", str(target), str(error)
        ) from None
    except ValueError as error:
        raise BadArgument(
            "nested sequences do not form an array", "equal lengths on each level", str(error)
        ) from None
    if value.dtype.kind == "O" and all(isinstance(x, int) for x in leaves):
        raise NotFitting("an integer does not fit into the dtype", str(target), str(leaves)[:60])
    if value.dtype.kind in "OUSMm":
        raise IllTyped("expected an array of numbers", found=str(value.dtype))
    if value.dtype.kind in "iu" and family(target) in ("int", "uint"):
        low, high = int_bounds(target)
        if value.size and not low <= value.min() <= value.max() <= high:
            raise NotFitting(
                "an integer does not fit into the dtype",
                f"{low} to {high}, for {target}",
            )
    return from_numpy(value.astype(target))


def _plain(x: object) -> object:
    if isinstance(x, list | tuple):
        return [_plain(y) for y in x]
    return x.numpy() if isinstance(x, Array) else x


def _dtype_of_leaves(leaves: Sequence[object]) -> DType:
    kinds = {type(x): x for x in leaves if is_python_scalar(x)}
    others = [x for x in leaves if type(x) not in kinds]
    for x in others:
        if not isinstance(x, Array | np.ndarray | np.generic) and own_array(x) is None:
            raise not_an_array(x, "an element")
    operands = list(dict.fromkeys(dtype_of(x) for x in [*kinds.values(), *others]))
    return promote(operands, config.enable_x64)[0] if operands else default_dtype(None)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of ``a``.

    Args:
        a: array or scalar.
        order: ignored; arrays are always row-major.

    Returns:
        Array of the shape and dtype of ``a``.

    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return bind1(Copy(), as_value(a))


def filled(shape: Shape, value: bool | int | float | complex, type_: ArrayType) -> Array:
    """Return an array of one number, of the dtype and weakness of ``type_``."""
    constant = pr.literal(value, array_type((), type_.dtype, type_.weak))
    trace = current_trace()
    if trace is not None and not shape:
        return TracedArray(trace, constant)
    return bind1(BroadcastInDim(shape, ()), constant)


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return an array of zeros.

    Args:
        shape: size or sizes.
        dtype: dtype of the result, float32 by default.
        device: the first device, its platform, or a sharding over it; None is the first.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of shape ``shape``.

    >>> jnp.zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    made = filled(plain_shape(shape, "zeros"), 0, array_type((), default_dtype(dtype)))
    return placed_by(made, device, out_sharding, "zeros")


empty = zeros


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return an array of ones.

    Args:
        shape: size or sizes.
        dtype: dtype of the result, float32 by default.
        device: the first device, its platform, or a sharding over it; None is the first.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of shape ``shape``.

    >>> jnp.ones((2,), jnp.int32)
    Array([1, 1], dtype=int32)
    """
    made = filled(plain_shape(shape, "ones"), 1, array_type((), default_dtype(dtype)))
    return placed_by(made, device, out_sharding, "ones")


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return an array filled with ``fill_value``.

    Args:
        shape: size or sizes.
        fill_value: scalar, or an array that broadcasts to ``shape``.
        dtype: dtype of the result, that of ``fill_value`` by default.
        device: the first device, its platform, or a sharding over it; None is the first.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of shape ``shape``.

    >>> jnp.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    sizes = plain_shape(shape, "full")
    kind, weak = (default_dtype(dtype), False) if dtype is not None else dtype_of_fill(fill_value)
    if is_python_scalar(fill_value) and not isinstance(fill_value, complex):
        made = filled(sizes, _in_kind(fill_value, kind), array_type((), kind, weak))
    else:
        value = pr.converted(as_value(fill_value, "the fill value"), kind, weak)
        made = sh.broadcast_to(value, sizes)
    return placed_by(made, device, out_sharding, "full")


def dtype_of_fill(fill_value: object) -> tuple[DType, bool]:
    """Return the dtype of a fill value and whether it is weak."""
    return pr.operand_kind(fill_value, "the fill value")


def _in_kind(x: bool | int | float, dtype: DType) -> bool | int | float:
    """Return the number converted to the kind of a dtype: floats truncate to integers."""
    return int(x) if family(dtype) in ("int", "uint") else x


class Shaped(Protocol):
    """A value with a shape and a dtype, such as a ``ShapeDtypeStruct``."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...


def _kind_of(a: ArrayLike | Shaped) -> tuple[DType, bool]:
    """Return the dtype and whether it is weak. Raises IllTyped for what has none."""
    if isinstance(a, Array | np.ndarray | np.generic | bool | int | float | complex):
        return pr.operand_kind(a, "the argument of full_like")
    if hasattr(a, "shape") and hasattr(a, "dtype"):
        return allowed(a.dtype, of_value=True), bool(getattr(a, "weak_type", False))
    return pr.operand_kind(a, "the argument of full_like")


def _shape_of(a: ArrayLike | Shaped) -> Shape:
    if isinstance(a, bool | int | float | complex) and not isinstance(a, np.generic):
        return ()
    return tuple(a.shape) if hasattr(a, "shape") else ()


def zeros_like(
    a: ArrayLike | Shaped,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return zeros of the shape and dtype of ``a``.

    Args:
        a: array, scalar, or what has a shape and a dtype.
        dtype: dtype of the result instead.
        shape: shape of the result instead.
        device: a device, its platform, or a sharding; None is that of ``a``, if it is placed.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of zeros.

    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return full_like(a, 0, dtype, shape, device=device, out_sharding=out_sharding)


def empty_like(
    prototype: ArrayLike | Shaped,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
) -> Array:
    """Return zeros of the shape and dtype of ``prototype``, as :func:`zeros_like`.

    Args:
        prototype: array, scalar, or what has a shape and a dtype.
        dtype: dtype of the result instead.
        shape: shape of the result instead.
        device: a device, its platform, or a sharding; None is that of ``prototype``, if it is
            placed.

    Returns:
        Array of zeros.

    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return zeros_like(prototype, dtype, shape, device=device)


def ones_like(
    a: ArrayLike | Shaped,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return ones of the shape and dtype of ``a``.

    Args:
        a: array, scalar, or what has a shape and a dtype.
        dtype: dtype of the result instead.
        shape: shape of the result instead.
        device: a device, its platform, or a sharding; None is that of ``a``, if it is placed.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of ones.

    >>> jnp.ones_like(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return full_like(a, 1, dtype, shape, device=device, out_sharding=out_sharding)


def full_like(
    a: ArrayLike | Shaped,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return an array filled with ``fill_value``, of the shape and dtype of ``a``.

    Args:
        a: array, scalar, or what has a shape and a dtype.
        fill_value: scalar, or an array that broadcasts to the shape.
        dtype: dtype of the result instead.
        shape: shape of the result instead.
        device: a device, its platform, or a sharding; None is that of ``a``, if it is placed.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        Array of the requested shape and dtype.

    >>> jnp.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    kind, weak = _kind_of(a)
    if dtype is not None:
        kind, weak = default_dtype(dtype), False
    sizes = _shape_of(a) if shape is None else plain_shape(shape, "full_like")
    if is_python_scalar(fill_value) and not isinstance(fill_value, complex):
        made = filled(sizes, _in_kind(fill_value, kind), array_type((), kind, weak))
    else:
        made = sh.broadcast_to(pr.astype(fill_value, kind), sizes)
    if device is None and out_sharding is None and isinstance(a, Array) and a.committed:
        device = a.sharding if sizes == a.shape else None
    return placed_by(made, device, out_sharding, "full_like")
