"""Sparse arrays of coordinates in batches, as pytrees of elements and their indices."""

from __future__ import annotations

from effax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_fromdense,
    bcoo_multiply_dense,
    bcoo_todense,
    bcoo_transpose,
    todense,
)
from effax.experimental.sparse.construction import empty, eye
from effax.experimental.sparse.derivatives import grad, value_and_grad
from effax.experimental.sparse.duplicates import bcoo_sort_indices, bcoo_sum_duplicates
from effax.experimental.sparse.products import bcoo_dot_general, bcoo_multiply_sparse
from effax.experimental.sparse.structure import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from effax.experimental.sparse.transform import sparsify

__all__ = [
    "BCOO", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dynamic_slice",
    "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum",
    "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "empty", "eye", "grad", "sparsify",
    "todense", "value_and_grad",
]  # fmt: skip
