"""Rearrangement of elements: reshape, transpose, broadcast, flip, diagonal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, Axis
from effax.arrays.axes import plain_axes, plain_axis, plain_shape, sequence_of, static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span
from effax.ir.prims import Gather
from effax.ir.prims import shape as prims
from effax.ir.types import Shape

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose",
    "moveaxis", "permute_dims", "ravel", "reshape", "rot90", "squeeze", "swapaxes", "transpose",
]  # fmt: skip


def reshape(
    a: ArrayLike,
    shape: int | Sequence[int],
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: object = None,
) -> Array:
    """Return the elements of ``a`` in another shape.

    Args:
        a: array or scalar.
        shape: new sizes; one may be -1 and is inferred.
        order: "C" for row-major or "F" for column-major order of elements.
        copy: ignored; arrays are immutable and share no memory.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``, dtype of ``a``.

    Raises:
        IllTyped: the number of elements changes.
        BadArgument: more than one size is -1, or an unknown order.

    >>> jnp.reshape(jnp.arange(4), (2, -1))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return on_device(reshape(a, shape, order, copy=copy), out_sharding, "reshape")
    x = as_value(a, "the argument of reshape")
    sizes = _resolved(x, shape)
    if order == "F":
        return transpose(bind1(prims.Reshape(sizes[::-1]), transpose(x)))
    if order != "C":
        raise BadArgument("unknown order of reshape", "'C' or 'F'", repr(order))
    return x if sizes == x.shape else bind1(prims.Reshape(sizes), x)


