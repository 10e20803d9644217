"""Joining, splitting, repeating and rolling arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DeviceArray, DTypeLike, as_value
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Concatenate
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.axes import no_out, plain_axis, sequence_of, static_int
from effax.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
    slice_along,
    taken_along,
)

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dstack", "hsplit",
    "hstack", "repeat", "roll", "split", "stack", "tile", "unstack", "vsplit", "vstack",
]  # fmt: skip

Arrays = Sequence[ArrayLike] | Array | np.ndarray


def _listed(arrays: Arrays, what: str) -> list[Array]:
    if isinstance(arrays, Array | np.ndarray):
        if not arrays.shape:
            raise IllTyped(f"{what} takes a sequence of arrays", found="an array without axes")
        return list(unstack(arrays))
    if not isinstance(arrays, Sequence):
        raise IllTyped(f"{what} takes a sequence of arrays", found=type(arrays).__name__)
    if not arrays:
        raise BadArgument(f"{what} of no arrays", "at least one array", "none")
    return [as_value(x, f"array {i} of {what}") for i, x in enumerate(arrays)]


def _in_one_dtype(arrays: Sequence[Array], what: str, dtype: DTypeLike | None) -> Sequence[Array]:
    first = arrays[0].type
    if dtype is None and all(x.type.dtype is first.dtype for x in arrays):
        return arrays
    kind, weak = pr.common_dtype(arrays, what) if dtype is None else (allowed(dtype), False)
    return [pr.converted(x, kind, weak) for x in arrays]


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """The arrays one after the other along an axis, or flattened where it is None."""
    values = _listed(arrays, "concatenate")
    if axis is None:
        values, axis = [ravel(x) for x in values], 0
    if any(not x.shape for x in values):
        raise BadArgument(
            "arrays without axes cannot be concatenated",
            expected="at least one axis",
            found=", ".join(str(x.type) for x in values),
            remedy="use `stack`",
        )
    place = plain_axis(axis, values[0].ndim, "concatenate")
    values = list(_in_one_dtype(values, "concatenate", dtype))
    return bind1(Concatenate(place), *values) if len(values) > 1 else values[0]


concat = concatenate


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """The arrays, of one shape, along a new axis."""
    no_out(out, "stack")
    values = _listed(arrays, "stack")
    for i, x in enumerate(values):
        if x.shape != values[0].shape:
            raise IllTyped(
                f"array {i} of stack has another shape",
                expected=f"shape {values[0].shape}",
                found=f"shape {x.shape}",
            )
    place = plain_axis(axis, values[0].ndim + 1, "stack")
    return concatenate([expand_dims(x, place) for x in values], place, dtype)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, each without it."""
    value = as_value(x, "the argument of unstack")
    place = plain_axis(axis, value.ndim, "unstack")
    return tuple(
        [slice_along(value, place, i, i + 1, drop=True) for i in range(value.shape[place])]
    )


def hstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Side by side: along the second axis, or the only one."""
    values = [atleast_1d(x) for x in _listed(tup, "hstack")]
    return concatenate(values, 0 if values[0].ndim == 1 else 1, dtype)


def vstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """One below the other: along the first axis; vectors are rows."""
    return concatenate([atleast_2d(x) for x in _listed(tup, "vstack")], 0, dtype)


def dstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """One behind the other: along the third axis."""
    return concatenate([atleast_3d(x) for x in _listed(tup, "dstack")], 2, dtype)


def column_stack(tup: Arrays) -> Array:
    """Side by side; vectors are columns."""
    values = _listed(tup, "column_stack")
    return concatenate([expand_dims(atleast_1d(x), 1) if x.ndim < 2 else x for x in values], 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """``values`` after ``arr`` along an axis, both flattened where it is None."""
    return concatenate([arr, values], axis)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """So many equal parts along an axis, or the parts between these positions."""
    x = as_value(ary, "the argument of split")
    place = plain_axis(axis, x.ndim, "split")
    if not isinstance(indices_or_sections, Sequence) and not pr.shape_of(indices_or_sections):
        parts = static_int(indices_or_sections, "the number of parts of split")
        if parts < 1 or x.shape[place] % parts:
            raise BadArgument(
                "split makes equal parts",
                expected=f"a number that divides {x.shape[place]}",
                found=str(parts),
                remedy="use `array_split`",
            )
    return array_split(x, indices_or_sections, axis)


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """So many parts along an axis, as equal as can be, or the parts between these positions."""
    x = as_value(ary, "the argument of array_split")
    place = plain_axis(axis, x.ndim, "array_split")
    size = x.shape[place]
    if not isinstance(indices_or_sections, Sequence) and not pr.shape_of(indices_or_sections):
        parts = static_int(indices_or_sections, "the number of parts of array_split")
        if parts < 1:
            raise BadArgument("array_split makes parts", "a number of at least 1", str(parts))
        each, longer = divmod(size, parts)
        ends = [i * each + min(i, longer) for i in range(parts + 1)]
        return [slice_along(x, place, a, b) for a, b in pairwise(ends)]
    cuts = [int(i) for i in np.asarray(indices_or_sections)]
    spans = [slice(a, b).indices(size) for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    return [slice_along(x, place, a, max(a, b)) for a, b, _ in spans]


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Parts along the second axis, or the only one."""
    x = as_value(ary, "the argument of hsplit")
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:  # noqa: N803  NumPy's name
    """The array laid side by side so many times along each axis."""
    x = as_value(A, "the argument of tile")
    times = [
        static_int(n, "reps of tile") for n in (reps if isinstance(reps, Sequence) else [reps])
    ]
    times = [1] * (x.ndim - len(times)) + times
    sizes = [1] * (len(times) - x.ndim) + list(x.shape)
    apart = [n for size in sizes for n in (1, size)]
    full = [n for rep, size in zip(times, sizes, strict=True) for n in (rep, size)]
    spread = broadcast_to(reshape(x, apart), full)
    return reshape(spread, [r * n for r, n in zip(times, sizes, strict=True)])


