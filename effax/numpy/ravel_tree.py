"""Trees as vectors, for code that wants one array of parameters."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeVar, cast

import effax.numpy as jnp
from effax import tree
from effax.arrays.device_array import Array, as_value
from effax.ir.dtypes import DType, is_complex
from effax.ir.errors import IllTyped

__all__ = ["ravel_pytree"]

T = TypeVar("T")


def ravel_pytree(pytree: T) -> tuple[Array, Callable[[Array], T]]:
    """All numbers of a tree as one vector, and the function that makes the tree of such a vector.

    ::

        flat, unravel = ravel_pytree({"b": jnp.zeros(2), "w": jnp.ones((2, 2))})
        flat  # [0. 0. 1. 1. 1. 1.]
        unravel(2 * flat)  # {'b': [0. 0.], 'w': [[2. 2.] [2. 2.]]}

    Args:
        pytree: a tree of arrays and numbers; the vector has the dtype to which theirs promote.

    Returns:
        The vector, leaves in order, each in row-major order; and its inverse, which gives leaves
        of the shapes and dtypes that they had.

    Raises:
        IllTyped: a leaf is no array; when called, what is given is not such a vector.
    """
    leaves, treedef = tree.flatten(pytree)
    arrays = [as_value(leaf, "a leaf of ravel_pytree") for leaf in leaves]
    types = [(x.shape, x.dtype) for x in arrays]
    flat = jnp.concatenate([x.ravel() for x in arrays]) if arrays else jnp.zeros(0)
    size = flat.shape[0]

    def unravel(vector: Array) -> T:
        given = as_value(vector, "the argument of unravel")
        if given.shape != (size,) or given.dtype != flat.dtype:
            raise IllTyped(
                "unravel takes a vector like the one that ravel_pytree gave",
                expected=f"{flat.dtype}[{size}]",
                found=f"{given.dtype}{list(given.shape)}",
            )
        parts, start = [], 0
        for shape, dtype in types:
            end = start + prod(shape)
            parts.append(_cast(given[start:end].reshape(shape), dtype))
            start = end
        return cast(T, tree.unflatten(treedef, parts))

    return flat, unravel


def _cast(x: Array, dtype: DType) -> Array:
    """What was promoted, as it was: the imaginary part of what was real is left out."""
    kept = x.real if is_complex(x.dtype) and not is_complex(dtype) else x
    return kept.astype(dtype)