def _resolved(x: Array, shape: int | Sequence[int]) -> Shape:
    if type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape):
        sizes: list[int] = list(shape)
    else:
        named = list(shape) if isinstance(shape, Iterable) else [shape]
        sizes = [static_int(n, "a size in the shape of reshape") for n in named]
    if -1 not in sizes:
        return tuple(sizes)
    rest = -math.prod(sizes)
    if sizes.count(-1) > 1:
        raise BadArgument("reshape infers one size only", "at most one -1", str(tuple(sizes)))
    if (rest == 0 and x.size) or (rest and x.size % rest):
        raise IllTyped(
            "reshape cannot infer a size that keeps the number of elements",
            expected=f"sizes that divide {x.size} elements, as in {x.type}",
            found=str(tuple(sizes)),
        )
    sizes[sizes.index(-1)] = x.size // rest if rest else 0
    return tuple(sizes)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: object = None) -> Array:
    """Return the elements of ``a`` as a 1-D array.

    Args:
        a: array or scalar.
        order: "C" for row-major or "F" for column-major order of elements.
        out_sharding: sharding of the result.

    Returns:
        1-D array of the dtype of ``a``.

    >>> jnp.ravel(jnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return reshape(a, (-1,), order, out_sharding=out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return ``a`` with its axes permuted.

    Args:
        a: array or scalar.
        axes: permutation of the axes; None reverses them.

    Returns:
        Array of shape ``[a.shape[i] for i in axes]``.

    Raises:
        BadArgument: ``axes`` is not a permutation.

    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = as_value(a, "the argument of transpose")
    if axes is None:
        order = tuple(range(x.ndim))[::-1]
    else:
        order = plain_axes(tuple(axes), x.ndim, "transpose")
        if len(order) != x.ndim:
            raise BadArgument(
                "transpose expects all axes", f"a permutation of {x.ndim} axes", str(axes)
            )
    return x if order == tuple(range(x.ndim)) else bind1(prims.Transpose(order), x)


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return ``x`` with its last two axes exchanged. Raises IllTyped below 2-D.

    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    value = as_value(x, "the argument of matrix_transpose")
    if value.ndim < 2:
        raise IllTyped("matrix_transpose takes matrices", "at least 2 axes", str(value.type))
    return swapaxes(value, -1, -2)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Return ``a`` with some axes moved; the others keep their order.

    Args:
        a: array or scalar.
        source: axes to move.
        destination: their positions in the result.

    Returns:
        Array with the axes of ``a`` permuted.

    Raises:
        BadArgument: ``source`` and ``destination`` differ in length.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_value(a, "the argument of moveaxis")
    old = plain_axes(sequence_of(source), x.ndim, "moveaxis")
    new = plain_axes(sequence_of(destination), x.ndim, "moveaxis")
    if len(old) != len(new):
        raise BadArgument(
            "moveaxis expects one destination per source", f"{len(old)} destinations", str(len(new))
        )
    order = [i for i in range(x.ndim) if i not in old]
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return transpose(x, order)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Return ``a`` with two axes exchanged.

    Args:
        a: array or scalar.
        axis1: first axis to exchange.
        axis2: second axis to exchange.

    Returns:
        Array with the axes of ``a`` permuted.

    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_value(a, "the argument of swapaxes")
    i, j = plain_axis(axis1, x.ndim, "swapaxes"), plain_axis(axis2, x.ndim, "swapaxes")
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return transpose(x, order)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Return ``a`` with new axes of size 1.

    Args:
        a: array or scalar.
        axis: positions of the new axes in the result.

    Returns:
        Array of the elements of ``a``, ``len(axis)`` axes more.

    >>> jnp.expand_dims(jnp.arange(2), 1)
    Array([[0],
           [1]], dtype=int32)
    """
    x = as_value(a, "the argument of expand_dims")
    named = sequence_of(axis)
    new = tuple(sorted(plain_axes(named, x.ndim + len(named), "expand_dims")))
    return bind1(prims.ExpandDims(new), x) if new else x


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Return ``a`` without axes of size 1.

    Args:
        a: array or scalar.
        axis: axes to remove; None removes all of size 1.

    Returns:
        Array of the elements of ``a`` with fewer axes.

    Raises:
        BadArgument: an axis to remove has another size.

    >>> jnp.squeeze(jnp.ones((1, 2)))
    Array([1., 1.], dtype=float32)
    """
    x = as_value(a, "the argument of squeeze")
    if axis is None:
        gone = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        gone = plain_axes(axis, x.ndim, "squeeze")
    for i in gone:
        if x.shape[i] != 1:
            raise BadArgument("squeeze of an axis whose size is not 1", "size 1", str(x.type))
    return bind1(prims.Squeeze(gone), x) if gone else x


def broadcast_to(
    array: ArrayLike, shape: int | Sequence[int], *, out_sharding: object = None
) -> Array:
    """Return ``array`` broadcast to a shape.

    Args:
        array: array or scalar.
        shape: new sizes.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``, dtype of ``array``.

    Raises:
        IllTyped: ``array`` does not broadcast to ``shape``.

    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    x = as_value(array, "the argument of broadcast_to")
    sizes = plain_shape(shape, "broadcast_to")
    fits = len(x.shape) <= len(sizes) and all(
        n in (1, m) for n, m in zip(reversed(x.shape), reversed(sizes), strict=False)
    )
    if not fits:
        raise IllTyped(
            "an array does not broadcast to a shape",
            expected="equal sizes, or size 1, on each axis counted from the last",
            found=f"shape {x.shape} to broadcast to {sizes}",
        )
    made = pr.to_shape(x, sizes)
    return made if out_sharding is None else on_device(made, out_sharding, "broadcast_to")


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape to which ``shapes`` broadcast. Raises IllTyped where there is none.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    plain = [plain_shape(shape, "broadcast_shapes") for shape in shapes]
    return pr.broadcast_shapes(plain, "broadcast_shapes")


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """Return the arguments broadcast to one shape, as a tuple.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    values = [as_value(x, f"argument {i} of broadcast_arrays") for i, x in enumerate(args)]
    shape = pr.broadcast_shapes([x.shape for x in values], "broadcast_arrays")
    return tuple([pr.to_shape(x, shape) for x in values])


def slice_along(
    x: Array, axis: int, start: int, stop: int, step: int = 1, drop: bool = False
) -> Array:
    """Return ``x[start:stop:step]`` along an axis; ``drop`` removes an axis of size 1."""
    zero = [0] * x.ndim
    limits = list(x.shape)
    zero[axis], limits[axis] = start, stop
    strides = None if step == 1 else tuple(step if i == axis else 1 for i in range(x.ndim))
    part = x
    if start != 0 or stop != x.shape[axis] or step != 1:
        part = bind1(prims.Slice(tuple(zero), tuple(limits), strides), x)
    return bind1(prims.Squeeze((axis,)), part) if drop else part


def atleast_1d(x: ArrayLike) -> Array:
    """Return ``x`` with at least one axis.

    >>> jnp.atleast_1d(jnp.array(1))
    Array([1], dtype=int32, weak_type=True)
    """
    value = as_value(x, "the argument of atleast_1d")
    return value if value.ndim else expand_dims(value, 0)


def atleast_2d(x: ArrayLike) -> Array:
    """Return ``x`` with at least two axes; new axes come first.

    >>> jnp.atleast_2d(jnp.arange(2))
    Array([[0, 1]], dtype=int32)
    """
    value = as_value(x, "the argument of atleast_2d")
    return expand_dims(value, tuple(range(2 - value.ndim))) if value.ndim < 2 else value


def atleast_3d(x: ArrayLike) -> Array:
    """Return ``x`` with at least three axes; a matrix gains a last axis.

    >>> jnp.atleast_3d(jnp.arange(2)).shape
    (1, 2, 1)
    """
    value = as_value(x, "the argument of atleast_3d")
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(value.ndim, ())
    return expand_dims(value, new)


def taken_along(x: Array, axis: int, positions: np.ndarray) -> Array:
    """Return the elements at static positions along an axis."""
    dims: list[Dim] = [Span(0, n) for n in x.shape]
    dims[axis] = Pick(None)
    known = as_value(positions.astype(np.int32))
    return bind1(Gather(Indexer(tuple(dims), Mode.CLIP)), x, known)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the diagonals of ``a`` in the plane of two axes.

    Args:
        a: array or scalar.
        offset: diagonal to return; positive ones are above the main diagonal.
        axis1: axis of the rows.
        axis2: axis of the columns.

    Returns:
        Array whose last axis is the diagonal, after the remaining axes of ``a``.

    Raises:
        IllTyped: ``a`` has fewer than 2 axes.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = as_value(a, "the argument of diagonal")
    if x.ndim < 2:
        raise IllTyped("diagonal takes matrices", "at least 2 axes", str(x.type))
    moved = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = moved.shape[-2:]
    first = (max(0, -offset), max(0, offset))
    count = max(0, min(rows - first[0], columns - first[1]))
    dims: list[Dim] = [Span(0, n) for n in moved.shape[:-2]]
    dims += [Pick(None), Pick(None)]
    at = [as_value(np.arange(f, f + count, dtype=np.int32)) for f in first]
    return bind1(Gather(Indexer(tuple(dims), Mode.CLIP)), moved, *at)


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Return ``m`` with the elements reversed along ``axis``.

    Args:
        m: array or scalar.
        axis: axis or axes to reverse; None reverses all.

    Returns:
        Array of the shape and dtype of ``m``.

    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_value(m, "the argument of flip")
    axes = plain_axes(axis, x.ndim, "flip")
    return bind1(prims.Rev(axes), x) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """Return ``m`` reversed along its second axis.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Return ``m`` reversed along its first axis.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return ``m`` rotated by multiples of 90 degrees.

    Args:
        m: array or scalar.
        k: number of rotations.
        axes: plane of the rotation, which turns the first axis towards the second.

    Returns:
        Array of the dtype of ``m``; the two sizes are exchanged for odd ``k``.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = as_value(m, "the argument of rot90")
    i, j = plain_axes(axes, x.ndim, "rot90")
    match k % 4:
        case 0:
            return x
        case 1:
            return swapaxes(flip(x, j), i, j)
        case 2:
            return flip(x, (i, j))
        case _:
            return flip(swapaxes(x, i, j), j)
