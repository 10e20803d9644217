"""Linear algebra: norms, powers, and the products under the names that the array API has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from effax.arrays.device_array import Array, ArrayLike, as_value
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import power
from effax.numpy.axes import plain_axes
from effax.numpy.diagonals import eye
from effax.numpy.factors import (
    EighResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    cholesky,
    cond,
    det,
    eigh,
    eigvalsh,
    inv,
    matrix_rank,
    norm_of_values,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from effax.numpy.products import cross, matmul, outer, real_square, tensordot, vecdot
from effax.numpy.reduce import max, min, sum
from effax.numpy.shapes import broadcast_to, expand_dims, matrix_transpose, ravel, reshape
from effax.numpy.shapes import diagonal as _diagonal

__all__ = [
    "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det",
    "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

Order = int | float | str | None


def norm(
    x: ArrayLike,
    ord: Order = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors or matrices. The derivative of roots at 0 is taken for 0.

    Args:
        x: the array.
        ord: which norm: None for the Euclidean one, a number for the p-norm of vectors, "fro",
            1, -1, 2, -2, inf, -inf, "nuc" of matrices.
        axis: the axis of vectors or the two axes of matrices; None for the whole array.
        keepdims: whether the axes stay, with size 1.

    Raises:
        BadArgument: there is no such norm.
    """
    value = _inexact(x)
    if axis is None:
        if ord is None:
            flat = uf.flat_root(sum(real_square(ravel(value))))
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
    raise BadArgument("norm works along one or two axes", "1 or 2 axes", str(axis))


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: Order = 2,
) -> Array:
    """The p-norm along axes, taken as one."""
    value = _inexact(x)
    named = axis if axis is None or isinstance(axis, int) else list(axis)
    return _vector_norm(value, ord, plain_axes(named, value.ndim, "vector_norm"), keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Array:
    """The norm of matrices on the last two axes."""
    value = _inexact(x)
    return _matrix_norm(value, ord, plain_axes([-2, -1], value.ndim, "matrix_norm"), keepdims)


def _inexact(x: ArrayLike) -> Array:
    value = as_value(x, "the argument of norm")
    return pr.converted(value, *pr.inexact(value.dtype, False))


def _vector_norm(x: Array, ord: Order, axes: tuple[int, ...], keepdims: bool) -> Array:
    if isinstance(ord, str) or ord is None:
        raise BadArgument("there is no such norm of vectors", "a number", repr(ord))
    if ord == 2:
        return uf.flat_root(sum(real_square(x), axes, keepdims=keepdims))
    size = uf.absolute(x)
    if ord == np.inf:
        return max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return min(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum(uf.astype(uf.not_equal(x, 0), size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    total = sum(power(size, ord), axes, keepdims=keepdims)
    return uf.flat_root(total, lambda x: power(x, 1 / ord))


def _matrix_norm(x: Array, ord: Order, axes: tuple[int, ...], keepdims: bool) -> Array:
    rows, columns = axes
    if ord in ("fro", "f"):
        return uf.flat_root(sum(real_square(x), axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        combine: Callable[..., Array] = max if ord == 2 else min if ord == -2 else sum
        found = norm_of_values(x, combine, axes)
        return expand_dims(found, axes) if keepdims else found
    if ord not in (1, -1, np.inf, -np.inf):
        raise BadArgument(
            "there is no such norm of matrices",
            expected="'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
            found=repr(ord),
        )
    summed, left = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = sum(uf.absolute(x), summed, keepdims=True)
    extreme = max if ord in (1, np.inf) else min
    found = extreme(sums, left, keepdims=True)
    if keepdims:
        return found
    return reshape(found, [n for i, n in enumerate(found.shape) if i not in axes])


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The square matrix times itself, ``n`` times; its inverse for negative ``n``."""
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
    """The product of matrices, in the cheapest order."""
    from effax.numpy.einstein import einsum

    if len(arrays) < 2:
        raise BadArgument("multi_dot takes several arrays", "at least 2", str(len(arrays)))
    values = [as_value(x, f"array {i} of multi_dot") for i, x in enumerate(arrays)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    if len(values) > len(letters) - 1:
        raise BadArgument("multi_dot takes few arrays", "at most 25", str(len(values)))
    names = [letters[i : i + 2] for i in range(len(values))]
    names[0] = names[0][-values[0].ndim :]
    names[-1] = names[-1][: values[-1].ndim]
    output = names[0][: values[0].ndim - 1] + names[-1][1:]
    return einsum(f"{','.join(names)}->{output}", *values, precision=precision)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices on the last two axes."""
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The sums of the diagonals of matrices on the last two axes."""
    return sum(diagonal(x, offset=offset), -1)
