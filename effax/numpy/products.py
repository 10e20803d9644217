"""Products of vectors, matrices and arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import Enum

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DTypeLike, as_value
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import DotGeneral
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.axes import no_out, plain_axes, plain_axis
from effax.numpy.join import stack
from effax.numpy.reduce import sum
from effax.numpy.shapes import (
    broadcast_to,
    diagonal,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    slice_along,
)

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot",
    "vecdot", "vecmat",
]  # fmt: skip

Axes = tuple[int, ...]


class Precision(Enum):
    """Precision of products of floats on devices that trade it for speed."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


def plain_precision(precision: object) -> str | None:
    """Return the name of a precision, which may be a member of ``lax.Precision``."""
    if precision is None:
        return None
    name = str(precision.value if isinstance(precision, Precision) else precision).lower()
    names = [p.value for p in Precision]
    if name not in names:
        raise BadArgument("unknown precision", " or ".join(names), repr(precision))
    return None if name == "default" else name


def _operands(a: ArrayLike, b: ArrayLike, what: str) -> tuple[Array, Array]:
    """Return two arrays in one dtype."""
    x, y = as_value(a, f"the first operand of {what}"), as_value(b, f"the second operand of {what}")
    if x.type.dtype is y.type.dtype:
        return x, y
    dtype, weak = pr.common_dtype((x, y), what)
    return pr.converted(x, dtype, weak), pr.converted(y, dtype, weak)


