"""Matrices of special form."""

from __future__ import annotations

import math

import numpy as np

import effax.numpy as jnp
from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import static_int
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy.join import concatenate
from effax.numpy.padding import pad

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vectors(x: ArrayLike, what: str, least: int = 0) -> Array:
    value = as_value(x, f"the argument of {what}")
    if value.ndim < 1:
        value = jnp.reshape(value, (1,))
    if value.shape[-1] < least:
        raise IllTyped(f"{what} takes vectors", f"{least} elements or more", str(value.type))
    return value


def _size(n: int, what: str) -> int:
    size = static_int(n, f"the size of {what}")
    if size < 1:
        raise BadArgument(f"{what} takes a positive size", "1 or more", str(size))
    return size


def block_diag(*arrs: ArrayLike) -> Array:
    """Return the matrix with the matrices on its diagonal, and zeros elsewhere.

    Args:
        arrs: arrays of at most 2 axes; vectors are rows.

    Returns:
        Matrix in the common dtype.

    Raises:
        IllTyped: an array has more than 2 axes.

    >>> linalg.block_diag(jnp.array([[1, 2]]), jnp.array([3]))
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    blocks = [jnp.atleast_2d(as_value(x, "an argument of block_diag")) for x in arrs]
    blocks = blocks or [jnp.zeros((1, 0))]
    if any(x.ndim > 2 for x in blocks):
        raise IllTyped(
            "block_diag takes matrices", "at most 2 axes", str([x.shape for x in blocks])
        )
    dtype, weak = pr.common_dtype(blocks, "block_diag")
    width, before = sum(x.shape[1] for x in blocks), 0
    rows = []
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(pad(pr.converted(x, dtype, weak), ((0, 0), (before, after))))
        before += x.shape[1]
    return concatenate(rows, 0)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrices with constant diagonals.

    Args:
        c: first columns, of shape (..., n).
        r: first rows, of shape (..., m), whose first element is not used; the conjugate of ``c``
            by default.

    Returns:
        Array of shape (..., n, m).

    >>> linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    column = _vectors(c, "toeplitz")
    row = jnp.conj(column) if r is None else _vectors(r, "toeplitz")
    column, row = _together(column, row, "toeplitz")
    n, m = column.shape[-1], row.shape[-1]
    if not n or not m:
        return jnp.zeros((*column.shape[:-1], n, m), column.dtype)
    line = concatenate([row[..., :0:-1], column], -1)
    return line[..., np.arange(n)[:, None] - np.arange(m) + m - 1]


def _together(x: Array, y: Array, what: str) -> tuple[Array, Array]:
    """Return two arrays in one dtype and of one batch, all axes but the last."""
    dtype, weak = pr.common_dtype((x, y), what)
    batch = pr.broadcast_shapes([x.shape[:-1], y.shape[:-1]], what)
    x, y = (broadcast_to(pr.converted(z, dtype, weak), (*batch, z.shape[-1])) for z in (x, y))
    return x, y


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrices with constant antidiagonals.

    Args:
        c: first columns, of shape (..., n).
        r: last rows, of shape (..., m), whose first element is not used; zeros by default.

    Returns:
        Array of shape (..., n, m).

    >>> linalg.hankel(jnp.array([1, 2]), jnp.array([2, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    column = _vectors(c, "hankel")
    row = jnp.zeros_like(column) if r is None else _vectors(r, "hankel")
    column, row = _together(column, row, "hankel")
    n, m = column.shape[-1], row.shape[-1]
    line = concatenate([column, row[..., 1:]], -1)
    return line[..., np.arange(n)[:, None] + np.arange(m)]


def circulant(c: ArrayLike) -> Array:
    """Return the matrices whose columns are rotations of the first one, of shape (..., n).

    >>> linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    column = _vectors(c, "circulant")
    places = np.arange(column.shape[-1])
    return column[..., (places[:, None] - places) % max(column.shape[-1], 1)]


