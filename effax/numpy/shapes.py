"""Other shapes of the same elements: reshape, transpose, broadcast, flip, diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.device_array import Array, ArrayLike, Axis, as_value
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span
from effax.ir.prims import Gather
from effax.ir.prims import shape as prims
from effax.ir.types import Shape
from effax.numpy import promotion as pr
from effax.numpy.axes import plain_axes, plain_axis, plain_shape, sequence_of, static_int

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose",
    "moveaxis", "permute_dims", "ravel", "reshape", "rot90", "squeeze", "swapaxes", "transpose",
]  # fmt: skip


def reshape(a: ArrayLike, shape: int | Sequence[int], order: str = "C") -> Array:
    """The same elements in another shape; one size may be -1.

    Raises:
        IllTyped: the number of elements would change.
        BadArgument: more than one size is -1, or ``order`` is neither 'C' nor 'F'.
    """
    x = as_value(a, "the argument of reshape")
    sizes = _resolved(x, shape)
    if order == "F":
        return transpose(bind1(prims.Reshape(sizes[::-1]), transpose(x)))
    if order != "C":
        raise BadArgument("reshape knows two orders", "'C' or 'F'", repr(order))
    return x if sizes == x.shape else bind1(prims.Reshape(sizes), x)


def _resolved(x: Array, shape: int | Sequence[int]) -> Shape:
    if type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape):
        sizes: list[int] = list(shape)
    else:
        named = shape if isinstance(shape, Sequence) else [shape]
        sizes = [static_int(n, "a size in the shape of reshape") for n in named]
    if -1 not in sizes:
        return tuple(sizes)
    rest = -math.prod(sizes)
    if sizes.count(-1) > 1:
        raise BadArgument("reshape finds one size only", "at most one -1", str(tuple(sizes)))
    if (rest == 0 and x.size) or (rest and x.size % rest):
        raise IllTyped(
            "reshape finds no size that keeps the number of elements",
            expected=f"sizes that divide {x.size} elements, as in {x.type}",
            found=str(tuple(sizes)),
        )
    sizes[sizes.index(-1)] = x.size // rest if rest else 0
    return tuple(sizes)


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """The elements on one axis."""
    return reshape(a, (-1,), order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes permuted, or reversed where none are given."""
    x = as_value(a, "the argument of transpose")
    if axes is None:
        order = tuple(range(x.ndim))[::-1]
    else:
        order = plain_axes(tuple(axes), x.ndim, "transpose")
        if len(order) != x.ndim:
            raise BadArgument(
                "transpose orders all axes", f"a permutation of {x.ndim} axes", str(axes)
            )
    return x if order == tuple(range(x.ndim)) else bind1(prims.Transpose(order), x)


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes exchanged."""
    value = as_value(x, "the argument of matrix_transpose")
    if value.ndim < 2:
        raise IllTyped("matrix_transpose takes matrices", "at least 2 axes", str(value.type))
    return swapaxes(value, -1, -2)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with some axes moved; the others keep their order."""
    x = as_value(a, "the argument of moveaxis")
    old = plain_axes(sequence_of(source), x.ndim, "moveaxis")
    new = plain_axes(sequence_of(destination), x.ndim, "moveaxis")
    if len(old) != len(new):
        raise BadArgument(
            "moveaxis moves each axis somewhere", f"{len(old)} destinations", str(len(new))
        )
    order = [i for i in range(x.ndim) if i not in old]
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return transpose(x, order)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged."""
    x = as_value(a, "the argument of swapaxes")
    i, j = plain_axis(axis1, x.ndim, "swapaxes"), plain_axis(axis2, x.ndim, "swapaxes")
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return transpose(x, order)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with new axes of size 1 at these places of the result."""
    x = as_value(a, "the argument of expand_dims")
    named = sequence_of(axis)
    new = tuple(sorted(plain_axes(named, x.ndim + len(named), "expand_dims")))
    return bind1(prims.ExpandDims(new), x) if new else x


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """The array without axes of size 1: these, or all where none are named."""
    x = as_value(a, "the argument of squeeze")
    if axis is None:
        gone = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        gone = plain_axes(axis, x.ndim, "squeeze")
    for i in gone:
        if x.shape[i] != 1:
            raise BadArgument("squeeze of an axis that has elements", "size 1", str(x.type))
    return bind1(prims.Squeeze(gone), x) if gone else x


def broadcast_to(array: ArrayLike, shape: int | Sequence[int]) -> Array:
    """The array repeated along axes of size 1 and new leading ones, to this shape."""
    x = as_value(array, "the argument of broadcast_to")
    sizes = plain_shape(shape, "broadcast_to")
    fits = len(x.shape) <= len(sizes) and all(
        n in (1, m) for n, m in zip(reversed(x.shape), reversed(sizes), strict=False)
    )
    if not fits:
        raise IllTyped(
            "an array does not broadcast to a shape",
            expected="equal sizes, or size 1, on each axis counted from the last",
            found=f"shape {x.shape}, to be {sizes}",
        )
    return pr.to_shape(x, sizes)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which all broadcast."""
    return pr.broadcast_shapes(shapes, "broadcast_shapes")


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays broadcast to one shape."""
    values = [as_value(x, f"argument {i} of broadcast_arrays") for i, x in enumerate(args)]
    shape = pr.broadcast_shapes([x.shape for x in values], "broadcast_arrays")
    return [pr.to_shape(x, shape) for x in values]


def slice_along(
    x: Array, axis: int, start: int, stop: int, step: int = 1, drop: bool = False
) -> Array:
    """``x[start:stop:step]`` along an axis; ``drop`` takes away an axis of size 1."""
    zero = [0] * x.ndim
    limits = list(x.shape)
    zero[axis], limits[axis] = start, stop
    strides = None if step == 1 else tuple(step if i == axis else 1 for i in range(x.ndim))
    part = x
    if start != 0 or stop != x.shape[axis] or step != 1:
        part = bind1(prims.Slice(tuple(zero), tuple(limits), strides), x)
    return bind1(prims.Squeeze((axis,)), part) if drop else part


def atleast_1d(x: ArrayLike) -> Array:
    """The array, with an axis if it has none."""
    value = as_value(x, "the argument of atleast_1d")
    return value if value.ndim else expand_dims(value, 0)


def atleast_2d(x: ArrayLike) -> Array:
    """The array, with leading axes up to 2."""
    value = as_value(x, "the argument of atleast_2d")
    return expand_dims(value, tuple(range(2 - value.ndim))) if value.ndim < 2 else value


def atleast_3d(x: ArrayLike) -> Array:
    """The array, with axes up to 3; of a matrix, the new one is the last."""
    value = as_value(x, "the argument of atleast_3d")
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(value.ndim, ())
    return expand_dims(value, new)


def taken_along(x: Array, axis: int, positions: np.ndarray) -> Array:
    """The elements at these static positions along an axis."""
    dims: list[Dim] = [Span(0, n) for n in x.shape]
    dims[axis] = Pick(None)
    known = as_value(positions.astype(np.int32))
    return bind1(Gather(Indexer(tuple(dims), Mode.CLIP)), x, known)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis."""
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
    """The array with the order of elements reversed along axes."""
    x = as_value(m, "the argument of flip")
    axes = plain_axes(axis, x.ndim, "flip")
    return bind1(prims.Rev(axes), x) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """The array reversed along its second axis."""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """The array reversed along its first axis."""
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by quarters from the first of two axes to the second."""
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