def contract(
    a: Array,
    b: Array,
    contracted: tuple[Axes, Axes],
    batch: tuple[Axes, Axes] = ((), ()),
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return ``dot_general`` of arrays of one dtype."""
    wanted = None if preferred_element_type is None else allowed(preferred_element_type)
    if wanted == a.dtype:
        wanted = None
    prim = DotGeneral((contracted, batch), wanted, plain_precision(precision))
    return bind1(prim, a, b)


def _sizes_match(a: Array, i: int, b: Array, j: int, what: str) -> None:
    if a.shape[i] != b.shape[j]:
        raise IllTyped(
            f"{what} pairs axes of different size",
            expected=f"axis {i} of {a.type} as long as axis {j} of {b.type}",
            found=f"{a.shape[i]} and {b.shape[j]}",
        )


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Contract the last axis of ``a`` with the last but one, or only, axis of ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of the remaining axes of ``a``, then of ``b``; a product where one is a scalar.

    Raises:
        IllTyped: the contracted axes differ in size.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    x, y = _operands(a, b, "dot")
    if not x.ndim or not y.ndim:
        return contract(x, y, ((), ()), ((), ()), precision, preferred_element_type)
    place = 0 if y.ndim == 1 else y.ndim - 2
    _sizes_match(x, x.ndim - 1, y, place, "dot")
    pairs = ((x.ndim - 1,), (place,))
    return contract(x, y, pairs, ((), ()), precision, preferred_element_type)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the matrix product over the last two axes; leading axes broadcast.

    Args:
        a: array of matrices, or a vector (a row).
        b: array of matrices, or a vector (a column).
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of shape (..., n, m), without n or m where that operand is a vector.

    Raises:
        IllTyped: an operand is a scalar, or the contracted axes differ in size.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = _operands(a, b, "matmul")
    if not x.ndim or not y.ndim:
        raise IllTyped(
            "matmul takes vectors and matrices",
            expected="at least one axis",
            found=f"{x.type}, {y.type}",
            remedy="use `multiply` for scalars",
        )
    place = 0 if y.ndim == 1 else y.ndim - 2
    _sizes_match(x, x.ndim - 1, y, place, "matmul")
    batch: tuple[Axes, Axes] = ((), ())
    if x.ndim > 2 and y.ndim > 2:
        shape = pr.broadcast_shapes([x.shape[:-2], y.shape[:-2]], "matmul")
        x = broadcast_to(x, (*shape, *x.shape[-2:]))
        y = broadcast_to(y, (*shape, *y.shape[-2:]))
        batch = (tuple(range(len(shape))), tuple(range(len(shape))))
        place = y.ndim - 2
    pairs = ((x.ndim - 1,), (place,))
    product = contract(x, y, pairs, batch, precision, preferred_element_type)
    # The row axis of one matrix stands before the batch axes of many.
    return moveaxis(product, 0, -2) if x.ndim == 2 and y.ndim > 2 else product


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return matrix-vector products over the last axes.

    Args:
        x1: array of shape (..., n, m).
        x2: array of shape (..., m).

    Returns:
        Array of shape (..., n).

    Raises:
        IllTyped: sizes do not match.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = _operands(x1, x2, "matvec")
    product = matmul(x, expand_dims(y, -1))
    return reshape(product, product.shape[:-1])


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return products of conjugated vectors with matrices over the last axes.

    Args:
        x1: array of shape (..., n).
        x2: array of shape (..., n, m).

    Returns:
        Array of shape (..., m).

    Raises:
        IllTyped: sizes do not match.

    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    x, y = _operands(x1, x2, "vecmat")
    product = matmul(expand_dims(uf.conj(x), -2), y)
    return reshape(product, (*product.shape[:-2], product.shape[-1]))


def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the sum of products of all elements, those of ``a`` conjugated.

    Args:
        a: array or scalar.
        b: array or scalar.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Scalar.

    Raises:
        IllTyped: the numbers of elements differ.

    >>> jnp.vdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    x, y = ravel(uf.conj(a)), ravel(b)
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the sum of products along ``axis``, elements of ``x1`` conjugated.

    Args:
        x1: array or scalar.
        x2: array or scalar.
        axis: axis to contract in both operands; the others broadcast.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of the broadcast shape without ``axis``.

    Raises:
        IllTyped: the contracted axes differ in size.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = _operands(x1, x2, "vecdot")
    x, y = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    _sizes_match(x, x.ndim - 1, y, y.ndim - 1, "vecdot")
    shape = pr.broadcast_shapes([x.shape[:-1], y.shape[:-1]], "vecdot")
    x = broadcast_to(uf.conj(x), (*shape, x.shape[-1]))
    y = broadcast_to(y, (*shape, y.shape[-1]))
    axes = tuple(range(len(shape)))
    last = ((x.ndim - 1,), (y.ndim - 1,))
    return contract(x, y, last, (axes, axes), precision, preferred_element_type)


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
    x, y = _operands(a, b, "inner")
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
) -> Array:
    """Contract axes of ``a`` with axes of ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.
        axes: number of last axes of ``a`` and first ones of ``b``, or a pair of lists of axes.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of the remaining axes of ``a``, then of ``b``.

    Raises:
        BadArgument: the axes do not pair up.
        IllTyped: paired axes differ in size.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    x, y = _operands(a, b, "tensordot")
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
        _sizes_match(x, i, y, j, "tensordot")
    return contract(x, y, (left, right), ((), ()), precision, preferred_element_type)


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
    x, y = _operands(a, b, "kron")
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
    offset: int = 0,
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
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Return the cross product of vectors of 3 elements.

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
        IllTyped: the vectors have another number of elements.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x = moveaxis(as_value(a, "the first operand of cross"), axisa, -1)
    y = moveaxis(as_value(b, "the second operand of cross"), axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise IllTyped("cross takes vectors of 3 elements", "3 elements", f"{x.type}, {y.type}")
    (x0, x1, x2), (y0, y1, y2) = _elements(x), _elements(y)
    parts = [
        uf.subtract(uf.multiply(x1, y2), uf.multiply(x2, y1)),
        uf.subtract(uf.multiply(x2, y0), uf.multiply(x0, y2)),
        uf.subtract(uf.multiply(x0, y1), uf.multiply(x1, y0)),
    ]
    return moveaxis(stack(parts), 0, axisc)


def _elements(x: Array) -> list[Array]:
    axis = x.ndim - 1
    return [slice_along(x, axis, i, i + 1, drop=True) for i in range(x.shape[axis])]


def real_square(x: Array) -> Array:
    """Return ``abs(x) ** 2``."""
    if is_complex(x.dtype):
        return uf.add(uf.square(uf.real(x)), uf.square(uf.imag(x)))
    return uf.square(x)
