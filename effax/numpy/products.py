"""Products of vectors, matrices and arrays."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.shapes import (
    broadcast_to,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
)
from effax.ir.dtypes import is_complex
from effax.ir.errors import IllTyped
from effax.ir.prims import DotGeneral
from effax.lax.precision import plain_precision
from effax.numpy import ufuncs as uf

__all__ = [
    "dot", "matmul", "matvec", "vdot", "vecdot", "vecmat",
]  # fmt: skip

Axes = tuple[int, ...]


def promoted_pair(a: ArrayLike, b: ArrayLike, what: str) -> tuple[Array, Array]:
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


def check_sizes(a: Array, i: int, b: Array, j: int, what: str) -> None:
    """Raise IllTyped where the sizes of a pair of axes differ."""
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
    out_sharding: object = None,
) -> Array:
    """Contract the last axis of ``a`` with the last but one, or only, axis of ``b``.

    Args:
        a: array or scalar.
        b: array or scalar.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.
        out_sharding: sharding of the result.

    Returns:
        Array of the remaining axes of ``a``, then of ``b``; a product where one is a scalar.

    Raises:
        IllTyped: the contracted axes differ in size.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    x, y = promoted_pair(a, b, "dot")
    if not x.ndim or not y.ndim:
        made = contract(x, y, ((), ()), ((), ()), precision, preferred_element_type)
        return on_device(made, out_sharding, "dot")
    place = 0 if y.ndim == 1 else y.ndim - 2
    check_sizes(x, x.ndim - 1, y, place, "dot")
    pairs = ((x.ndim - 1,), (place,))
    made = contract(x, y, pairs, ((), ()), precision, preferred_element_type)
    return on_device(made, out_sharding, "dot")


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Return the matrix product over the last two axes; leading axes broadcast.

    Args:
        a: array of matrices, or a vector (a row).
        b: array of matrices, or a vector (a column).
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.
        out_sharding: sharding of the result.

    Returns:
        Array of shape (..., n, m), without n or m where that operand is a vector.

    Raises:
        IllTyped: an operand is a scalar, or the contracted axes differ in size.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = promoted_pair(a, b, "matmul")
    if not x.ndim or not y.ndim:
        raise IllTyped(
            "matmul takes vectors and matrices",
            expected="at least one axis",
            found=f"{x.type}, {y.type}",
            remedy="use `multiply` for scalars",
        )
    place = 0 if y.ndim == 1 else y.ndim - 2
    check_sizes(x, x.ndim - 1, y, place, "matmul")
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
    product = moveaxis(product, 0, -2) if x.ndim == 2 and y.ndim > 2 else product
    return on_device(product, out_sharding, "matmul")


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
    x, y = promoted_pair(x1, x2, "matvec")
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
    x, y = promoted_pair(x1, x2, "vecmat")
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
    x, y = promoted_pair(x1, x2, "vecdot")
    x, y = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    check_sizes(x, x.ndim - 1, y, y.ndim - 1, "vecdot")
    shape = pr.broadcast_shapes([x.shape[:-1], y.shape[:-1]], "vecdot")
    x = broadcast_to(uf.conj(x), (*shape, x.shape[-1]))
    y = broadcast_to(y, (*shape, y.shape[-1]))
    axes = tuple(range(len(shape)))
    last = ((x.ndim - 1,), (y.ndim - 1,))
    return contract(x, y, last, (axes, axes), precision, preferred_element_type)


def real_square(x: Array) -> Array:
    """Return ``abs(x) ** 2``."""
    if is_complex(x.dtype):
        return uf.add(uf.square(uf.real(x)), uf.square(uf.imag(x)))
    return uf.square(x)
