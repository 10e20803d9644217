"""Operations that move the elements of sparse arrays: on indices, in time of the elements.

Their results have sparse axes alone: batch and dense axes of the operand become sparse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import effax.numpy as jnp
from effax import lax
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes
from effax.experimental.sparse.bcoo import BCOO, bcoo_transpose
from effax.ir.errors import BadArgument, IllTyped

__all__ = [
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dynamic_slice", "bcoo_reduce_sum",
    "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_squeeze",
]  # fmt: skip


class Elements(NamedTuple):
    """Elements of shape (n,), their indices of all axes, and whether they are no padding."""

    data: Array
    indices: Array
    inside: Array

    def at(self, columns: Sequence[Array], inside: Array, shape: Sequence[int]) -> BCOO:
        """Return the sparse array of the elements at other indices, padding where not inside."""
        count = self.data.shape[0]
        dtype = self.indices.dtype
        indices = (
            jnp.stack([jnp.asarray(c, dtype) for c in columns], -1)
            if columns
            else jnp.zeros((count, 0), dtype)
        )
        indices = jnp.where(inside[:, None], indices, jnp.array(tuple(shape), dtype))
        return BCOO((jnp.where(inside, self.data, 0), indices), shape=tuple(shape))

    @property
    def columns(self) -> list[Array]:
        """The indices along each axis."""
        return [self.indices[:, k] for k in range(self.indices.shape[1])]


def elements(mat: BCOO) -> Elements:
    """Return the elements of a sparse array, those of batch and dense axes by themselves."""
    whole, at, dtype = mat.data.shape, tuple(range(mat.n_batch + 1)), mat.indices.dtype

    def along(axis: int) -> Array:
        return lax.broadcast_in_dim(jnp.arange(whole[axis], dtype=dtype), whole, (axis,))

    columns = [along(i) for i in at[:-1]]
    columns += [lax.broadcast_in_dim(mat.indices[..., k], whole, at) for k in range(mat.n_sparse)]
    columns += [along(i) for i in range(len(at), len(whole))]
    flat = [c.reshape(-1) for c in columns]
    indices = jnp.stack(flat, -1) if flat else jnp.zeros((mat.data.size, 0), dtype)
    inside = jnp.all((indices >= 0) & (indices < jnp.array(mat.shape, dtype)), -1)
    return Elements(mat.data.reshape(-1), indices, inside)


def permuted(mat: BCOO, permutation: Sequence[int]) -> BCOO:
    """Return the array with its axes in any other order. Raises BadArgument for no permutation."""
    order = plain_axes(list(permutation), mat.ndim, "bcoo_reshape")
    if len(order) != mat.ndim:
        raise BadArgument(
            "an order of axes lacks some",
            expected=f"a permutation of {[*range(mat.ndim)]}",
            found=str(list(permutation)),
        )
    kinds = [(i >= mat.n_batch) + (i >= mat.n_batch + mat.n_sparse) for i in order]
    return bcoo_transpose(mat, permutation=order) if kinds == sorted(kinds) else _along(mat, order)


def _along(mat: BCOO, axes: Sequence[int]) -> BCOO:
    """Return the array with these axes, in this order, summed along the others."""
    parts = elements(mat)
    columns = parts.columns
    return parts.at([columns[i] for i in axes], parts.inside, [mat.shape[i] for i in axes])


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> BCOO:
    """Return the array in another shape, of the same size.

    Args:
        mat: sparse array.
        new_sizes: shape of the result.
        dimensions: order of the axes of ``mat`` before it is reshaped.

    Raises:
        IllTyped: the shapes differ in size.
        BadArgument: ``dimensions`` is no permutation of the axes.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).todense()
    Array([1., 0., 0., 1.], dtype=float32)
    """
    if math.prod(new_sizes) != mat.size:
        raise IllTyped("a shape has another size", str(mat.shape), str(tuple(new_sizes)))
    if dimensions is not None:
        mat = permuted(mat, dimensions)
    parts = elements(mat)
    place = jnp.zeros_like(parts.inside, parts.indices.dtype)
    for size, column in zip(mat.shape, parts.columns, strict=True):
        place = place * size + column
    columns = []
    for size in reversed(new_sizes):
        columns.append(place % max(size, 1))
        place = place // max(size, 1)
    return parts.at(columns[::-1], parts.inside, new_sizes)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Return the array without axes of size 1.

    Raises:
        IllTyped: an axis has another size.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,)).shape
    (3,)
    """
    dropped = plain_axes(list(dimensions), arr.ndim, "bcoo_squeeze")
    if any(arr.shape[i] != 1 for i in dropped):
        raise IllTyped("squeezed axes have size 1", found=f"{dropped} of {arr.shape}")
    return _along(arr, [i for i in range(arr.ndim) if i not in dropped])


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> BCOO:
    """Return the array with further axes; elements are repeated along those that grow.

    Args:
        mat: sparse array.
        shape: shape of the result.
        broadcast_dimensions: axis of the result for each axis of ``mat``.

    >>> from effax.experimental import sparse
    >>> grown = sparse.bcoo_broadcast_in_dim(
    ...     sparse.eye(2), shape=(3, 2, 2), broadcast_dimensions=(1, 2)
    ... )
    >>> grown.todense().sum()
    Array(6., dtype=float32)
    """
    parts, at = elements(mat), list(broadcast_dimensions)
    sizes = {k: mat.shape[i] for i, k in enumerate(at)}
    grown = [k for k, n in enumerate(shape) if sizes.get(k, 1) != n]
    count = math.prod([shape[k] for k in grown])
    repeated = Elements(*(jnp.repeat(x, count, 0) for x in parts))
    grids = np.indices([shape[k] for k in grown]).reshape(len(grown), count)
    columns = {k: repeated.indices[:, i] for i, k in enumerate(at)}
    columns |= {k: jnp.tile(grids[i], parts.data.shape[0]) for i, k in enumerate(grown)}
    zero = jnp.zeros_like(repeated.inside, parts.indices.dtype)
    every = [columns.get(k, zero) for k in range(len(shape))]
    return repeated.at(every, repeated.inside, shape)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """Return the elements of a slice, as ``lax.slice`` of a dense array.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_slice(sparse.eye(3), start_indices=(0, 1), limit_indices=(2, 3)).todense()
    Array([[0., 0.],
           [1., 0.]], dtype=float32)
    """
    steps = [1] * mat.ndim if strides is None else list(strides)
    ends = zip(start_indices, limit_indices, steps, strict=True)
    return _sliced(mat, list(start_indices), [len(range(*end)) for end in ends], steps)


