"""Least squares, and systems and inverses of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.shapes import expand_dims, moveaxis, reshape, squeeze
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.numpy.factors import inv, matrices, pinv, solve, svdvals
from effax.numpy.products import matmul, real_square
from effax.numpy.reduce import max as max_
from effax.numpy.reduce import sum

__all__ = ["lstsq", "tensorinv", "tensorsolve"]


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return the x of least norm that minimizes the norm of ``b - a @ x``.

    Args:
        a: matrix of shape (m, n).
        b: array of shape (m,) or (m, k).
        rcond: singular values below this times the largest count as 0; by default the precision
            of the dtype times the larger size.
        numpy_resid: whether the residuals are empty, as in NumPy, where the system is not
            overdetermined, or its rank is known to be less than n.

    Returns:
        The solution, the sums of squares of the residuals, the rank and the singular values.

    Raises:
        IllTyped: ``a`` is not a matrix, or ``b`` does not fit.

    >>> jnp.linalg.lstsq(2 * jnp.eye(2), jnp.array([2.0, 4.0]))[0]
    Array([1., 2.], dtype=float32)
    """
    x, y = matrices(a, "lstsq", square=False), as_value(b, "the right-hand side of lstsq")
    dtype = pr.inexact(*pr.common_dtype((x, y), "lstsq"))[0]
    x, y = pr.converted(x, dtype, False), pr.converted(y, dtype, False)
    m, n = x.shape[-2:]
    if x.ndim != 2 or y.ndim not in (1, 2) or y.shape[0] != m:
        raise IllTyped(
            "the operands of lstsq do not fit",
            "(m, n) and (m,) or (m, k)",
            f"{x.type} and {y.type}",
        )
    s = svdvals(x)
    least = max(m, n) * float(finfo(s.dtype).eps) if rcond is None or rcond < 0 else rcond
    bound = uf.multiply(max_(s, initial=0), least)
    rank = sum(uf.astype(uf.greater(s, bound), int))
    columns = expand_dims(y, -1) if y.ndim == 1 else y
    found = matmul(pinv(x, rtol=least), columns, precision="highest")
    off = uf.subtract(columns, matmul(x, found, precision="highest"))
    rest = sum(real_square(off), 0)
    if numpy_resid and (m <= n or (isinstance(rank, DeviceArray) and int(rank) < n)):
        rest = rest[:0]
    return (squeeze(found, -1) if y.ndim == 1 else found), rest, rank, s


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return the x with ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: array of shape (*b.shape, *x.shape), whose two parts have the same size.
        b: array.
        axes: axes of ``a`` that are moved to the end first.

    Returns:
        Array of the shape of ``a`` without the axes of ``b``.

    Raises:
        IllTyped: the sizes do not fit.

    >>> jnp.linalg.tensorsolve(2 * jnp.eye(2), jnp.array([2.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    x, y = as_value(a, "the operand of tensorsolve"), as_value(b, "the right-hand side")
    if axes is not None:
        x = moveaxis(x, list(axes), list(range(x.ndim - len(axes), x.ndim)))
    shape = x.shape[y.ndim :]
    if x.size != y.size**2 or math.prod(shape) != y.size:
        expected = f"a of {y.size**2} elements, half of its axes those of b"
        raise IllTyped("the operands of tensorsolve do not fit", expected, f"{x.type} and {y.type}")
    return reshape(solve(reshape(x, (y.size, y.size)), reshape(y, (-1,))), shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of ``a`` for products over ``ind`` axes.

    Args:
        a: array whose first ``ind`` axes have the same product of sizes as the others.
        ind: number of first axes, positive.

    Returns:
        Array with the two parts of the axes exchanged.

    Raises:
        BadArgument: ``ind`` is not positive.
        IllTyped: the two parts differ in size.

    >>> jnp.linalg.tensorinv(2 * jnp.eye(2), ind=1)
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    if ind < 1:
        raise BadArgument("tensorinv takes a positive number of axes", "1 or more", str(ind))
    x = as_value(a, "the operand of tensorinv")
    first, last = x.shape[:ind], x.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise IllTyped("the axes of tensorinv do not fit", "two parts of one size", str(x.type))
    return reshape(inv(reshape(x, (math.prod(first), -1))), (*last, *first))
