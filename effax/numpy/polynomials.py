"""Polynomials, as vectors of their coefficients from that of the highest power to the constant."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import nonnegative
from effax.arrays.conversion import as_value
from effax.arrays.creation import ones, zeros, zeros_like
from effax.arrays.joining import concatenate
from effax.arrays.shapes import atleast_1d, expand_dims, flip
from effax.ir.errors import BadArgument, IllTyped
from effax.lax.whiles import fori_loop
from effax.numpy.convolution import convolve
from effax.numpy.positions import nonzero
from effax.numpy.ranges import arange

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "vander",
]  # fmt: skip

UNROLLED = 16
"""The number of coefficients up to which the scheme of Horner is unrolled."""


def _coefficients(p: ArrayLike, what: str) -> Array:
    value = atleast_1d(as_value(p, f"a polynomial of {what}"))
    if value.ndim != 1:
        raise IllTyped(
            f"{what} expects a vector of coefficients", expected="1 axis", found=str(value.type)
        )
    return value


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """Return the values of a polynomial, by the scheme of Horner.

    Args:
        p: coefficients, from that of the highest power to the constant: an array whose first axis
            counts them, and whose other axes broadcast with ``x``.
        x: points.
        unroll: number of coefficients up to which the scheme is unrolled, 16 by default.

    Returns:
        Array of the shape to which ``x`` and a coefficient broadcast.

    >>> jnp.polyval(jnp.array([1, 2, 3]), 2)
    Array(11, dtype=int32)
    """
    coefficients, points = pr.in_common_dtype([atleast_1d(as_value(p)), as_value(x)], "polyval")
    n = coefficients.shape[0]
    start = zeros_like(points * coefficients[0]) if n else zeros_like(points)

    def step(i: ArrayLike, y: Array) -> Array:
        return y * points + coefficients[i]

    if n <= (UNROLLED if unroll is None else unroll):
        for i in range(n):
            start = step(i, start)
        return start
    return fori_loop(0, n, step, start)


def _leading_zeros(p: Array, n: int) -> Array:
    return concatenate([zeros(n, p.dtype), p]) if n else p


def _aligned(a1: ArrayLike, a2: ArrayLike, what: str) -> tuple[Array, Array]:
    """Return both, of one dtype, with leading zeros so that they have one size."""
    a, b = pr.in_common_dtype([_coefficients(a1, what), _coefficients(a2, what)], what)
    size = max(a.size, b.size)
    return _leading_zeros(a, size - a.size), _leading_zeros(b, size - b.size)


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the sum of two polynomials.

    Args:
        a1: vector of coefficients.
        a2: vector of coefficients.

    Returns:
        Vector of the size of the longer one.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([9, 5, 4]))
    Array([9, 6, 6], dtype=int32)
    """
    a, b = _aligned(a1, a2, "polyadd")
    return a + b


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the difference of two polynomials.

    Args:
        a1: vector of coefficients.
        a2: vector of coefficients.

    Returns:
        Vector of the size of the longer one.

    >>> jnp.polysub(jnp.array([2, 10, -2]), jnp.array([3, 10, -4]))
    Array([-1,  0,  2], dtype=int32)
    """
    a, b = _aligned(a1, a2, "polysub")
    return a - b


def _trimmed(p: Array) -> Array:
    """Return a vector of known values without leading zeros."""
    found = nonzero(p)[0]
    return p[int(found[0]) :] if found.size else p[:0]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Return the product of two polynomials.

    Args:
        a1: vector of coefficients.
        a2: vector of coefficients.
        trim_leading_zeros: whether leading zeros of the operands are dropped first, as NumPy does;
            their values have to be known then.

    Returns:
        Vector of inexact coefficients, of ``a1.size + a2.size - 1``.

    Raises:
        ConcretizationError: leading zeros of a traced operand are to be dropped.

    >>> jnp.polymul(jnp.array([2, 1, 0]), jnp.array([0, 5, 0]))
    Array([ 0., 10.,  5.,  0.,  0.], dtype=float32)
    """
    operands = [_coefficients(a1, "polymul"), _coefficients(a2, "polymul")]
    a, b = pr.in_common_dtype(operands, "polymul", must_be_inexact=True)
    if trim_leading_zeros:
        a, b = _trimmed(a), _trimmed(b)
    a, b = (p if p.size else zeros(1, p.dtype) for p in (a, b))
    return convolve(a, b)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Return quotient and remainder of a division of polynomials: ``u = quotient · v + remainder``.

    Args:
        u: vector of coefficients of the dividend.
        v: vector of coefficients of the divisor, of which the first is not 0.
        trim_leading_zeros: whether leading zeros of the remainder are dropped, as NumPy does; the
            values have to be known then.

    Returns:
        Quotient, of ``max(u.size - v.size + 1, 1)`` coefficients, and remainder, of the size of
        ``u``.

    Raises:
        BadArgument: an operand has no coefficients.
        ConcretizationError: leading zeros of a traced remainder are to be dropped.

    >>> jnp.polydiv(jnp.array([1.0, 3.0, 3.0]), jnp.array([1.0, 1.0]))
    (Array([1., 2.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    operands = [_coefficients(u, "polydiv"), _coefficients(v, "polydiv")]
    if not all(p.size for p in operands):
        raise BadArgument("polydiv expects coefficients", "at least one", "none")
    rest, divisor = pr.in_common_dtype(operands, "polydiv", must_be_inexact=True)
    n = divisor.size
    quotient = [zeros((), rest.dtype)]
    if rest.size >= n:
        quotient = []
        for k in range(rest.size - n + 1):
            factor = rest[k] / divisor[0]
            quotient.append(factor)
            # The leading coefficient is eliminated exactly, not up to rounding.
            rest = rest.at[k + 1 : k + n].add(-factor * divisor[1:]).at[k].set(0)
    remainder = rest
    if trim_leading_zeros:
        remainder = _trimmed(rest)
        remainder = remainder if remainder.size else zeros(1, rest.dtype)
    return concatenate([q[None] for q in quotient]), remainder


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Return the derivative of a polynomial.

    Args:
        p: vector of coefficients.
        m: order of the derivative.

    Returns:
        Vector of ``p.size - m`` inexact coefficients, or of none.

    Raises:
        BadArgument: the order is negative.

    >>> jnp.polyder(jnp.array([1.0, 1.0, 1.0, 1.0]))
    Array([3., 2., 1.], dtype=float32)
    """
    order = nonnegative(m, "the order of polyder")
    (c,) = pr.in_common_dtype([_coefficients(p, "polyder")], "polyder", must_be_inexact=True)
    kept = c[: max(c.size - order, 0)]
    for passed in range(order):
        kept = kept * arange(c.size - 1 - passed, order - 1 - passed, -1, kept.dtype)[: kept.size]
    return kept


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Return an antiderivative of a polynomial.

    Args:
        p: vector of coefficients.
        m: number of integrations.
        k: constants of the integrations, first that of the first one: a number for all of them,
            or a vector of ``m``; 0 by default.

    Returns:
        Vector of ``p.size + m`` inexact coefficients.

    Raises:
        BadArgument: the order is negative, or the number of constants is neither 1 nor ``m``.

    >>> jnp.polyint(jnp.array([1.0, 1.0, 1.0]))
    Array([0.33333334, 0.5       , 1.        , 0.        ], dtype=float32)
    """
    order = nonnegative(m, "the order of polyint")
    given = atleast_1d(as_value(0 if k is None else k, "a constant of polyint"))
    if given.ndim != 1 or given.size not in (1, order):
        raise BadArgument(
            "polyint expects a constant for each integration",
            expected=f"1 or {order}",
            found=str(given.type),
        )
    c, constants = pr.in_common_dtype(
        [_coefficients(p, "polyint"), given], "polyint", must_be_inexact=True
    )
    for i in range(order):
        c = c / arange(c.size, 0, -1, c.dtype)
        constant = constants[i if constants.size > 1 else 0]
        c = concatenate([c, constant[None]])
    return c


def vander(
    x: ArrayLike,
    N: int | None = None,  # noqa: N803  NumPy's name
    increasing: bool = False,
) -> Array:
    """Return the matrix of the powers of a vector's elements, a row for each.

    Args:
        x: vector.
        N: number of columns, the size of ``x`` by default.
        increasing: whether powers increase from left to right.

    Returns:
        Matrix of shape ``(x.size, N)``.

    Raises:
        IllTyped: ``x`` is not a vector.
        BadArgument: the number of columns is negative.

    >>> jnp.vander(jnp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    points = as_value(x, "the points of vander")
    if points.ndim != 1:
        raise IllTyped("vander expects a vector", expected="1 axis", found=str(points.type))
    n = points.size if N is None else nonnegative(N, "the number of columns of vander")
    powers = arange(n) if increasing else flip(arange(n), 0)
    return expand_dims(points, 1) ** powers


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the monic polynomial of which these are the roots.

    Args:
        seq_of_zeros: vector of roots, or a square matrix whose eigenvalues they are.

    Returns:
        Vector of one inexact coefficient more than there are roots.

    Raises:
        IllTyped: the roots are not a vector.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    given = as_value(seq_of_zeros, "the roots of poly")
    if given.ndim == 2 and given.shape[0] == given.shape[1]:
        from effax.numpy.linalg import eigvals

        given = eigvals(given)
    (roots,) = pr.in_common_dtype([_coefficients(given, "poly")], "poly", must_be_inexact=True)
    found = ones(1, roots.dtype)
    for i in range(roots.size):
        padded = concatenate([found, zeros(1, roots.dtype)])
        found = padded.at[1:].add(-roots[i] * found)
    return found
