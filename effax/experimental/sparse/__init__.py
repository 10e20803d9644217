"""Sparse arrays of coordinates in batches, as pytrees of elements and their indices."""

from __future__ import annotations

from effax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_fromdense,
    bcoo_multiply_dense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    todense,
)
from effax.experimental.sparse.construction import empty, eye
from effax.experimental.sparse.derivatives import grad, value_and_grad

__all__ = [
    "BCOO", "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_sort_indices", "bcoo_sum_duplicates",
    "bcoo_todense", "bcoo_transpose", "empty", "eye", "grad", "todense", "value_and_grad",
]  # fmt: skip
