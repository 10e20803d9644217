"""Tensor contractions, outer, Kronecker and cross products, traces."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import no_out, plain_axes, plain_axis
from effax.arrays.conversion import as_value
from effax.arrays.creation import zeros_like
from effax.arrays.placed import on_device
from effax.arrays.shapes import (
    diagonal,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    slice_along,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.diagonals import eye
from effax.numpy.join import stack
from effax.numpy.products import Axes, check_sizes, contract, promoted_pair
from effax.numpy.reduce import sum

__all__ = [
    "cross", "inner", "kron", "outer", "tensordot", "trace",
]  # fmt: skip


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Return all products of an element of ``a`` and an element of ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.
        out: unsupported.

    Returns:
        Array of shape (a.size, b.size).

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    no_out(out, "outer")
    return uf.multiply(expand_dims(ravel(a), 1), expand_dims(ravel(b), 0))


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Contract axes of ``a`` with axes of ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.
        axes: number of last axes of ``a`` and first ones of ``b``, or a pair of lists of axes.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.
        out_sharding: sharding of the result.

    Returns:
        Array of the remaining axes of ``a``, then of ``b``.

    Raises:
        BadArgument: the axes do not pair up.
        IllTyped: paired axes differ in size.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    x, y = promoted_pair(a, b, "tensordot")
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise BadArgument(
                "tensordot contracts more axes than the operands have",
                expected=f"at most {min(x.ndim, y.ndim)}, for {x.type} and {y.type}",
                found=str(axes),
            )
        left, right = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    else:
        if len(axes) != 2:
            raise BadArgument("tensordot expects axes of both operands", "2 entries", str(axes))
        left = _axes_of(axes[0], x, "tensordot")
        right = _axes_of(axes[1], y, "tensordot")
    if len(left) != len(right):
        raise BadArgument("tensordot expects pairs of axes", f"{len(left)} axes of each", str(axes))
    for i, j in zip(left, right, strict=True):
        check_sizes(x, i, y, j, "tensordot")
    made = contract(x, y, (left, right), ((), ()), precision, preferred_element_type)
    return on_device(made, out_sharding, "tensordot")


def _axes_of(axes: int | Sequence[int], x: Array, what: str) -> Axes:
    if isinstance(axes, Sequence):
        return plain_axes(list(axes), x.ndim, what)
    return (plain_axis(axes, x.ndim, what),)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: each element of ``a`` times the whole of ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.

    Returns:
        Array whose sizes are the products of those of ``a`` and ``b``.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = promoted_pair(a, b, "kron")
    ndim = max(x.ndim, y.ndim)
    x = reshape(x, [1] * (ndim - x.ndim) + list(x.shape))
    y = reshape(y, [1] * (ndim - y.ndim) + list(y.shape))
    shape = list(map(operator.mul, x.shape, y.shape))
    apart = uf.multiply(
        expand_dims(x, tuple(range(1, 2 * ndim, 2))), expand_dims(y, tuple(range(0, 2 * ndim, 2)))
    )
    return reshape(apart, shape)


def trace(
    a: ArrayLike,
    offset: ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Return the sums of the diagonals in the plane of two axes.

    Args:
        a: array or scalar.
        offset: diagonal; positive ones are above the main diagonal.
        axis1: axis of the rows.
        axis2: axis of the columns.
        dtype: dtype of the result.
        out: unsupported.

    Returns:
        Array of the remaining axes of ``a``.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    no_out(out, "trace")
    if isinstance(offset, int):
        return sum(diagonal(a, offset, axis1, axis2), -1, dtype)
    moved = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = moved.shape[-2:]
    on_diagonal = eye(rows, columns, offset, bool)
    return sum(moved, (-2, -1), dtype, where=on_diagonal)


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Return the cross product of vectors of 3 elements.

    The third element of vectors of 2 is 0, with a DeprecationWarning; of two such vectors, only the
    third element of the product is returned.

    Args:
        a: array or scalar.
        b: array or scalar.
        axisa: axis of the vectors of ``a``.
        axisb: axis of the vectors of ``b``.
        axisc: axis of the vectors of the result.
        axis: axis of the vectors, in place of the three.

    Returns:
        Array of vectors of 3 elements; the other axes broadcast.

    Raises:
        IllTyped: the vectors have neither 3 nor 2 elements.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x = moveaxis(as_value(a, "the first operand of cross"), axisa, -1)
    y = moveaxis(as_value(b, "the second operand of cross"), axisb, -1)
    sizes = {x.shape[-1], y.shape[-1]}
    if not sizes <= {2, 3}:
        raise IllTyped("cross takes vectors of 3 elements", "3 elements", f"{x.type}, {y.type}")
    if 2 in sizes:
        warnings.warn(
            "vectors of 2 elements are deprecated: append a 0", DeprecationWarning, stacklevel=2
        )
    (x0, x1, *rest), (y0, y1, *others) = _elements(x), _elements(y)
    if sizes == {2}:
        return uf.subtract(uf.multiply(x0, y1), uf.multiply(x1, y0))
    x2, y2 = (rest or [zeros_like(x0)])[0], (others or [zeros_like(y0)])[0]
    parts = [
        uf.subtract(uf.multiply(x1, y2), uf.multiply(x2, y1)),
        uf.subtract(uf.multiply(x2, y0), uf.multiply(x0, y2)),
        uf.subtract(uf.multiply(x0, y1), uf.multiply(x1, y0)),
    ]
    return moveaxis(stack(parts), 0, axisc)


def _elements(x: Array) -> list[Array]:
    axis = x.ndim - 1
    return [slice_along(x, axis, i, i + 1, drop=True) for i in range(x.shape[axis])]


def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Contract the last axes of ``a`` and ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of the remaining axes of ``a``, then of ``b``; a product where one is a scalar.

    Raises:
        IllTyped: the contracted axes differ in size.

    >>> jnp.inner(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    x, y = promoted_pair(a, b, "inner")
    if not x.ndim or not y.ndim:
        product = uf.multiply(x, y)
        return (
            product
            if preferred_element_type is None
            else uf.astype(product, preferred_element_type)
        )
    return tensordot(
        x, y, (-1, -1), precision=precision, preferred_element_type=preferred_element_type
    )
