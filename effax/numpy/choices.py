"""Selections by conditions, masks and numbers of choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import no_out, plain_axes, plain_axis
from effax.arrays.conversion import as_value
from effax.arrays.indexing import integer_positions
from effax.arrays.joining import stack
from effax.arrays.shapes import broadcast_arrays, ravel, reshape, slice_along, taken_along
from effax.ir.errors import BadArgument, BadIndex, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip, remainder
from effax.numpy.index import take, take_along_axis
from effax.numpy.positions import nonzero, where

__all__ = [
    "choose", "compress", "piecewise", "trim_zeros",
]  # fmt: skip


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Return the slices along an axis where a condition is true.

    Args:
        condition: vector of booleans; slices beyond its end are left out.
        a: array.
        axis: axis of the slices; None flattens.
        size: number of slices to return, truncated or filled up; required for a traced condition.
        fill_value: padding up to ``size``.
        out: unsupported.

    Returns:
        Array of the dtype of ``a``.

    Raises:
        IllTyped: the condition is not a vector.
        BadIndex: the condition is true beyond the last slice.
        ConcretizationError: the condition is traced and there is no ``size``.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    no_out(out, "compress")
    given = as_value(condition, "the condition of compress")
    if given.ndim != 1:
        raise IllTyped("compress expects a vector of conditions", "1 axis", str(given.type))
    x = as_value(a, "the array of compress")
    x, place = (ravel(x), 0) if axis is None else (x, plain_axis(axis, x.ndim, "compress"))
    n = x.shape[place]
    if size is None:
        there = np.flatnonzero(given.numpy())
        if there.size and there[-1] >= n:
            raise BadIndex(
                "compress has a condition beyond the last slice", f"at most {n}", str(there[-1] + 1)
            )
        return taken_along(x, place, there)
    mask = uf.not_equal(given[:n], 0)
    (at,) = nonzero(mask, size=size, fill_value=mask.size)
    found = take(x, at, place, mode="clip") if n else x
    beyond = reshape(at >= mask.size, [-1 if i == place else 1 for i, _ in enumerate(x.shape)])
    return where(beyond, uf.astype(as_value(fill_value), x.dtype), found)


def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Return elements of arrays, at each place that of the array with the number there.

    Args:
        a: numbers of choices.
        choices: arrays, which broadcast with ``a``; or an array, of which each row is a choice.
        out: unsupported.
        mode: "raise" for an error, "clip" for the nearest choice, "wrap" for modulo.

    Returns:
        Array of the broadcast shape.

    Raises:
        BadArgument: an unknown mode.
        BadIndex: a number is out of bounds in the mode "raise".
        ConcretizationError: numbers are traced in the mode "raise".

    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([3, 4])])
    Array([3, 2], dtype=int32)
    """
    no_out(out, "choose")
    parts = list(choices) if isinstance(choices, (list, tuple)) else list(as_value(choices))
    at = integer_positions(a, "the numbers of choose")
    n = len(parts)
    if mode == "raise":
        if not bool(((at >= 0) & (at < n)).all()):
            raise BadIndex("choose has no such choice", f"0 to {n - 1}", str(at)[:60])
    elif mode == "wrap":
        at = remainder(at, n)
    elif mode == "clip":
        at = clip(at, 0, n - 1)
    else:
        raise BadArgument("unknown mode of choose", "raise, clip or wrap", repr(mode))
    at, *arrays = broadcast_arrays(at, *parts)
    return take_along_axis(stack(arrays), at[None], 0)[0]


def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[ArrayLike | Callable[..., ArrayLike]],
    *args: object,
    **kw: object,
) -> Array:
    """Return a function that is defined by pieces, each where a condition is true.

    Args:
        x: argument.
        condlist: conditions, in the shape of ``x``; the last that is true counts.
        funclist: for each condition a function of ``x`` or a value, and one more for the places
            where none is true, 0 by default. All functions are called on all of ``x``.
        *args: further arguments of the functions.
        **kw: further arguments by name.

    Returns:
        Array of the shape and dtype of ``x``.

    Raises:
        BadArgument: the number of functions is not that of the conditions, or one more.

    >>> x = jnp.array([-2.0, 3.0])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda x: -x, 10.0])
    Array([ 2., 10.], dtype=float32)
    """
    value = as_value(x, "the argument of piecewise")
    conditions = _conditions(condlist, value)
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        default = functions.pop()
    elif len(functions) == len(conditions):
        default = 0
    else:
        raise BadArgument(
            "piecewise expects a function for each condition, or one more",
            expected=f"{len(conditions)} or {len(conditions) + 1}",
            found=str(len(functions)),
        )

    def piece(f: ArrayLike | Callable[..., ArrayLike]) -> Array:
        found = f(value, *args, **kw) if callable(f) else f
        return uf.astype(as_value(found, "a piece of piecewise"), value.dtype)

    result = piece(default)
    for condition, f in zip(conditions, functions, strict=True):
        result = where(condition, piece(f), result)
    return result if result.shape == value.shape else broadcast_arrays(value, result)[1]


def _conditions(condlist: ArrayLike | Sequence[ArrayLike], x: Array) -> list[Array]:
    """Return conditions of an argument; booleans in a list are a single one, of a vector."""
    if not isinstance(condlist, (list, tuple)):
        given = as_value(condlist, "the conditions of piecewise")
        return [given] if given.ndim <= x.ndim else list(given)
    parts = [as_value(c, "a condition of piecewise") for c in condlist]
    flat = x.ndim > 0 and all(c.ndim == 0 for c in parts)
    return [stack(parts)] if flat else parts


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Return the array without the slices of zeros at its ends.

    Args:
        filt: array of known value.
        trim: "f" for slices at the front, "b" for those at the back, "fb" for both.
        axis: axis or axes; all by default.

    Returns:
        Part of the array.

    Raises:
        ConcretizationError: the array is traced.
        BadArgument: ``trim`` is something else.

    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    sides = trim.lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise BadArgument("trim_zeros trims front or back", "f, b or fb", repr(trim))
    x = as_value(filt, "the argument of trim_zeros")
    known = x.numpy()
    for place in plain_axes(axis, x.ndim, "trim_zeros"):
        others = tuple(i for i, _ in enumerate(x.shape) if i != place)
        there = (known != 0).any(others).nonzero()[0]
        if not there.size:
            return slice_along(x, place, 0, 0)
        start = int(there[0]) if "f" in sides else 0
        stop = int(there[-1]) + 1 if "b" in sides else known.shape[place]
        x = slice_along(x, place, start, stop)
    return x
