"""Convolution and correlation of vectors."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.shapes import flip, reshape
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf

__all__ = [
    "convolve", "correlate",
]  # fmt: skip


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the convolution of two vectors, ``c[k] = sum_n a[n] * v[k - n]``.

    Args:
        a: vector.
        v: vector.
        mode: "full" for all k with a term, "same" for the size of the longer vector, "valid" for
            complete overlap.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        1-D inexact array.

    Raises:
        IllTyped: an operand is not a vector, or is empty.
        BadArgument: an unknown mode.

    >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]))
    Array([1., 5., 6.], dtype=float32)
    """
    x, w = _vectors(a, v, "convolve")
    if x.size < w.size:
        x, w = w, x
    return _slid(x, flip(w, 0), mode, "convolve", precision, preferred_element_type)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the correlation of two vectors, ``c[k] = sum_n a[n + k] * conj(v[n])``.

    Args:
        a: vector.
        v: vector.
        mode: "valid", "same" or "full", see :func:`convolve`.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        1-D inexact array.

    Raises:
        IllTyped: an operand is not a vector, or is empty.
        BadArgument: an unknown mode.

    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([3., 5.], dtype=float32)
    """
    x, w = _vectors(a, v, "correlate")
    w = uf.conj(w)
    if x.size < w.size:
        made = _slid(w, x, mode, "correlate", precision, preferred_element_type)
        return flip(made, 0)
    return _slid(x, w, mode, "correlate", precision, preferred_element_type)


def _vectors(a: ArrayLike, v: ArrayLike, what: str) -> tuple[Array, Array]:
    x, w = pr.in_common_dtype((a, v), what, must_be_inexact=True)
    if x.ndim != 1 or w.ndim != 1 or not x.size or not w.size:
        raise IllTyped(
            f"{what} takes two vectors of positive size", "1 axis each", f"{x.type}, {w.type}"
        )
    return x, w


def _slid(
    x: Array, w: Array, mode: str, what: str, precision: object, dtype: DTypeLike | None
) -> Array:
    """Return the products of the shorter vector ``w`` with windows of ``x``."""
    from effax.lax.convolution import conv_general_dilated

    k = w.size
    pads = {"full": (k - 1, k - 1), "same": (k // 2, k - k // 2 - 1), "valid": (0, 0)}
    if mode not in pads:
        raise BadArgument(f"unknown mode of {what}", "full, same or valid", repr(mode))
    found = conv_general_dilated(
        reshape(x, (1, 1, -1)),
        reshape(w, (1, 1, -1)),
        (1,),
        [pads[mode]],
        precision=precision,
        preferred_element_type=dtype,
    )
    return reshape(found, (-1,))
