"""Sparse linear algebra: the module ``linalg``."""

from effax.scipy.sparse import linalg as linalg

__all__ = ["linalg"]
