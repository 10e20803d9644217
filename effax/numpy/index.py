"""Indexing: reads by index, elements at positions, choices by condition, positions of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DeviceArray, as_value, from_numpy
from effax.arrays.indexing import Selection, integers, wrapped
from effax.arrays.indexing import select as selection_of
from effax.ir.dtypes import DType, family
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span
from effax.ir.prims import Gather
from effax.ir.prims import shape as prims
from effax.ir.prims.reduce import greatest, lowest
from effax.ir.types import Shape
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip, remainder
from effax.numpy.axes import no_out, plain_axis, static_int
from effax.numpy.creation import arange, array, full
from effax.numpy.join import concatenate
from effax.numpy.reduce import sum
from effax.numpy.shapes import broadcast_to, ravel, reshape

__all__ = [
    "argwhere", "bincount", "diag_indices", "extract", "flatnonzero", "indices", "ix_",
    "nonzero", "ravel_multi_index", "select", "take", "take_along_axis", "tril_indices",
    "triu_indices", "unravel_index", "where",
]  # fmt: skip

INT32 = np.dtype(np.int32)


def getitem(x: Array, index: object) -> Array:
    """``x[index]``, by NumPy's rules; positions outside of the bounds are moved inside."""
    at = selection_of(x.shape, index, Mode.CLIP, False, "an array")
    if not at.operands:
        part = _static_part(x, at.indexer)
    else:
        part = bind1(Gather(at.indexer), x, *at.operands)
    return at.outward(part)


def _static_part(x: Array, indexer: Indexer) -> Array:
    """The part that an indexer without operands means, as slices."""
    if indexer.is_whole(x.shape):
        return x
    bounds = [_bounds(d) for d in indexer.dims]
    starts, limits, steps = (tuple(b) for b in zip(*bounds, strict=True))
    part = x
    if (starts, limits) != ((0,) * x.ndim, x.shape) or any(s != 1 for s in steps):
        strides = None if all(s == 1 for s in steps) else steps
        part = bind1(prims.Slice(starts, limits, strides), x)
    backwards = tuple(i for i, d in enumerate(indexer.dims) if isinstance(d, Span) and d.step < 0)
    if backwards:
        part = bind1(prims.Rev(backwards), part)
    picked = tuple(i for i, d in enumerate(indexer.dims) if isinstance(d, Pick))
    return bind1(prims.Squeeze(picked), part) if picked else part


def _bounds(dim: Dim) -> tuple[int, int, int]:
    """Start, limit and stride of the positions of a static entry, in ascending order."""
    if isinstance(dim, Pick):
        at = dim.at or 0
        return at, at + 1, 1
    start = dim.start or 0
    last = start + (dim.size - 1) * dim.step
    if dim.size == 0:
        return start, start, 1
    return (min(start, last), max(start, last) + 1, abs(dim.step))


def fill_for(dtype: DType) -> bool | int | float:
    """What stands for a missing element: nan, the least integer, the greatest unsigned one."""
    match family(dtype):
        case "float" | "complex":
            return float("nan")
        case "int":
            return lowest(dtype)
        case _:
            return greatest(dtype)


def read(x: Array, at: Selection, mode: str, fill_value: ArrayLike | None = None) -> Array:
    """The part of ``x`` that is selected; ``mode`` says what is outside of the bounds.

    "clip" moves positions inside, "fill" (and "drop") gives ``fill_value`` there.
    """
    if mode not in ("fill", "drop"):
        return bind1(Gather(at.indexer._replace(mode=Mode.CLIP)), x, *at.operands)
    part = bind1(Gather(at.indexer._replace(mode=Mode.DROP)), x, *at.operands)
    inside = _inside(x.shape, at)
    if inside is None:
        return part
    fill = fill_for(x.dtype) if fill_value is None else fill_value
    return uf.where(inside, part, array(fill, x.dtype))


