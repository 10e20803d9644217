"""Linear algebra: norms, powers, factorizations, and products by their array API names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axes
from effax.arrays.conversion import as_value
from effax.arrays.shapes import (
    broadcast_to,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    ravel,
    reshape,
    slice_along,
)
from effax.arrays.shapes import diagonal as _diagonal
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import power
from effax.numpy.diagonals import eye
from effax.numpy.eigen import EigResult, eig, eigvals
from effax.numpy.factors import (
    EighResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    matrices,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    sum_of_values,
    svd,
    svdvals,
)
from effax.numpy.products import matmul, real_square, vecdot
from effax.numpy.reduce import max, min, sum
from effax.numpy.tensor_products import cross, outer, tensordot
from effax.numpy.tensor_systems import lstsq, tensorinv, tensorsolve

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond",
    "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv",
    "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

Order = int | float | str | None


def norm(
    x: ArrayLike,
    ord: Order = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Return norms of vectors or matrices; the derivative at 0 is defined as 0.

    The second derivative at 0 is nan; that of an even power, which is smooth, is exact.

    Args:
        x: array or scalar.
        ord: None for the 2-norm of all elements; a number for vectors; "fro", "nuc", 1, -1, 2, -2,
            inf or -inf for matrices.
        axis: axis of vectors, or two axes of matrices; None for the whole array.
        keepdims: whether reduced axes remain with size 1.

    Returns:
        Inexact array without the reduced axes.

    Raises:
        BadArgument: an unknown norm.
        IllTyped: an array of other rank without ``axis``.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    value = _inexact(x)
    if axis is None:
        if ord is None:
            flat = uf.magnitude(sum(real_square(ravel(value))))
            return reshape(flat, (1,) * value.ndim) if keepdims else flat
        if value.ndim not in (1, 2):
            raise IllTyped("norm takes a vector or a matrix", "1 or 2 axes", str(value.type))
        axes = plain_axes(None, value.ndim, "norm")
    else:
        axes = plain_axes(axis if isinstance(axis, int) else list(axis), value.ndim, "norm")
    if len(axes) == 1:
        return _vector_norm(value, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(value, "fro" if ord is None else ord, axes, keepdims)
    raise BadArgument("norm takes one or two axes", "1 or 2 axes", str(axis))


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: Order = 2,
) -> Array:
    """Return the p-norms of the elements along ``axis``.

    Args:
        x: array or scalar.
        axis: axis or axes of the vectors; None for all.
        keepdims: whether reduced axes remain with size 1.
        ord: order p; inf, -inf and 0 (number of nonzeros) included.

    Returns:
        Inexact array without the reduced axes.

    Raises:
        BadArgument: ``ord`` is not a number.

    >>> jnp.linalg.vector_norm(jnp.array([3.0, -4.0]), ord=1)
    Array(7., dtype=float32)
    """
    value = _inexact(x)
    named = axis if axis is None or isinstance(axis, int) else list(axis)
    return _vector_norm(value, ord, plain_axes(named, value.ndim, "vector_norm"), keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Array:
    """Return the norms of matrices on the last two axes.

    Args:
        x: array of shape (..., n, m).
        keepdims: whether reduced axes remain with size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns:
        Inexact array without the last two axes.

    Raises:
        BadArgument: an unknown norm.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    value = _inexact(x)
    return _matrix_norm(value, ord, plain_axes([-2, -1], value.ndim, "matrix_norm"), keepdims)


def _inexact(x: ArrayLike) -> Array:
    value = as_value(x, "the argument of norm")
    return pr.converted(value, *pr.inexact(value.dtype, False))


