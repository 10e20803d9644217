"""Padding of arrays, with constants or with elements of the array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import static_int
from effax.arrays.batching import vmap
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import (
    flip,
    moveaxis,
    reshape,
    slice_along,
    squeeze,
    taken_along,
)
from effax.ir.errors import BadArgument, IllTyped, NotSupported
from effax.ir.prims import Pad
from effax.ir.syntax import Lit
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import floor_divide
from effax.numpy.join import concatenate, repeat
from effax.numpy.ranges import arange, linspace

__all__ = [
    "pad",
]  # fmt: skip

PadWidth = int | Sequence[int] | Sequence[Sequence[int]] | np.ndarray

_FROM_INSIDE: Final = ("edge", "reflect", "symmetric", "wrap")

_OF_ENDS: Final = ("maximum", "mean", "median", "minimum")

_OPTIONS: Final = {
    "constant": "constant_values",
    "linear_ramp": "end_values",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    **dict.fromkeys(_OF_ENDS, "stat_length"),
}
"""The option that a mode has."""

PadFunction = Callable[[Array, tuple[int, int], int, dict[str, object]], Array]
"""A function of a vector, the widths of its padding, its axis and further keywords."""


def pad(
    array: ArrayLike,
    pad_width: PadWidth,
    mode: str | PadFunction = "constant",
    *,
    constant_values: ArrayLike | Sequence[object] | None = None,
    end_values: ArrayLike | Sequence[object] | None = None,
    stat_length: PadWidth | None = None,
    reflect_type: str | None = None,
    **kwargs: object,
) -> Array:
    """Return ``array`` with elements added before and after each axis.

    Args:
        array: array or scalar.
        pad_width: number of elements: one for all, ``(before, after)``, or one pair per axis.
        mode: "constant", "empty" (zeros), "edge", "reflect", "symmetric", "wrap", "linear_ramp",
            "maximum", "mean", "median" or "minimum"; or a function of each vector along an axis,
            padded with zeros, which returns it whole.
        constant_values: constants, in the forms of ``pad_width``; 0 by default.
        end_values: values at the ends of "linear_ramp", as the constants.
        stat_length: numbers of elements at the ends that "mean" and others take; None for all.
        reflect_type: "even", the default, or "odd" for twice the end minus reflected elements.
        kwargs: passed to a function.

    Returns:
        Array of the dtype of ``array``.

    Raises:
        NotSupported: an unknown mode.
        BadArgument: a negative width, an empty axis whose elements repeat, or an option of another
            mode.

    >>> jnp.pad(jnp.array([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int32)
    """
    x = as_value(array, "the argument of pad")
    widths = _widths(pad_width, x.ndim)
    options = {
        "constant_values": constant_values,
        "end_values": end_values,
        "stat_length": stat_length,
        "reflect_type": reflect_type,
    }
    given = kwargs | {name: value for name, value in options.items() if value is not None}
    if callable(mode):
        return _by_function(_with_constants(x, widths, 0), widths, mode, given)
    if mode not in (*_OPTIONS, *_FROM_INSIDE, "empty"):
        raise NotSupported(
            "unknown mode of pad",
            f"constant, empty, linear_ramp, {', '.join((*_FROM_INSIDE, *_OF_ENDS))}",
            repr(mode),
        )
    _check_options(mode, given)
    if mode in ("constant", "empty"):
        return _with_constants(x, widths, 0 if constant_values is None else constant_values)
    if mode == "linear_ramp":
        ends = pairs_of(0 if end_values is None else end_values, x.ndim, "end_values")
        return pr.converted(_with_ramps(x, widths, ends), x.dtype, x.weak_type)
    if mode in _OF_ENDS:
        lengths = None if stat_length is None else _widths(stat_length, x.ndim)
        made = _with_statistics(x, widths, mode, lengths)
        return pr.converted(made, x.dtype, x.weak_type)
    return _with_own_elements(x, widths, mode, reflect_type or "even")


def _check_options(mode: str, given: Mapping[str, object]) -> None:
    """Raise BadArgument for an option that the mode does not have."""
    unused = [name for name in given if name != _OPTIONS.get(mode)]
    if unused:
        raise BadArgument(
            f"unsupported keyword arguments for mode {mode!r} of pad",
            expected=_OPTIONS.get(mode, "none"),
            found=", ".join(unused),
        )


def _with_own_elements(
    x: Array, widths: list[tuple[int, int]], mode: str, reflect_type: str
) -> Array:
    if reflect_type not in ("even", "odd"):
        raise BadArgument("unknown reflection of pad", "'even' or 'odd'", repr(reflect_type))
    for axis, (before, after) in enumerate(widths):
        if before == after == 0:
            continue
        if x.shape[axis] == 0:
            raise BadArgument(f"pad cannot repeat elements of the empty axis {axis}")
        if reflect_type == "odd" and mode in ("reflect", "symmetric"):
            x = _oddly_reflected(x, axis, (before, after), int(mode == "reflect"))
            continue
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


def pairs_of(values: object, ndim: int, what: str) -> list[tuple[ArrayLike, ArrayLike]]:
    """Return a pair for each axis, of one value, a pair or pairs. Raises BadArgument."""
    try:
        table = np.broadcast_to(np.asarray(values), (ndim, 2))
    except ValueError:
        expected = f"values that broadcast to shape {(ndim, 2)}"
        raise BadArgument(f"{what} of pad does not fit", expected, str(values)) from None
    return [(first, last) for first, last in table]


def _by_function(
    x: Array, widths: list[tuple[int, int]], f: PadFunction, kwargs: dict[str, object]
) -> Array:
    for axis, pair in enumerate(widths):
        moved = moveaxis(x, axis, -1)
        rows = reshape(moved, (-1, moved.shape[-1]))
        # The argument is evaluated when the function is called, in this iteration.
        made = vmap(lambda row, pair=pair, axis=axis: f(row, pair, axis, kwargs))(rows)
        x = moveaxis(reshape(uf.astype(made, x.dtype), moved.shape), -1, axis)
    return x


def _with_ramps(
    x: Array, widths: list[tuple[int, int]], ends: list[tuple[ArrayLike, ArrayLike]]
) -> Array:
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, ends, strict=True)):
        sides = []
        for width, end, at in ((before, first, 0), (after, last, x.shape[axis] - 1)):
            edge = squeeze(slice_along(x, axis, at, at + 1), axis)
            sides.append(_ramp(end, edge, width, axis))
        x = concatenate([sides[0], x, flip(sides[1], axis)], axis)
    return x


def _ramp(end: ArrayLike, edge: Array, width: int, axis: int) -> Array:
    """Return ``width`` values from an end towards the edge of an array, along a new axis."""
    if edge.dtype.kind not in "iu":
        return linspace(end, edge, width, endpoint=False, dtype=edge.dtype, axis=axis)
    # In integers, since a quotient that is rounded down would make a small error a whole one.
    wide = uf.astype(edge, int)
    steps = reshape(arange(width), (width, *(1,) * edge.ndim))
    risen = floor_divide(uf.multiply(uf.subtract(wide, end), steps), max(width, 1))
    return uf.astype(moveaxis(uf.add(risen, end), 0, axis), edge.dtype)


def _with_statistics(
    x: Array, widths: list[tuple[int, int]], mode: str, lengths: list[tuple[int, int]] | None
) -> Array:
    from effax.numpy import quantiles, reduce, statistics

    functions: dict[str, Callable[..., Array]] = {
        "maximum": reduce.max,
        "mean": statistics.mean,
        "median": quantiles.median,
        "minimum": reduce.min,
    }
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        first, last = (n, n) if lengths is None else (min(k, n) for k in lengths[axis])
        if min(first, last) < 1:
            raise BadArgument(f"pad of {mode} takes elements", "stat_length of at least 1", "0")
        parts = [slice_along(x, axis, 0, first), slice_along(x, axis, n - last, n)]
        values = [functions[mode](part, axis, keepdims=True) for part in parts]
        if x.dtype.kind in "iu" and values[0].dtype.kind not in "iu":
            values = [uf.rint(value) for value in values]
        sides = [
            repeat(uf.astype(value, x.dtype), width, axis)
            for value, width in zip(values, (before, after), strict=True)
        ]
        x = concatenate([sides[0], x, sides[1]], axis)
    return x


def _oddly_reflected(x: Array, axis: int, widths: tuple[int, int], skipped: int) -> Array:
    """Pad by twice the end minus reflected elements, ``skipped`` from the end, as often as needed.

    The padded array is reflected again where one reflection has too few elements, as in NumPy.
    """
    before, after = widths
    if x.shape[axis] == 1 and skipped:
        return pad(x, [(before, after) if i == axis else (0, 0) for i in range(x.ndim)], "edge")
    while before or after:
        n = x.shape[axis]
        low, high = min(before, n - skipped), min(after, n - skipped)
        ends = slice_along(x, axis, 0, 1), slice_along(x, axis, n - 1, n)
        inner = (
            slice_along(x, axis, skipped, skipped + low),
            slice_along(x, axis, n - skipped - high, n - skipped),
        )
        left, right = (
            uf.subtract(uf.multiply(2, end), flip(part, axis))
            for end, part in zip(ends, inner, strict=True)
        )
        x = concatenate([left, x, right], axis)
        before, after = before - low, after - high
    return x


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