def bcoo_dynamic_slice(
    mat: BCOO, start_indices: Sequence[ArrayLike], slice_sizes: Sequence[int]
) -> BCOO:
    """Return the elements of a slice that starts anywhere inside, as ``lax.dynamic_slice``.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 5), (1, 2)).todense()
    Array([[1., 0.]], dtype=float32)
    """
    ends = [n - k for n, k in zip(mat.shape, slice_sizes, strict=True)]
    starts = [jnp.clip(s, 0, end) for s, end in zip(start_indices, ends, strict=True)]
    return _sliced(mat, starts, list(slice_sizes), [1] * mat.ndim)


def _sliced(
    mat: BCOO, starts: Sequence[ArrayLike], sizes: Sequence[int], steps: Sequence[int]
) -> BCOO:
    parts = elements(mat)
    columns, inside = [], parts.inside
    for column, start, size, step in zip(parts.columns, starts, sizes, steps, strict=True):
        moved = column - jnp.asarray(start, column.dtype)
        inside &= (moved >= 0) & (moved < size * step) & (moved % step == 0)
        columns.append(moved // step)
    return parts.at(columns, inside, sizes)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Return the array with axes reversed.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_rev(sparse.eye(2), (0,)).todense()
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    turned = plain_axes(list(dimensions), operand.ndim, "bcoo_rev")
    parts = elements(operand)
    columns = [
        n - 1 - c if i in turned else c
        for i, (n, c) in enumerate(zip(operand.shape, parts.columns, strict=True))
    ]
    return parts.at(columns, parts.inside, operand.shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Return sparse arrays joined along an axis.

    Raises:
        IllTyped: shapes differ in another axis.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=1).shape
    (2, 4)
    """
    others = {(*x.shape[:dimension], *x.shape[dimension + 1 :]) for x in operands}
    if len(others) != 1:
        raise IllTyped("sparse arrays are joined of one shape", found=str(list(operands)))
    moved, start = [], 0
    for x in operands:
        parts = elements(x)
        columns = [c + start if i == dimension else c for i, c in enumerate(parts.columns)]
        moved.append(parts._replace(indices=jnp.stack(columns, -1)))
        start += x.shape[dimension]
    first = operands[0].shape
    joined = Elements(*(jnp.concatenate(x) for x in zip(*moved, strict=True)))
    shape = (*first[:dimension], start, *first[dimension + 1 :])
    return joined.at(joined.columns, joined.inside, shape)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sums along axes; elements of equal indices are not combined.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_reduce_sum(sparse.eye(2), axes=(0,)).todense()
    Array([1., 1.], dtype=float32)
    """
    dropped = plain_axes(list(axes), mat.ndim, "bcoo_reduce_sum")
    return _along(mat, [i for i in range(mat.ndim) if i not in dropped])