def companion(a: ArrayLike) -> Array:
    """Return the companion matrices of polynomials of shape (..., n), highest power first.

    The first coefficient divides, also where it is 0. Raises IllTyped for fewer than 2.

    >>> linalg.companion(jnp.array([2.0, -4.0, 6.0]))
    Array([[ 2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    value = _vectors(a, "companion", 2)
    first = jnp.true_divide(jnp.negative(value[..., 1:]), value[..., :1])
    return _below(first[..., None, :], 1.0)


def _below(first: Array, diagonal: ArrayLike) -> Array:
    """Return square matrices of a first row, of shape (..., 1, n), and the diagonal below."""
    n = first.shape[-1]
    rest = jnp.multiply(jnp.eye(n - 1, n, dtype=first.dtype), diagonal)
    return concatenate([first, broadcast_to(rest, (*first.shape[:-2], n - 1, n))], -2)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Return the Leslie matrices: a first row, and the diagonal below the main one.

    Args:
        f: fecundities, of shape (..., n).
        s: survivals, of shape (..., n - 1).

    Returns:
        Array of shape (..., n, n).

    Raises:
        IllTyped: the sizes do not fit.

    >>> linalg.leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    first, diagonal = _together(_vectors(f, "leslie", 2), _vectors(s, "leslie"), "leslie")
    n = first.shape[-1]
    if diagonal.shape[-1] != n - 1:
        raise IllTyped("the survivals of leslie do not fit", f"{n - 1}", str(diagonal.type))
    return _below(first[..., None, :], diagonal[..., :, None])


def fiedler(a: ArrayLike) -> Array:
    """Return the matrices ``abs(a[i] - a[j])`` of vectors of shape (..., n).

    >>> linalg.fiedler(jnp.array([1, 4, 2]))
    Array([[0, 3, 1],
           [3, 0, 2],
           [1, 2, 0]], dtype=int32)
    """
    value = _vectors(a, "fiedler")
    return jnp.abs(jnp.subtract(value[..., :, None], value[..., None, :]))


def fiedler_companion(a: ArrayLike) -> Array:
    """Return Fiedler's companion matrices of polynomials of shape (..., n), highest power first.

    They have five diagonals. The first coefficient divides, also where it is 0. Raises IllTyped for
    no coefficients.

    Source: M. Fiedler, "A note on companion matrices" (2003).

    >>> linalg.fiedler_companion(jnp.array([2.0, -4.0, 6.0]))
    Array([[ 2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    value = _vectors(a, "fiedler_companion", 1)
    value = jnp.true_divide(value, value[..., :1])
    n = value.shape[-1] - 1
    if n <= 1:
        return jnp.negative(value[..., 1:])[..., None] if n else value[..., :0, None][..., :0]
    at, ones = np.zeros((n, n), int), np.zeros((n, n), bool)
    at[0, :2], ones[1, 0] = (1, 2), True
    # Coefficients are two to a row or two to a column, in turns; ones are two diagonals away.
    for k in range(2, n):
        here, there = ((k, k - 1), (k - 2, k)) if k % 2 == 0 else ((k - 1, k), (k, k - 2))
        at[here], ones[there] = k + 1, True
    return jnp.where(ones, 1, jnp.where(at > 0, jnp.negative(value[..., at]), 0))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Return the matrices whose product with a vector is its convolution with ``a``.

    Args:
        a: array of shape (..., m).
        n: size of the vectors.
        mode: "full", "same" or "valid", as in ``jnp.convolve``.

    Returns:
        Array of shape (..., k, n): k is n + m - 1, max(n, m) or max(n, m) - min(n, m) + 1.

    Raises:
        BadArgument: an unknown mode, or ``n`` is not positive.
        IllTyped: ``a`` has no axis, or no elements.

    >>> linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    if as_value(a, "the argument of convolution_matrix").ndim == 0:
        raise IllTyped("convolution_matrix takes vectors", "an axis or more", "a scalar")
    value, size = _vectors(a, "convolution_matrix", 1), _size(n, "convolution_matrix")
    m = value.shape[-1]
    least = min(size, m) - 1
    cuts = {"full": (0, 0), "same": (least // 2, least - least // 2), "valid": (least, least)}
    if mode not in cuts:
        raise BadArgument("unknown mode of convolution_matrix", "full, same or valid", repr(mode))
    before, after = cuts[mode]
    at = np.arange(before, size + m - 1 - after)[:, None] - np.arange(size)
    return jnp.where((at >= 0) & (at < m), value[..., at.clip(0, m - 1)], 0)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Return the matrix of the discrete Fourier transform.

    Args:
        n: size.
        scale: None, "sqrtn" for a unitary matrix, or "n".
        dtype: complex dtype; complex64 by default, or complex128 with 64 bits.

    Returns:
        Complex matrix.

    Raises:
        BadArgument: an unknown scale.

    >>> linalg.dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    size = static_int(n, "the size of dft")
    scales = {None: 1.0, "sqrtn": 1 / math.sqrt(max(size, 1)), "n": 1 / max(size, 1)}
    if scale not in scales:
        raise BadArgument("unknown scale of dft", "None, 'sqrtn' or 'n'", repr(scale))
    if dtype is not None and jnp.dtype(dtype).kind != "c":
        raise BadArgument("dtype must be complex", "complex64 or complex128", str(dtype))
    turns = np.outer(np.arange(size), np.arange(size)) % max(size, 1)
    values = np.exp(-2j * np.pi * turns / max(size, 1)) * scales[scale]
    return jnp.asarray(values, dtype)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Return Hadamard's matrix, of ones and minus ones, by Sylvester's construction.

    Args:
        n: size, a power of 2.
        dtype: dtype of the result.

    Returns:
        Matrix.

    Raises:
        BadArgument: the size is no power of 2.

    >>> linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    size = static_int(n, "the size of hadamard")
    if size < 1 or size & (size - 1):
        raise BadArgument("hadamard takes a power of 2", "1, 2, 4, 8, ...", str(size))
    found = np.ones((1, 1), int)
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return jnp.asarray(found, dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Return Helmert's matrix, whose rows are orthonormal contrasts.

    Args:
        n: size.
        full: whether to return the first row, which is constant, as well.

    Returns:
        Array of shape (n - 1, n), or (n, n).

    Raises:
        BadArgument: the size is not positive.

    >>> linalg.helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    size = _size(n, "helmert")
    found = np.tril(np.ones((size, size)), -1) - np.diag(np.arange(size, dtype=float))
    found[0] = 1
    scale = np.arange(size) * np.arange(1.0, size + 1)
    scale[0] = size
    return jnp.asarray(found / np.sqrt(scale)[:, None], float)[0 if full else 1 :]


def hilbert(n: int) -> Array:
    """Return the Hilbert matrix ``1 / (i + j + 1)``.

    >>> linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    places = np.arange(static_int(n, "the size of hilbert"))
    return jnp.asarray(1 / (places[:, None] + places + 1.0), float)


def _exact(entries: list[list[int]], dtype: DTypeLike = float) -> Array:
    n = len(entries)
    return jnp.asarray(np.array(entries, object).astype(float).reshape(n, n), dtype)


def invhilbert(n: int) -> Array:
    """Return the inverse of the Hilbert matrix, rounded from exact integers.

    >>> linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    size, choose = static_int(n, "the size of invhilbert"), math.comb

    def entry(i: int, j: int) -> int:
        sizes: int = choose(size + i, size - j - 1) * choose(size + j, size - i - 1)
        sign = -1 if (i + j) % 2 else 1
        return sign * (i + j + 1) * sizes * choose(i + j, i) ** 2

    return _exact([[entry(i, j) for j in range(size)] for i in range(size)])


def _pascal(n: int, kind: str | None, what: str, sign: int) -> Array:
    size = static_int(n, f"the size of {what}")
    kinds = (None, "symmetric", "lower", "upper")
    if kind not in kinds:
        raise BadArgument(f"unknown kind of {what}", "lower, upper or symmetric", repr(kind))
    low = [[sign ** (i + j) * math.comb(i, j) for j in range(size)] for i in range(size)]
    if kind == "lower":
        return _exact(low)
    up = [list(row) for row in zip(*low, strict=True)]
    if kind == "upper":
        return _exact(up)
    # The inverse of L·U is the product of the inverses in the other order.
    first, second = (low, up) if sign > 0 else (up, low)
    return _exact(
        [
            [sum(map(int.__mul__, row, column)) for column in zip(*second, strict=True)]
            for row in first
        ]
    )


def pascal(n: int, kind: str | None = None) -> Array:
    """Return the matrix of binomial coefficients.

    Args:
        n: size.
        kind: "lower", "upper", or "symmetric" for their product, which is the default.

    Returns:
        Floating matrix.

    Raises:
        BadArgument: an unknown kind.

    >>> linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    return _pascal(n, kind, "pascal", 1)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of the matrix of binomial coefficients, rounded from exact integers.

    Args:
        n: size.
        kind: "lower", "upper", or "symmetric", which is the default.

    Returns:
        Floating matrix.

    Raises:
        BadArgument: an unknown kind.

    >>> linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _pascal(n, kind, "invpascal", -1)
