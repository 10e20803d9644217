"""Products of sparse arrays: contractions with dense and sparse ones, and by elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import effax.numpy as jnp
from effax import lax
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.experimental.sparse.bcoo import BCOO
from effax.experimental.sparse.structure import Elements, elements
from effax.ir.errors import IllTyped

__all__ = ["bcoo_dot_general", "bcoo_multiply_sparse"]

Axes = tuple[int, ...]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


class _Side(NamedTuple):
    """The axes of one operand: those that both have, contracted and batch, and its own."""

    shared: Axes
    batch: Axes
    free: Axes

    def sizes(self, shape: Sequence[int]) -> list[int]:
        return [shape[i] for i in (*self.batch, *self.free)]


def _sides(lhs_ndim: int, rhs_ndim: int, numbers: DimensionNumbers) -> tuple[_Side, _Side]:
    (a, b), (p, q) = numbers
    left, right = (
        _Side(
            (*batch, *axes),
            tuple(batch),
            tuple([i for i in range(n) if i not in (*batch, *axes)]),
        )
        for n, axes, batch in ((lhs_ndim, a, p), (rhs_ndim, b, q))
    )
    return left, right


def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: DimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> BCOO | Array:
    """Return the contraction of two arrays, sparse where both are.

    Args:
        lhs: sparse or dense array.
        rhs: sparse or dense array.
        dimension_numbers: contracted and batch axes of both, as in ``lax.dot_general``.
        precision: that of a product of two dense arrays; sums over sparse ones are exact to the
            dtype.
        preferred_element_type: dtype of the result.

    Raises:
        IllTyped: the sizes of contracted or batch axes differ.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_dot_general(
    ...     sparse.eye(2), jnp.array([1.0, 2.0]), dimension_numbers=(((1,), (0,)), ((), ()))
    ... )
    Array([1., 2.], dtype=float32)
    """
    x, y = (v if isinstance(v, BCOO) else jnp.asarray(v) for v in (lhs, rhs))
    left, right = _sides(x.ndim, y.ndim, dimension_numbers)
    sizes = [[v.shape[i] for i in side.shared] for v, side in ((x, left), (y, right))]
    if sizes[0] != sizes[1]:
        raise IllTyped("the operands of bcoo_dot_general do not fit", f"{x!r}", f"{y!r}")
    dtype = preferred_element_type or jnp.result_type(x.dtype, y.dtype)
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return _both(x.astype(dtype), y.astype(dtype), left, right)
    if isinstance(x, BCOO):
        return _with_dense(x.astype(dtype), jnp.asarray(y, dtype), left, right)
    if isinstance(y, BCOO):
        found = _with_dense(y.astype(dtype), jnp.asarray(x, dtype), right, left)
        batch, own = len(left.batch), len(right.free)
        order = [*range(batch), *range(batch + own, found.ndim), *range(batch, batch + own)]
        return jnp.transpose(found, order)
    return lax.dot_general(x, y, dimension_numbers, precision, dtype)


def _with_dense(mat: BCOO, x: Array, side: _Side, other: _Side) -> Array:
    """Return the product: its axes are those of the batch, those of ``mat``, those of ``x``."""
    parts = elements(mat)
    rows = jnp.transpose(x, (*other.shared, *other.free))
    data = jnp.where(parts.inside, parts.data, 0)
    at = tuple([parts.indices[:, i] for i in side.shared])
    terms = data.reshape(-1, *[1] * len(other.free)) * (
        rows.at[at].get(mode="clip") if at else rows[None]
    )
    out = [mat.shape[i] for i in (*side.batch, *side.free)]
    total = jnp.zeros((*out, *[x.shape[i] for i in other.free]), terms.dtype)
    places = tuple([parts.indices[:, i] for i in (*side.batch, *side.free)])
    return total.at[places].add(terms, mode="drop") if places else jnp.sum(terms, 0)


def _both(a: BCOO, b: BCOO, left: _Side, right: _Side) -> BCOO:
    """Return the sparse product: an element for each pair of elements."""
    x, y = elements(a), elements(b)
    meet = x.inside[:, None] & y.inside[None, :]
    for i, j in zip(left.shared, right.shared, strict=True):
        meet &= x.indices[:, None, i] == y.indices[None, :, j]
    columns = [x.indices[:, None, i] for i in (*left.batch, *left.free)]
    columns += [y.indices[None, :, i] for i in right.free]
    flat = [jnp.broadcast_to(c, meet.shape).reshape(-1) for c in columns]
    none = jnp.zeros((meet.size, 0), x.indices.dtype)
    pairs = Elements((x.data[:, None] * y.data).reshape(-1), none, meet.reshape(-1))
    shape = [*left.sizes(a.shape), *[b.shape[i] for i in right.free]]
    return pairs.at(flat, pairs.inside, shape)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Return the product by elements of sparse arrays of one shape.

    Raises:
        IllTyped: the shapes differ.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2) * 3).todense()
    Array([[3., 0.],
           [0., 3.]], dtype=float32)
    """
    if lhs.shape != rhs.shape:
        raise IllTyped("sparse arrays are multiplied of one shape", f"{lhs!r}", f"{rhs!r}")
    x, y = elements(lhs), elements(rhs)
    same = x.inside[:, None] & y.inside[None, :]
    same &= jnp.all(x.indices[:, None, :] == y.indices[None, :, :], -1)
    factor = jnp.sum(jnp.where(same, y.data, 0), 1)
    return x._replace(data=x.data * factor).at(x.columns, x.inside, lhs.shape)
