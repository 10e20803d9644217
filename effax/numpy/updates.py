"""NumPy's functions that change an array, as functions that return the changed one."""

from __future__ import annotations

import math

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.conversion import as_value
from effax.arrays.indexing import integer_positions
from effax.arrays.shapes import broadcast_to, ravel, reshape
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip, remainder
from effax.numpy.positions import where
from effax.numpy.ranges import arange
from effax.numpy.reduce import cumsum

__all__ = [
    "fill_diagonal", "place", "put", "put_along_axis",
]  # fmt: skip


def _no_place(inplace: bool, what: str) -> None:
    """Raise BadArgument unless a changed array is asked for: arrays are immutable."""
    if inplace:
        raise BadArgument(
            f"{what} cannot change an array, since arrays are immutable",
            expected="inplace=False",
            found="inplace=True",
            remedy="use its result; or update a reference: `ref[index] = values`",
        )


def _cycled(values: Array, count: int, like: Array) -> Array:
    """Return a vector repeated to a size, in the dtype of an array."""
    x = uf.astype(ravel(values), like.dtype)
    if x.size == count:
        return x
    return ravel(broadcast_to(x, (-(-count // x.size), x.size)))[:count]


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return the array with values at the true elements of a mask, in their order.

    Args:
        arr: array.
        mask: booleans in the shape of ``arr``.
        vals: values, repeated if there are fewer than true elements.
        inplace: False; arrays are immutable.

    Returns:
        Array of the shape and dtype of ``arr``.

    Raises:
        BadArgument: ``inplace`` is true, or there are no values.
        IllTyped: the mask has another size.

    >>> jnp.place(jnp.zeros(3), jnp.array([True, False, True]), jnp.array([1, 2]), inplace=False)
    Array([1., 0., 2.], dtype=float32)
    """
    _no_place(inplace, "place")
    x, there = as_value(arr, "the array of place"), ravel(as_value(mask, "the mask of place"))
    values = ravel(as_value(vals, "the values of place"))
    if there.size != x.size:
        raise IllTyped("the mask of place differs in size", str(x.size), str(there.size))
    if not values.size:
        if not x.size:
            return x
        raise BadArgument("place expects values", "at least one", "none")
    there = uf.not_equal(there, 0)
    nth = remainder(cumsum(there) - 1, values.size)
    chosen = uf.astype(values[nth], x.dtype)
    return reshape(where(there, chosen, ravel(x)), x.shape)


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Return the array with values at positions in its flattened form.

    Args:
        a: array.
        ind: integer positions; negative ones count from the end.
        v: values, repeated if there are fewer than positions.
        mode: out of bounds, None drops the value, "clip" clamps, "wrap" is modulo.
        inplace: False; arrays are immutable.

    Returns:
        Array of the shape and dtype of ``a``.

    Raises:
        BadArgument: ``inplace`` is true, there are no values, or the mode is unknown.

    >>> jnp.put(jnp.zeros(3), jnp.array([0, -1]), 5.0, inplace=False)
    Array([5., 0., 5.], dtype=float32)
    """
    _no_place(inplace, "put")
    if mode not in (None, "clip", "wrap"):
        raise BadArgument("unknown mode of put", "None, clip or wrap", repr(mode))
    x = as_value(a, "the array of put")
    at = ravel(integer_positions(ind, "the positions of put"))
    values = as_value(v, "the values of put")
    if not at.size:
        return x
    if not values.size:
        raise BadArgument("put expects values", "at least one", "none")
    if mode == "clip":
        at = clip(at, 0, x.size - 1)
    elif mode == "wrap":
        at = remainder(at, x.size)
    return reshape(ravel(x).at[at].set(_cycled(values, at.size, x)), x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Return the array with values at positions along an axis, aligned with the other axes.

    Args:
        arr: array.
        indices: integers; their other axes broadcast with those of ``arr``.
        values: values, which broadcast to ``indices``.
        axis: axis; None flattens.
        inplace: False; arrays are immutable.
        mode: out of bounds, see the methods of ``Array.at``.

    Returns:
        Array of the shape and dtype of ``arr``.

    Raises:
        BadArgument: ``inplace`` is true.
        IllTyped: ``indices`` have another number of axes.

    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 3.0, 1, inplace=False)
    Array([[0., 3.],
           [3., 0.]], dtype=float32)
    """
    _no_place(inplace, "put_along_axis")
    x = as_value(arr, "the array of put_along_axis")
    at = integer_positions(indices, "the indices of put_along_axis")
    if axis is None:
        return reshape(ravel(x).at[ravel(at)].set(values, mode=mode), x.shape)
    along = plain_axis(axis, x.ndim, "put_along_axis")
    if at.ndim != x.ndim:
        raise IllTyped("put_along_axis expects as many axes", f"{x.ndim} axes", str(at.type))
    index = tuple(
        at
        if i == along
        else reshape(arange(n), [-1 if j == i else 1 for j, _ in enumerate(x.shape)])
        for i, n in enumerate(x.shape)
    )
    return x.at[index].set(values, mode=mode)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Return the array with values on its main diagonal.

    Args:
        a: array of at least 2 axes; of equal sizes if there are more than 2.
        val: values, repeated along the diagonal.
        wrap: whether the diagonal of a tall matrix continues below, with a row left out between.
        inplace: False; arrays are immutable.

    Returns:
        Array of the shape and dtype of ``a``.

    Raises:
        BadArgument: ``inplace`` is true.
        IllTyped: there are fewer than 2 axes, or more, of sizes that differ.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 4.0, inplace=False)
    Array([[4., 0.],
           [0., 4.]], dtype=float32)
    """
    _no_place(inplace, "fill_diagonal")
    x = as_value(a, "the argument of fill_diagonal")
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise IllTyped("fill_diagonal expects a matrix, or axes of one size", found=str(x.type))
    step = 1 + sum(math.prod(x.shape[i:]) for i in range(1, x.ndim))
    columns = x.shape[1]
    end = x.size if wrap or x.ndim > 2 else min(x.size, columns * columns)
    at = arange(0, end, step)
    values = _cycled(as_value(val, "the values of fill_diagonal"), at.size, x)
    return reshape(ravel(x).at[at].set(values), x.shape)