def _inside(shape: Shape, at: Selection) -> Array | None:
    """Whether picked positions are in bounds, in the part's shape; None where all surely are."""
    feed = iter(at.operands)
    inside: Array | None = None
    for dim, size in zip(at.indexer.dims, shape, strict=True):
        if dim[0] is not None:
            continue
        operand = next(feed)
        if isinstance(dim, Span):
            continue
        if isinstance(operand, DeviceArray):
            value = operand.numpy()
            if ((value >= 0) & (value < size)).all():
                continue
        here = uf.bitwise_and(uf.greater_equal(operand, 0), uf.less(operand, size))
        inside = here if inside is None else uf.bitwise_and(inside, here)
    if inside is None:
        return None
    pick_shape, position, part = at.layout
    after = len(part) - position - len(pick_shape)
    full_pick = broadcast_to(inside, pick_shape)
    return broadcast_to(reshape(full_pick, (*pick_shape, *(1,) * after)), part)


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements at these positions, along an axis or flattened.

    Args:
        a: the array.
        indices: the positions; negative ones count from the end.
        axis: along which axis; None flattens.
        out: not supported.
        mode: outside of the bounds, "fill" (the default) gives ``fill_value``, "clip" moves
            positions inside, "wrap" takes them modulo the size.
        unique_indices: a promise that is not needed here.
        indices_are_sorted: a promise that is not needed here.
        fill_value: by default nan, the least integer, or the greatest unsigned one.
    """
    no_out(out, "take")
    x, axis = (ravel(a), 0) if axis is None else (as_value(a, "the argument of take"), axis)
    place = plain_axis(axis, x.ndim, "take")
    at = integers(indices, "the indices of take")
    size = x.shape[place]
    if size == 0 and at.size:
        raise BadArgument("take from an empty axis", "at least one element", str(x.type))
    at = remainder(at, size) if mode == "wrap" else at
    at = clip(at, 0, size - 1) if mode == "clip" else wrapped(at, size)
    dims = tuple(Pick(None) if i == place else Span(0, n) for i, n in enumerate(x.shape))
    return read(x, Selection.of(Indexer(dims), (at,)), _known_mode(mode, "take"), fill_value)


def _known_mode(mode: str | None, what: str) -> str:
    if mode not in (None, "fill", "clip", "wrap", "drop", "promise_in_bounds"):
        raise BadArgument(f"{what} knows no such mode", "fill, clip or wrap", repr(mode))
    return mode or "fill"


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Along an axis, the elements at positions that each line has for itself.

    Args:
        arr: the array.
        indices: positions, in the array's shape but for the axis (other sizes broadcast).
        axis: along which axis; None flattens.
        mode: as :func:`take`'s.
        fill_value: as :func:`take`'s.
    """
    x, axis = (ravel(arr), 0) if axis is None else (as_value(arr, "the argument"), axis)
    at = integers(indices, "the indices of take_along_axis")
    if at.ndim != x.ndim:
        raise IllTyped(
            "take_along_axis takes indices of the array's rank", f"{x.ndim} axes", str(at.type)
        )
    place = plain_axis(axis, x.ndim, "take_along_axis")
    lone = [1 if i == place else n for i, n in enumerate(x.shape)]
    shape = pr.broadcast_shapes([tuple(lone), at.shape], "take_along_axis")
    size = x.shape[place]
    at = clip(at, 0, size - 1) if mode == "clip" else wrapped(at, size)
    picks = [at if i == place else _line(n, shape, i) for i, n in enumerate(x.shape)]
    indexer = Indexer((Pick(None),) * x.ndim)
    chosen = Selection.of(indexer, tuple(picks))
    part = read(x, chosen, _known_mode(mode, "take_along_axis"), fill_value)
    return part if part.shape == shape else broadcast_to(part, shape)


def _line(size: int, shape: Shape, axis: int) -> Array:
    """All positions along an axis, placed to broadcast; the only one where the axis stretches."""
    lone = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    if size != shape[axis]:
        return bind1(prims.Iota(INT32, (1,) * len(shape), axis))
    return bind1(prims.Iota(INT32, lone, axis))


@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
) -> Array: ...
@overload
def where(
    condition: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, ...]: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """Elements of ``x`` where the condition holds, else of ``y``; alone, :func:`nonzero`."""
    if x is not None and y is not None:
        if size is not None or fill_value is not None:
            raise BadArgument("where of three arguments takes no `size` and no `fill_value`")
        return uf.where(condition, x, y)
    if x is not None or y is not None:
        raise BadArgument("where takes both cases or neither", "x and y", "one of them")
    return nonzero(condition, size=size, fill_value=fill_value)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """The positions of elements that are not zero, one array an axis.

    Args:
        a: the array. Without ``size``, its value must be known.
        size: how many positions; what is too many is left out, what is missing is filled.
        fill_value: the position that fills up, 0 by default.
    """
    mask = uf.truth(a)
    if not mask.ndim:
        raise IllTyped("nonzero of an array without axes", "at least one axis", str(mask.type))
    if size is None:
        return tuple(from_numpy(p.astype(allowed(int))) for p in np.nonzero(mask.numpy()))
    from effax.numpy.sorting import argsort

    count = static_int(size, "the size of nonzero")
    flat = ravel(mask)
    # The positions of true elements come first, in order, since sorting is stable.
    order = argsort(uf.invert(flat))
    missing = max(0, count - mask.size)
    order = concatenate([order, full(missing, 0, order.dtype)]) if missing else order[:count]
    filled = uf.greater_equal(arange(count), sum(flat))
    fill = 0 if fill_value is None else fill_value
    return tuple(uf.where(filled, fill, p) for p in unravel_index(order, mask.shape))


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The positions of elements that are not zero, one a row."""
    from effax.numpy.join import stack

    return stack(nonzero(a, size=size, fill_value=fill_value), 1)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The positions of elements that are not zero, in the flattened array."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def extract(condition: ArrayLike, arr: ArrayLike) -> Array:
    """The elements where the condition holds; its value must be known."""
    return take(ravel(arr), flatnonzero(condition))


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Elements of the choice of the first condition that holds, else the default."""
    if len(condlist) != len(choicelist) or not condlist:
        raise BadArgument(
            "select pairs conditions with choices",
            expected=f"{len(condlist)} choices, at least 1",
            found=str(len(choicelist)),
        )
    dtype, weak = pr.common_dtype((*choicelist, default), "select")
    result = pr.converted(as_value(default), dtype, weak)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = uf.where(condition, choice, result)
    return result


