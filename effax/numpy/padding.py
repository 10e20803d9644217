"""Padding of arrays, with constants or with elements of the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import taken_along
from effax.ir.errors import BadArgument, IllTyped, NotSupported
from effax.ir.prims import Pad
from effax.ir.syntax import Lit
from effax.numpy import ufuncs as uf

__all__ = [
    "pad",
]  # fmt: skip

PadWidth = int | Sequence[int] | Sequence[Sequence[int]] | np.ndarray

_FROM_INSIDE: Final = ("edge", "reflect", "symmetric", "wrap")


def pad(
    array: ArrayLike,
    pad_width: PadWidth,
    mode: str = "constant",
    *,
    constant_values: ArrayLike | Sequence[object] = 0,
    reflect_type: str = "even",
) -> Array:
    """Return ``array`` with elements added before and after each axis.

    Args:
        array: array or scalar.
        pad_width: number of elements: one for all, ``(before, after)``, or one pair per axis.
        mode: "constant", "empty" (zeros), "edge", "reflect", "symmetric" or "wrap".
        constant_values: constants, in the forms of ``pad_width``.
        reflect_type: must be "even".

    Returns:
        Array of the dtype of ``array``.

    Raises:
        BadArgument: an unknown mode, a negative width, or an empty axis whose elements repeat.

    >>> jnp.pad(jnp.array([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int32)
    """
    x = as_value(array, "the argument of pad")
    widths = _widths(pad_width, x.ndim)
    if mode in ("constant", "empty"):
        return _with_constants(x, widths, constant_values if mode == "constant" else 0)
    if mode not in _FROM_INSIDE:
        raise NotSupported(
            "unknown mode of pad", f"constant, empty, {', '.join(_FROM_INSIDE)}", repr(mode)
        )
    if reflect_type != "even":
        raise BadArgument(
            "unsupported reflection of pad", "reflect_type 'even'", repr(reflect_type)
        )
    for axis, (before, after) in enumerate(widths):
        if before == after == 0:
            continue
        if x.shape[axis] == 0:
            raise BadArgument(f"pad cannot repeat elements of the empty axis {axis}")
        # NumPy pads the positions as it would pad the elements.
        positions = np.pad(np.arange(x.shape[axis]), (before, after), mode=mode)  # type: ignore[call-overload]  # checked above
        x = taken_along(x, axis, positions)
    return x


def _widths(pad_width: PadWidth, ndim: int) -> list[tuple[int, int]]:
    try:
        table = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError:
        raise BadArgument(
            "pad takes a number, a pair, or one pair per axis",
            expected=f"widths that broadcast to shape {(ndim, 2)}",
            found=str(pad_width),
        ) from None
    widths = [(static_int(a, "a width of pad"), static_int(b, "a width of pad")) for a, b in table]
    if any(a < 0 or b < 0 for a, b in widths):
        raise BadArgument("a width of pad is negative", "widths of at least 0", str(pad_width))
    return widths


def _with_constants(x: Array, widths: list[tuple[int, int]], values: object) -> Array:
    if isinstance(values, Sequence):
        table = np.empty((x.ndim, 2), object)
        table[...] = np.asarray(values, object)
        if any(row[0] is not row[1] and row[0] != row[1] for row in table) or x.ndim > 1:
            return _axis_by_axis(x, widths, table)
        values = table[0, 0]
    return _padded(x, tuple(widths), _constant(values, x))


def _axis_by_axis(x: Array, widths: list[tuple[int, int]], table: np.ndarray) -> Array:
    for axis, (before, after) in enumerate(widths):
        for width, value in zip(((before, 0), (0, after)), table[axis], strict=True):
            here = tuple(width if i == axis else (0, 0) for i in range(x.ndim))
            x = _padded(x, here, _constant(value, x))
    return x


def _constant(value: object, x: Array) -> Array | Lit:
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        kind = x.dtype.kind
        return pr.literal(int(value) if kind in "iu" else value, x.type.update(shape=()))
    filled = uf.astype(value, x.dtype)  # type: ignore[arg-type]  # checked there
    if filled.shape:
        raise IllTyped("pad takes scalar constants", "a scalar", str(filled.type))
    return filled


def _padded(x: Array, widths: tuple[tuple[int, int], ...], value: Array | Lit) -> Array:
    if all(a == b == 0 for a, b in widths):
        return x
    return bind1(Pad(tuple((a, b, 0) for a, b in widths)), x, value)