def repeat(
    a: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Array:
    """Each element so many times, along an axis or flattened.

    Args:
        a: the array.
        repeats: how many times: a number, or one an element.
        axis: where; None flattens.
        total_repeat_length: the size of the result, which must be given where ``repeats`` is
            traced; then the last element fills up, or elements are left out.
    """
    x = as_value(a, "the argument of repeat")
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    place = plain_axis(axis, x.ndim, "repeat")
    size = x.shape[place]
    if total_repeat_length is None and isinstance(repeats, int | np.integer):
        widened = expand_dims(x, place + 1)
        shape = (*x.shape[: place + 1], int(repeats), *x.shape[place + 1 :])
        merged = (*x.shape[:place], size * int(repeats), *x.shape[place + 1 :])
        return reshape(broadcast_to(widened, shape), merged)
    counts = as_value(np.asarray(repeats) if isinstance(repeats, Sequence) else repeats)
    if isinstance(counts, DeviceArray):
        positions = np.repeat(np.arange(size), counts.numpy())
        if total_repeat_length is not None:
            fill = positions[-1] if len(positions) else max(size - 1, 0)
            missing = max(0, total_repeat_length - len(positions))
            positions = np.append(positions, [fill] * missing)[:total_repeat_length]
        return taken_along(x, place, positions)
    if total_repeat_length is None:
        counts.numpy()
    return _repeat_traced(x, counts, place, static_int(total_repeat_length, "total_repeat_length"))


def _repeat_traced(x: Array, counts: Array, axis: int, total: int) -> Array:
    from effax.numpy.index import take
    from effax.numpy.reduce import cumsum
    from effax.numpy.sorting import searchsorted

    ends = cumsum(broadcast_to(counts, (x.shape[axis],)))
    at = searchsorted(ends, np.arange(total, dtype=np.int32), side="right")
    return take(x, at, axis, mode="clip")


def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """The elements moved along axes; what leaves at the end comes in at the front."""
    x = as_value(a, "the argument of roll")
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = [plain_axis(i, x.ndim, "roll") for i in sequence_of(axis)]
    shifts = _shifts(shift, len(axes))
    for place, by in zip(axes, shifts, strict=True):
        x = _rolled(x, by, place)
    return x


def _shifts(shift: ArrayLike | Sequence[int], count: int) -> list[ArrayLike]:
    given: list[ArrayLike]
    if isinstance(shift, Sequence):
        given = list(shift)
    else:
        given = list(unstack(shift)) if pr.shape_of(shift) else [shift]
    if len(given) == 1:
        given = given * count
    if len(given) != count:
        raise BadArgument("roll takes one shift an axis", f"{count} shifts", str(len(given)))
    return given


def _rolled(x: Array, shift: ArrayLike, axis: int) -> Array:
    size = x.shape[axis]
    if size == 0:
        return x
    if isinstance(shift, Array) and not isinstance(shift, DeviceArray):
        from effax.arrays.indexing import ds
        from effax.numpy.arithmetic import remainder

        twice = concatenate([x, x], axis)
        start = remainder(uf.negative(shift), size)
        return twice[(*[slice(None)] * axis, ds(start, size))]
    by = static_int(shift, "the shift of roll") % size
    if by == 0:
        return x
    parts = slice_along(x, axis, size - by, size), slice_along(x, axis, 0, size - by)
    return concatenate(parts, axis)
