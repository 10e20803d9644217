"""Vector quantization."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import IllTyped
from effax.numpy.index import take_along_axis

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the nearest code of each observation, and its distance.

    Args:
        obs: observations, of shape (m, n), or (m,) for numbers.
        code_book: codes, of shape (k, n), or (k,).
        check_finite: accepted as in SciPy, without effect.

    Returns:
        ``(codes, distances)``, of shape (m,).

    Raises:
        IllTyped: shapes do not fit, or there are no codes.

    >>> vq.vq(jnp.array([0.2, 3.1]), jnp.array([0.0, 3.0]))[0]
    Array([0, 1], dtype=int32)
    """
    dtype = jnp.result_type(float, obs, code_book)
    points, codes = jnp.asarray(obs, dtype=dtype), jnp.asarray(code_book, dtype=dtype)
    if (
        points.ndim != codes.ndim
        or points.ndim not in (1, 2)
        or points.shape[1:] != codes.shape[1:]
    ):
        raise IllTyped(
            "obs and code_book do not fit", "(m, n) and (k, n)", f"{points.type}, {codes.type}"
        )
    if points.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    if not codes.shape[0]:
        raise IllTyped("the code book is empty", "one code or more", str(codes.type))
    off = points[:, None, :] - codes[None, :, :]
    squares = jnp.sum(jnp.real(off * jnp.conj(off)), -1)
    nearest = jnp.argmin(squares, -1)
    least = take_along_axis(squares, nearest[:, None], -1)[:, 0]
    zero = least == 0
    return nearest, jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, least)))
