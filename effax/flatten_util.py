"""Trees as vectors, for code that wants one array of parameters."""

from __future__ import annotations

from effax.numpy.ravel_tree import ravel_pytree

__all__ = ["ravel_pytree"]
