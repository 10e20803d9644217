"""Indices of elements, and selections by condition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast, overload

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.assignment import fill_of
from effax.arrays.axes import nonnegative, plain_shape
from effax.arrays.conversion import as_value, from_numpy
from effax.arrays.creation import full, zeros
from effax.arrays.indexing import integer_positions
from effax.arrays.placed import on_device
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import ravel, reshape
from effax.arrays.traced_array import TracedArray
from effax.ir.dtypes import DType, family
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import floor_divide, remainder
from effax.numpy.index import take
from effax.numpy.join import stack
from effax.numpy.predicates import logical_or
from effax.numpy.ranges import arange, meshgrid
from effax.numpy.reduce import any as any_
from effax.numpy.sorting import first_true

__all__ = [
    "argwhere", "bincount", "diag_indices", "extract", "flatnonzero", "indices", "ix_",
    "nonzero", "ravel_multi_index", "select", "tril_indices", "triu_indices", "unravel_index",
    "where",
]  # fmt: skip


Fill = ArrayLike | tuple[ArrayLike, ...]
"""The padding of positions: one for all axes, or one an axis."""


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
    fill_value: Fill | None = None,
) -> tuple[Array, ...]: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Fill | None = None,
) -> Array | tuple[Array, ...]:
    """Return elements of ``x`` where ``condition`` is true, else of ``y``.

    With one argument, :func:`nonzero`.

    Args:
        condition: boolean array; other dtypes count as true where nonzero.
        x: array or scalar.
        y: array or scalar.
        size: number of indices, see :func:`nonzero`.
        fill_value: padding up to ``size``, see :func:`nonzero`.

    Returns:
        Array of the broadcast shape; the indices of :func:`nonzero` without ``x`` and ``y``.

    Raises:
        BadArgument: only one of ``x`` and ``y``, or they come with ``size`` or ``fill_value``.

    >>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 0)
    Array([1, 0], dtype=int32)
    """
    if x is not None and y is not None:
        if size is not None or fill_value is not None:
            raise BadArgument("where of three arguments takes no `size` and no `fill_value`")
        return uf.where(condition, x, y)
    if x is not None or y is not None:
        raise BadArgument("where takes both cases or neither", "x and y", "one of them")
    return nonzero(condition, size=size, fill_value=fill_value)


def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: Fill | None = None,
) -> tuple[Array, ...]:
    """Return the indices of the nonzero elements of ``a``.

    Args:
        a: array or scalar.
        size: number of indices, truncated or padded; required where ``a`` is traced.
        fill_value: padding up to ``size``, 0 by default; a scalar, or a tuple of one an axis.

    Returns:
        Tuple of one 1-D integer array per axis.

    Raises:
        IllTyped: ``a`` is a scalar.
        ConcretizationError: ``a`` is traced and there is no ``size``.
        BadArgument: ``size`` is negative, or ``fill_value`` does not fit the axes.

    >>> jnp.nonzero(jnp.array([0, 3, 4]))
    (Array([1, 2], dtype=int32),)
    """
    mask = uf.truth(a)
    if not mask.ndim:
        raise IllTyped("nonzero takes no scalar", "at least one axis", str(mask.type))
    if size is None:
        return tuple(from_numpy(p.astype(default_dtype(int))) for p in np.nonzero(mask.numpy()))

    at, beyond = first_true(ravel(mask), nonnegative(size, "the size of nonzero"))
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * mask.ndim
    padding = [integer_positions(0 if f is None else f, "the fill value of nonzero") for f in fills]
    if len(fills) != mask.ndim or any(f.shape for f in padding):
        raise BadArgument(
            "the fill value of nonzero does not fit the axes",
            expected=f"a scalar, or a tuple of {mask.ndim}",
            found=str(fill_value),
        )
    found = unravel_index(at, mask.shape)
    return tuple(uf.where(beyond, f, p) for p, f in zip(found, padding, strict=True))


def argwhere(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: Fill | None = None,
) -> Array:
    """Return the indices of the nonzero elements of ``a``, one row per element.

    Args:
        a: array or scalar.
        size: number of indices, see :func:`nonzero`.
        fill_value: padding up to ``size``, see :func:`nonzero`.

    Returns:
        Integer array of shape (number of elements, a.ndim).

    >>> jnp.argwhere(jnp.array([0, 3, 4]))
    Array([[1],
           [2]], dtype=int32)
    """
    mask = uf.truth(a)
    if not mask.ndim:
        return zeros((flatnonzero(mask, size=size).size, 0), int)
    return stack(nonzero(mask, size=size, fill_value=fill_value), 1)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the indices of the nonzero elements of the flattened ``a``.

    Args:
        a: array or scalar.
        size: number of indices, see :func:`nonzero`.
        fill_value: padding up to ``size``, 0 by default.

    Returns:
        1-D integer array.

    >>> jnp.flatnonzero(jnp.array([0, 3, 4]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements of ``arr`` where ``condition`` is true.

    Args:
        condition: boolean array of the size of ``arr``.
        arr: array or scalar.
        size: number of elements, truncated or padded; required where ``condition`` is traced.
        fill_value: padding up to ``size``, 0 by default.

    Returns:
        1-D array of the dtype of ``arr``.

    Raises:
        ConcretizationError: ``condition`` is traced and there is no ``size``.

    >>> jnp.extract(jnp.array([True, False]), jnp.array([5, 6]))
    Array([5], dtype=int32)
    """
    x = ravel(arr)
    fill = fill_of(False if fill_value is None else fill_value, x.dtype, "the result of extract")
    # A position out of bounds reads the fill value.
    at = flatnonzero(condition, size=size, fill_value=x.size)
    return take(x, at, fill_value=fill) if x.size else full(at.size, fill)


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Return elements of the choice of the first condition that is true, else the default.

    Args:
        condlist: boolean arrays.
        choicelist: one array per condition.
        default: elements where no condition is true.

    Returns:
        Array of the promoted dtype and broadcast shape.

    Raises:
        BadArgument: the lists differ in length, or are empty.

    >>> jnp.select([jnp.array([True, False])], [jnp.array([1, 2])], 9)
    Array([1, 9], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise BadArgument(
            "select expects one choice per condition",
            expected=f"{len(condlist)} choices, at least 1",
            found=str(len(choicelist)),
        )
    dtype, weak = pr.common_dtype((*choicelist, default), "select")
    result = pr.in_dtype(as_value(default), dtype, weak, "the default of select")
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = uf.where(condition, choice, result)
    return result


def unravel_index(
    indices: ArrayLike, shape: int | Sequence[int] | Sequence[Array]
) -> tuple[Array, ...]:
    """Return flat indices as indices into a shape.

    Args:
        indices: integer array; those out of bounds are clamped.
        shape: sizes of the array indexed, which may be traced.

    Returns:
        Tuple of one array per axis, of the dtype of the indices.

    >>> jnp.unravel_index(jnp.array([3]), (2, 2))
    (Array([1], dtype=int32), Array([1], dtype=int32))
    """
    given = as_value(indices, "the argument of unravel_index")
    rest: Array = integer_positions(given, "the argument of unravel_index")
    sizes = _sizes(shape)
    size = math.prod(sizes)
    rest = uf.minimum(rest, size - 1)
    rest = uf.maximum(rest, -size) if family(rest.dtype) == "int" else rest
    found = []
    for n in reversed(sizes):
        # A quotient by 0 is 0, as the position along an empty axis.
        found.append(uf.astype(remainder(rest, n), given.dtype))
        rest = floor_divide(rest, n)
    return tuple(reversed(found))


def _sizes(shape: int | Sequence[int] | Sequence[Array]) -> Sequence[int]:
    """Return sizes; those of a traced shape act as the integers that they will be."""
    if isinstance(shape, Sequence) and any(isinstance(n, TracedArray) for n in shape):
        return cast("Sequence[int]", shape)
    return plain_shape(shape, "unravel_index")


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return indices into a shape as flat indices.

    Args:
        multi_index: one integer array per axis.
        dims: sizes of the array indexed.
        mode: out of bounds, "raise" raises, "clip" clamps, "wrap" is modulo, "ignore" is no check.
        order: "C" for a row-major order, "F" for a column-major one.
        dtype: integer dtype of the result.

    Returns:
        Integer array of the broadcast shape.

    Raises:
        BadArgument: the lengths differ, or an unknown mode or order.
        BadArgument: an index is out of bounds, and the mode "raise".
        ConcretizationError: an index is traced, and the mode "raise".

    >>> jnp.ravel_multi_index((jnp.array([1]), jnp.array([1])), (2, 2))
    Array([3], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise BadArgument(
            "ravel_multi_index takes one array per axis", str(len(dims)), str(len(multi_index))
        )
    if mode not in ("raise", "clip", "wrap", "ignore") or order not in ("C", "F"):
        raise BadArgument(
            "unknown mode or order of ravel_multi_index",
            expected="mode 'raise', 'clip', 'wrap' or 'ignore', order 'C' or 'F'",
            found=f"mode {mode!r}, order {order!r}",
        )
    flat: ArrayLike = 0
    axes = list(enumerate(zip(multi_index, dims, strict=True)))
    for i, (index, n) in axes if order == "C" else reversed(axes):
        at = integer_positions(index, f"index {i} of ravel_multi_index")
        flat = uf.add(uf.multiply(flat, n), _inside(at, n, mode))
    return as_value(flat) if dtype is None else uf.astype(flat, dtype)


def _inside(at: Array, size: int, mode: str) -> Array:
    """Return positions along an axis in its bounds."""
    if mode == "raise":
        if bool(any_(logical_or(uf.less(at, 0), uf.greater_equal(at, size)))):
            raise BadArgument(
                "invalid entry in the indices of ravel_multi_index: one is out of bounds",
                expected=f"at least 0 and less than {size}",
                found=str(at),
            )
        return at
    if mode == "ignore":
        return at
    return uf.minimum(uf.maximum(at, 0), size - 1) if mode == "clip" else remainder(at, size)


def indices(
    dimensions: Sequence[int], dtype: type | DType | str | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Return the index grids of a shape.

    Args:
        dimensions: sizes.
        dtype: dtype of the result, int32 by default.
        sparse: whether to return grids of size 1 along the other axes.

    Returns:
        Array of shape (len(dimensions), *dimensions), or a tuple of sparse grids.

    >>> jnp.indices((2, 2)).shape
    (2, 2, 2)
    """
    lines = [arange(n, dtype=dtype or int) for n in dimensions]
    grids = meshgrid(*lines, sparse=sparse, indexing="ij")
    return tuple(grids) if sparse else stack(grids)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Return vectors shaped to index a grid together; boolean ones count by their true elements.

    >>> [x.shape for x in jnp.ix_(jnp.array([0, 1]), jnp.array([2]))]
    [(2, 1), (1, 1)]
    """
    found = []
    for i, a in enumerate(args):
        x = as_value(a, f"argument {i} of ix_")
        if x.ndim != 1:
            raise IllTyped(f"argument {i} of ix_ is not a vector", "1 axis", str(x.type))
        x = flatnonzero(x) if family(x.dtype) == "bool" else x
        found.append(reshape(x, [x.size if j == i else 1 for j in range(len(args))]))
    return tuple(found)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the elements on and below a diagonal.

    Args:
        n: number of rows.
        k: diagonal; positive ones are above the main diagonal.
        m: number of columns, ``n`` by default.

    Returns:
        Pair of 1-D integer arrays, rows and columns.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = np.tril_indices(n, k, m)
    return _known(rows), _known(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the elements on and above a diagonal.

    Args:
        n: number of rows.
        k: diagonal; positive ones are above the main diagonal.
        m: number of columns, ``n`` by default.

    Returns:
        Pair of 1-D integer arrays, rows and columns.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = np.triu_indices(n, k, m)
    return _known(rows), _known(columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal.

    Args:
        n: size of each axis.
        ndim: number of axes.

    Returns:
        Tuple of ``ndim`` 1-D integer arrays.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    return (arange(n),) * ndim


def _known(positions: np.ndarray) -> Array:
    return from_numpy(positions.astype(default_dtype(int)))


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: object = None,
) -> Array:
    """Return the number of occurrences of each nonnegative integer, or the sums of their weights.

    Args:
        x: 1-D integer array; negative elements count as 0.
        weights: weight of each element.
        minlength: least size of the result.
        length: size of the result, beyond which elements do not count; required for a traced ``x``.
        out_sharding: sharding of the result.

    Returns:
        1-D array of the dtype of ``weights``, integer by default.

    Raises:
        IllTyped: ``x`` is not 1-D.
        ConcretizationError: ``x`` is traced and there is no ``length``.

    >>> jnp.bincount(jnp.array([0, 2, 2]))
    Array([1, 0, 2], dtype=int32)
    """
    given = as_value(x, "the argument of bincount")
    counted = uf.astype(given, int) if family(given.dtype) == "bool" else given
    values = integer_positions(counted, "the argument of bincount")
    if values.ndim != 1:
        raise IllTyped("bincount takes a vector", "1 axis", str(values.type))
    if length is None:
        known = values.numpy()
        length = max(minlength, int(known.max()) + 1 if known.size else 0)
    one = 1 if weights is None else as_value(weights)
    dtype = default_dtype(int) if weights is None else pr.operand_kind(weights, "weights")[0]
    counts = zeros(length, dtype).at[uf.maximum(values, 0)].add(one)
    return on_device(counts, out_sharding, "bincount")