def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Positions in a flattened array as positions in its shape, one array an axis."""
    from effax.numpy.arithmetic import floor_divide
    from effax.numpy.axes import plain_shape

    rest: Array = integers(indices, "the argument of unravel_index")
    found = []
    for n in reversed(plain_shape(shape, "unravel_index")):
        found.append(remainder(rest, max(n, 1)))
        rest = floor_divide(rest, max(n, 1))
    return tuple(reversed(found))


def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "clip"
) -> Array:
    """Positions in a shape, one array an axis, as positions in the flattened array."""
    if len(multi_index) != len(dims) or mode not in ("clip", "wrap"):
        raise BadArgument(
            "ravel_multi_index takes one array an axis, and clips or wraps",
            expected=f"{len(dims)} arrays, mode 'clip' or 'wrap'",
            found=f"{len(multi_index)} arrays, mode {mode!r}",
        )
    flat: ArrayLike = 0
    for at, n in zip(multi_index, dims, strict=True):
        inside = uf.minimum(uf.maximum(at, 0), n - 1) if mode == "clip" else remainder(at, n)
        flat = uf.add(uf.multiply(flat, n), inside)
    return as_value(flat)


def indices(
    dimensions: Sequence[int], dtype: type | DType | str | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The coordinates of all positions of a shape, along a new first axis."""
    from effax.numpy.creation import meshgrid
    from effax.numpy.join import stack

    lines = [arange(n, dtype=dtype or int) for n in dimensions]
    grids = meshgrid(*lines, sparse=sparse, indexing="ij")
    return tuple(grids) if sparse else stack(grids)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors of positions, placed so that together they select a grid."""
    found = []
    for i, a in enumerate(args):
        x = as_value(a, f"argument {i} of ix_")
        if x.ndim != 1:
            raise IllTyped(f"argument {i} of ix_ is no vector", "1 axis", str(x.type))
        x = flatnonzero(x) if family(x.dtype) == "bool" else x
        found.append(reshape(x, [x.size if j == i else 1 for j in range(len(args))]))
    return tuple(found)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements on and below the ``k``-th diagonal of an n×m matrix."""
    rows, columns = np.tril_indices(n, k, m)
    return _known(rows), _known(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements on and above the ``k``-th diagonal of an n×m matrix."""
    rows, columns = np.triu_indices(n, k, m)
    return _known(rows), _known(columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the diagonal of an array of ``ndim`` axes of size ``n``."""
    return (arange(n),) * ndim


def _known(positions: np.ndarray) -> Array:
    return from_numpy(positions.astype(allowed(int)))


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Array:
    """How often each nonnegative integer occurs, or the sums of their weights.

    Args:
        x: integers; negative ones count as 0. Without ``length``, their value must be known.
        weights: of the integers.
        minlength: the least size of the result.
        length: the size of the result; greater integers do not count.
    """
    from effax.numpy.creation import zeros

    values = integers(x, "the argument of bincount")
    if values.ndim != 1:
        raise IllTyped("bincount counts in a vector", "1 axis", str(values.type))
    if length is None:
        known = values.numpy()
        length = max(minlength, int(known.max()) + 1 if known.size else 0)
    one = 1 if weights is None else as_value(weights)
    dtype = allowed(int) if weights is None else pr.operand_kind(weights, "weights")[0]
    return zeros(length, dtype).at[uf.maximum(values, 0)].add(one)
