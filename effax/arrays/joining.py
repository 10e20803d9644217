"""Joining and splitting arrays along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import no_out, plain_axis, static_int
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, expand_dims, ravel, reshape, slice_along
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Concatenate

Arrays = Sequence[ArrayLike] | Array | np.ndarray


def listed(arrays: Arrays, what: str) -> list[Array]:
    """Return the arrays as a list. Raises IllTyped, BadArgument for no arrays."""
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
    if dtype is not None:
        return [pr.converted(x, allowed(dtype), False) for x in arrays]
    kind, weak = pr.common_dtype(arrays, what)
    return [pr.in_dtype(x, kind, weak, f"array {i} of {what}") for i, x in enumerate(arrays)]


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the arrays joined along an existing axis.

    Args:
        arrays: sequence of arrays of one shape but for ``axis``.
        axis: axis to join along; None flattens.
        dtype: dtype of the result, by promotion by default.

    Returns:
        Array whose size along ``axis`` is the sum of sizes.

    Raises:
        BadArgument: there are no arrays, or one is a scalar.
        IllTyped: shapes differ in another axis.

    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    values = listed(arrays, "concatenate")
    if axis is None:
        values, axis = [ravel(x) for x in values], 0
    if any(not x.shape for x in values):
        raise BadArgument(
            "concatenate takes no scalars",
            expected="at least one axis",
            found=", ".join(str(x.type) for x in values),
            remedy="use `stack`",
        )
    place = plain_axis(axis, values[0].ndim, "concatenate")
    values = list(_in_one_dtype(values, "concatenate", dtype))
    return bind1(Concatenate(place), *values) if len(values) > 1 else values[0]


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Return the arrays joined along a new axis.

    Args:
        arrays: sequence of arrays of one shape.
        axis: position of the new axis.
        out: unsupported.
        dtype: dtype of the result, by promotion by default.

    Returns:
        Array with a new axis of size ``len(arrays)``.

    Raises:
        IllTyped: shapes differ.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    no_out(out, "stack")
    values = listed(arrays, "stack")
    for i, x in enumerate(values):
        if x.shape != values[0].shape:
            raise IllTyped(
                f"array {i} of stack has another shape",
                expected=f"shape {values[0].shape}",
                found=f"shape {x.shape}",
            )
    place = plain_axis(axis, values[0].ndim + 1, "stack")
    values = list(_in_one_dtype(values, "stack", dtype))
    return concatenate([expand_dims(x, place) for x in values], place)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of ``x`` along ``axis``, which they lack.

    Args:
        x: array or scalar.
        axis: axis to split along.

    Returns:
        Tuple of ``x.shape[axis]`` arrays.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    value = as_value(x, "the argument of unstack")
    place = plain_axis(axis, value.ndim, "unstack")
    return tuple(
        [slice_along(value, place, i, i + 1, drop=True) for i in range(value.shape[place])]
    )


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:  # noqa: N803  NumPy's name
    """Return ``A`` repeated as a whole along each axis.

    Args:
        A: array or scalar.
        reps: number of repetitions per axis; missing ones are 1.

    Returns:
        Array whose sizes are products of those of ``A`` and ``reps``.

    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
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
