"""Normalize axes, shapes and sizes to checked nonnegative Python ints."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from effax.arrays.array import Array, Axis
from effax.ir.errors import BadArgument, BadAxis, IllTyped, NotSupported
from effax.ir.symbolic import SymbolicDim, as_int
from effax.ir.types import Shape


def static_int(value: object, what: str) -> int:
    """Return a Python int. Raises IllTyped for other types, ConcretizationError for a tracer."""
    if type(value) is int or isinstance(value, SymbolicDim):
        return as_int(value)
    if isinstance(value, bool | np.bool_):
        raise IllTyped(f"{what} is a boolean", expected="an integer", found=repr(value))
    try:
        return operator.index(value)  # type: ignore[arg-type]  # raises TypeError where it is none
    except TypeError as error:
        if isinstance(value, Array) and not value.shape and value.dtype.kind in "iu":
            raise error from None
        raise IllTyped(
            f"{what} is not an integer",
            expected="an integer",
            found=f"{type(value).__name__}: {value!r:.60}",
        ) from None


def nonnegative(value: object, what: str) -> int:
    """Return a size as an int. Raises IllTyped, or BadArgument for a negative one."""
    size = static_int(value, what)
    if size < 0:
        raise BadArgument(f"{what} is negative", "at least 0", str(size))
    return size


def plain_axis(axis: object, ndim: int, what: str) -> int:
    """Return an axis in ``range(ndim)``. Raises BadAxis for one out of range."""
    index = static_int(axis, f"the axis of {what}")
    if -ndim <= index < ndim:
        return index % ndim
    raise BadAxis(
        f"{what} names an axis that the array does not have",
        expected=f"at least {-ndim} and less than {ndim}" if ndim else "no axis: it is a scalar",
        found=f"axis {index}",
    )


def counted_axis(axis: object, ndim: int, what: str) -> int:
    """Return an axis counted from the first, as those of ``lax``. Raises BadAxis for others."""
    index = static_int(axis, f"the axis of {what}")
    if 0 <= index < ndim:
        return index
    raise BadAxis(
        f"{what} names an axis that the array does not have",
        expected=f"at least 0 and less than {ndim}" if ndim else "no axis: it is a scalar",
        found=f"axis {index}",
    )


def plain_axes(axis: Axis, ndim: int, what: str) -> tuple[int, ...]:
    """Return distinct axes in ``range(ndim)``; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and 0 <= axis < ndim:
        return (axis,)
    named = axis if isinstance(axis, tuple | list) else [axis]
    axes = tuple([plain_axis(a, ndim, what) for a in named])
    if len(set(axes)) != len(axes):
        raise BadArgument(f"{what} names an axis twice", "distinct axes", str(axis))
    return axes


ShapeLike = int | Sequence[int]
"""A shape as users write it: a size, or sizes."""


def plain_shape(shape: object, what: str) -> Shape:
    """Return sizes as a tuple of ints. Raises IllTyped or BadArgument for an invalid shape."""
    if isinstance(shape, np.ndarray) and not shape.shape:
        shape = shape[()]
    if isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str):
        sizes = tuple([static_int(n, f"a size in the shape of {what}") for n in shape])
    elif isinstance(shape, Array) and shape.shape:
        sizes = tuple(int(n) for n in shape.numpy())
    else:
        sizes = (static_int(shape, f"the shape of {what}"),)
    if any(n < 0 for n in sizes):
        raise BadArgument(
            f"the shape of {what} has a negative size", "sizes of at least 0", str(sizes)
        )
    return sizes


def sequence_of(axis: int | Sequence[int]) -> list[int]:
    """Return one axis or several as a list."""
    return list(axis) if isinstance(axis, Sequence) else [axis]


def no_out(out: None, what: str) -> None:
    """Raise NotSupported where an output is given: arrays are immutable."""
    if out is not None:
        raise NotSupported(
            f"{what} takes no `out`, since arrays are immutable",
            expected="None",
            found=type(out).__name__,
            remedy="use the result",
        )