def _vector_norm(x: Array, ord: Order, axes: tuple[int, ...], keepdims: bool) -> Array:
    if isinstance(ord, str) or ord is None:
        raise BadArgument("unknown norm of vectors", "a number", repr(ord))
    if ord == 2:
        return uf.magnitude(sum(real_square(x), axes, keepdims=keepdims))
    size = uf.absolute(x)
    if ord == np.inf:
        return _largest(size, axes, keepdims)
    if ord == -np.inf:
        return min(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum(uf.astype(uf.not_equal(x, 0), size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    total = sum(power(size, ord), axes, keepdims=keepdims)
    # At 0 the derivative is defined as 0, as that of x^1.5, and the second derivative is nan.
    zero = uf.equal(total, 0)
    root = power(uf.masked(uf.invert(zero), total, 1), 1 / ord)
    return uf.where(zero, power(uf.masked(zero, total, 1), 1.5), root)


def _largest(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the largest magnitude: 0 for none, which would share derivatives with others at 0."""
    is_empty = any(x.shape[axis] == 0 for axis in axes)
    return max(x, axes, keepdims=keepdims, initial=0 if is_empty else None)


def _matrix_norm(x: Array, ord: Order, axes: tuple[int, ...], keepdims: bool) -> Array:
    rows, columns = axes
    if ord in ("fro", "f"):
        return uf.magnitude(sum(real_square(x), axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        last = moveaxis(x, axes, (-2, -1))
        if ord == "nuc":
            found = sum_of_values(last)
        else:
            values = svdvals(last)
            found = _largest(values, (-1,), False) if ord == 2 else min(values, -1)
        return expand_dims(found, axes) if keepdims else found
    if ord not in (1, -1, np.inf, -np.inf):
        raise BadArgument(
            "unknown norm of matrices",
            expected="'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
            found=repr(ord),
        )
    summed, left = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = sum(uf.absolute(x), summed, keepdims=True)
    found = _largest(sums, (left,), True) if ord in (1, np.inf) else min(sums, left, keepdims=True)
    if keepdims:
        return found
    return reshape(found, [n for i, n in enumerate(found.shape) if i not in axes])


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Return the ``n``-th power of square matrices, by repeated squaring.

    Args:
        a: array of shape (..., m, m).
        n: exponent; negative ones invert first.

    Returns:
        Array of the shape of ``a``.

    Raises:
        IllTyped: the matrices are not square.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    value = as_value(a, "the argument of matrix_power")
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        raise IllTyped("matrix_power takes square matrices", found=str(value.type))
    if n < 0:
        value, n = inv(value), -n
    result: Array | None = None
    while n:
        if n & 1:
            result = value if result is None else matmul(result, value)
        n >>= 1
        value = matmul(value, value) if n else value
    return (
        broadcast_to(eye(value.shape[-1], dtype=value.dtype), value.shape)
        if result is None
        else result
    )


def multi_dot(arrays: Sequence[ArrayLike], *, precision: object = None) -> Array:
    """Return the product of matrices in the cheapest order.

    Args:
        arrays: 2 to 25 matrices; the first and last may be vectors.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.

    Returns:
        Matrix, vector or scalar.

    Raises:
        BadArgument: too few or too many arrays.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    from effax.numpy.einstein import einsum

    if len(arrays) < 2:
        raise BadArgument("multi_dot takes at least two arrays", "at least 2", str(len(arrays)))
    values = [as_value(x, f"array {i} of multi_dot") for i, x in enumerate(arrays)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    if len(values) > len(letters) - 1:
        raise BadArgument("multi_dot takes at most 25 arrays", "at most 25", str(len(values)))
    names = [letters[i : i + 2] for i in range(len(values))]
    names[0] = names[0][-values[0].ndim :]
    names[-1] = names[-1][: values[-1].ndim]
    output = names[0][: values[0].ndim - 1] + names[-1][1:]
    return einsum(f"{','.join(names)}->{output}", *values, precision=precision)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices on the last two axes.

    Args:
        x: array of shape (..., n, m).
        offset: diagonal; positive ones are above the main diagonal.

    Returns:
        Array whose last axis is the diagonal.

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the sums of the diagonals of matrices on the last two axes.

    Args:
        x: array of shape (..., n, m).
        offset: diagonal; positive ones are above the main diagonal.
        dtype: dtype of the sum; by default that of ``sum``.

    Returns:
        Array without the last two axes.

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return sum(diagonal(x, offset=offset), -1, dtype)


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """Return the condition numbers of matrices.

    Args:
        x: array of shape (..., n, m).
        p: norm, see :func:`matrix_norm`; None for the ratio of extreme singular values.

    Returns:
        Real array without the last two axes.

    Raises:
        IllTyped: ``x`` has fewer than 2 axes, or is not square for other norms.

    >>> jnp.linalg.cond(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array(2., dtype=float32)
    """
    value = matrices(x, "cond", square=False)
    if p in (None, 2, -2):
        s = svdvals(value)
        first, last = (
            slice_along(flip(s, -1) if back else s, s.ndim - 1, 0, 1, drop=True)
            for back in (False, True)
        )
        return uf.true_divide(last, first) if p == -2 else uf.true_divide(first, last)
    return uf.multiply(matrix_norm(value, ord=p), matrix_norm(inv(value), ord=p))
