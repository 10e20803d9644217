"""Roots of polynomials, by the eigenvalues of companion matrices, and fits by least squares."""

from __future__ import annotations

from typing import Literal, overload

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import ones, zeros
from effax.arrays.shapes import atleast_1d, expand_dims, matrix_transpose
from effax.ir.dtypes import complex_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.diagonals import diag
from effax.numpy.dtypes import finfo
from effax.numpy.eigen import eigvals
from effax.numpy.factors import inv
from effax.numpy.index import take_along_axis
from effax.numpy.polynomials import vander
from effax.numpy.products import matmul, real_square
from effax.numpy.ranges import arange
from effax.numpy.reduce import sum
from effax.numpy.sorting import argsort
from effax.numpy.tensor_products import outer
from effax.numpy.tensor_systems import lstsq

__all__ = ["polyfit", "roots"]

Fit = tuple[Array, Array, Array, Array, Array]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Return the roots of a polynomial.

    Args:
        p: coefficients, from that of the highest power to the constant.
        strip_zeros: whether leading zeros are removed, which takes a known value; otherwise as many
            roots at the end are nan.

    Returns:
        Complex vector.

    Raises:
        ConcretizationError: ``strip_zeros`` and ``p`` is traced.
        IllTyped: ``p`` is not a vector.

    >>> jnp.roots(jnp.array([1.0, 0.0, 1.0])).imag
    Array([ 1., -1.], dtype=float32)
    """
    value = atleast_1d(as_value(p, "the argument of roots"))
    if value.ndim != 1:
        raise IllTyped("roots takes a vector of coefficients", "1 axis", str(value.type))
    value = pr.converted(value, pr.inexact(value.dtype, False)[0], False)
    if strip_zeros:
        kept = value.numpy().nonzero()[0]
        return _nonzero_leading(value[int(kept[0]) if kept.size else value.size :])
    n = value.size
    vanishes = uf.equal(value, 0)
    leading = sum(uf.astype(vanishes.cumsum() == arange(n) + 1, "int32"))
    # The leading zeros become roots of 0, and are sorted to the end.
    places = (arange(n) + leading) % max(n, 1)
    rolled = uf.where(leading == n, 1, take_along_axis(value, places, 0))
    found = _nonzero_leading(rolled)
    found = take_along_axis(found, argsort(uf.equal(found, 0), stable=True), 0)
    return uf.where(arange(found.size) < found.size - leading, found, complex("nan+nanj"))


def _nonzero_leading(p: Array) -> Array:
    n = p.size - 1
    if n < 1:
        return zeros((0,), complex_dtype(p.dtype))
    companion = diag(ones((n - 1,), p.dtype), -1).at[0].set(-p[1:] / p[0])
    return eigvals(companion)


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, Array] | Fit: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, Array] | Fit:
    """Return the coefficients of the polynomial that fits points best, by least squares.

    Args:
        x: abscissas, of shape (m,).
        y: ordinates, of shape (m,) or (m, k).
        deg: degree.
        rcond: singular values below this times the largest count as 0; by default the precision
            of the dtype times m.
        full: whether to return diagnostics too.
        w: weights of the residuals, of shape (m,).
        cov: whether to return the covariance too, scaled by the residuals; unscaled for
            "unscaled".

    Returns:
        Coefficients, from that of the highest power to the constant, of shape (deg + 1,) or
        (deg + 1, k). With ``full`` also the residuals, the rank, the singular values and ``rcond``;
        with ``cov`` also the covariance.

    Raises:
        BadArgument: a negative degree, no points, or too few of them for the covariance.
        IllTyped: shapes do not fit.

    >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    abscissas, ordinates = as_value(x, "the abscissas"), as_value(y, "the ordinates")
    dtype = pr.inexact(*pr.common_dtype((abscissas, ordinates), "polyfit"))[0]
    a, b = (pr.converted(z, dtype, False) for z in (abscissas, ordinates))
    if deg < 0 or not a.size:
        found = f"degree {deg} and {a.size} points"
        raise BadArgument("polyfit needs a degree and points", "deg >= 0, points", found)
    if a.ndim != 1 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        found = f"{abscissas.type} and {ordinates.type}"
        raise IllTyped("the points of polyfit do not fit", "(m,) and (m,) or (m, k)", found)
    least = a.size * float(finfo(dtype).eps) if rcond is None else rcond
    left, right = vander(a, deg + 1), b
    if w is not None:
        weights = pr.converted(as_value(w, "the weights"), dtype, False)
        if weights.shape != a.shape:
            raise IllTyped("the weights of polyfit do not fit", str(a.shape), str(weights.shape))
        column = expand_dims(weights, -1)
        left, right = left * column, right * (column if b.ndim == 2 else weights)
    # Columns of norm 1, so that the singular values are comparable.
    scale = uf.sqrt(sum(real_square(left), 0))
    scale = uf.where(scale == 0, 1, scale)
    c, residuals, rank, s = lstsq(left / scale, right, least, numpy_resid=True)
    c = c / (expand_dims(scale, -1) if b.ndim == 2 else scale)
    if full:
        return c, residuals, rank, s, as_value(least)
    if not cov:
        return c
    return c, _covariance(left / scale, scale, residuals, b, cov == "unscaled")


def _covariance(left: Array, scale: Array, residuals: Array, b: Array, unscaled: bool) -> Array:
    m, n = left.shape
    base = inv(matmul(matrix_transpose(left), left, precision="highest")) / outer(scale, scale)
    if unscaled:
        factor = ones((), base.dtype)
    elif m <= n:
        raise BadArgument("too few points for a covariance", f"more than {n}", str(m))
    else:
        factor = residuals / (m - n)
    if b.ndim == 1:
        return base * (factor if unscaled else factor[0])
    whole = expand_dims(base, -1)
    return whole * factor
