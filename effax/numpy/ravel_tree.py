"""Flattening of trees into one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Generic, TypeVar, cast

import effax.numpy as jnp
from effax import tree
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.ir.dtypes import DType, is_complex
from effax.ir.errors import IllTyped
from effax.ir.types import Shape
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTreeDef

__all__ = ["ravel_pytree"]

T = TypeVar("T")


def ravel_pytree(pytree: T) -> tuple[Array, Callable[[Array], T]]:
    """Return the elements of a tree as one vector, and the inverse function.

    ::

        flat, unravel = ravel_pytree({"b": jnp.zeros(2), "w": jnp.ones((2, 2))})
        flat  # [0. 0. 1. 1. 1. 1.]
        unravel(2 * flat)  # {'b': [0. 0.], 'w': [[2. 2.] [2. 2.]]}

    Args:
        pytree: tree of arrays and numbers, whose dtypes promote to that of the vector.

    Returns:
        The vector, leaves in order, each in row-major order; and its inverse, which restores
        shapes and dtypes. Where all leaves have one dtype, the inverse takes vectors of any dtype,
        and returns leaves of that.

    Raises:
        IllTyped: a leaf is not an array; or the inverse is called with a vector of another size,
            or of another dtype than that to which the dtypes of the leaves promoted.
    """
    leaves, treedef = tree.flatten(pytree)
    arrays = [as_value(leaf, "a leaf of ravel_pytree") for leaf in leaves]
    types = tuple([(x.shape, x.dtype) for x in arrays])
    flat = jnp.concatenate([x.ravel() for x in arrays]) if arrays else jnp.zeros(0)
    return flat, _Unravel(treedef, types, flat.shape[0], flat.dtype)


@dataclass(frozen=True)
class _Unravel(Generic[T]):
    """The inverse of :func:`ravel_pytree` for trees of one structure; equal for equal ones."""

    treedef: PyTreeDef
    types: tuple[tuple[Shape, DType], ...]
    size: int
    dtype: DType

    def __call__(self, vector: Array) -> T:
        given = as_value(vector, "the argument of unravel")
        mixed = any(dtype != self.dtype for _, dtype in self.types)
        if given.shape != (self.size,) or (mixed and given.dtype != self.dtype):
            raise IllTyped(
                "unravel takes a vector of the type that ravel_pytree returned",
                expected=f"{self.dtype}[{self.size}]",
                found=f"{given.dtype}{list(given.shape)}",
                remedy=f"convert the vector first: `vector.astype('{self.dtype}')`"
                if given.shape == (self.size,)
                else None,
            )
        parts, start = [], 0
        for shape, dtype in self.types:
            end = start + prod(shape)
            part = given[start:end].reshape(shape)
            parts.append(_cast(part, dtype) if mixed else part)
            start = end
        return cast(T, tree.unflatten(self.treedef, parts))


def _cast(x: Array, dtype: DType) -> Array:
    """Undo a promotion: drop the imaginary part of a value that was real."""
    kept = x.real if is_complex(x.dtype) and not is_complex(dtype) else x
    return kept.astype(dtype)
