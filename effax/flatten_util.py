"""Flattening of pytrees of arrays to vectors."""

from __future__ import annotations

from effax.numpy.ravel_tree import ravel_pytree

__all__ = ["ravel_pytree"]
