"""Sparse arrays of zeros and ones."""

from __future__ import annotations

from collections.abc import Sequence

import effax.numpy as jnp
from effax.arrays.array import DTypeLike
from effax.experimental.sparse.bcoo import BCOO

__all__ = ["empty", "eye"]


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> BCOO:  # noqa: N803  NumPy's names
    """Return the sparse array with ones on a diagonal.

    >>> from effax.experimental import sparse
    >>> sparse.eye(2, k=1).indices
    Array([[0, 1]], dtype=int32)
    """
    m = N if M is None else M
    n = max(min(N + min(k, 0), m - max(k, 0)), 0)
    rows = jnp.arange(n) - min(k, 0)
    return BCOO((jnp.ones(n, dtype), jnp.stack([rows, rows + k], -1)), shape=(N, m))


def empty(shape: Sequence[int], dtype: DTypeLike = float, *, nse: int = 0) -> BCOO:
    """Return a sparse array of zeros: all its elements are padding.

    >>> from effax.experimental import sparse
    >>> sparse.empty((2, 3)).nse
    0
    """
    sizes = jnp.broadcast_to(jnp.array(tuple(shape), "int32"), (nse, len(shape)))
    return BCOO((jnp.zeros(nse, dtype), sizes), shape=shape)
