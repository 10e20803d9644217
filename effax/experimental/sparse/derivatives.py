"""Gradients of functions of sparse arrays, which are sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from effax import tree
from effax.api.autodiff import value_and_grad as _value_and_grad
from effax.arrays.array import Array
from effax.experimental.sparse.bcoo import BCOO, is_sparse
from effax.tree import PyTree

__all__ = ["grad", "value_and_grad"]


def grad(
    fun: Callable[..., object], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., PyTree]:
    """Return the gradient of a function, which is sparse for sparse arguments.

    >>> from effax.experimental import sparse
    >>> sparse.grad(lambda m: (m @ jnp.array([2.0, 3.0])).sum())(sparse.eye(2)).data
    Array([2., 3.], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux)

    def gradient(*args: object) -> PyTree:
        value, found = both(*args)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(
    fun: Callable[..., object], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., PyTree]:
    """Return the value and the gradient of a function; the latter is sparse for sparse arguments.

    >>> from effax.experimental import sparse
    >>> sparse.value_and_grad(lambda m: m.sum())(sparse.eye(2))[0]
    Array(2., dtype=float32)
    """

    def differentiated(*args: object) -> PyTree:
        elements = tree.map(_elements, args, is_leaf=is_sparse)

        def of_elements(*given: object) -> object:
            return fun(*tree.map(_restored, args, given, is_leaf=is_sparse))

        places = argnums if isinstance(argnums, int) else tuple(argnums)
        value, found = _value_and_grad(of_elements, places, has_aux)(*elements)
        chosen = args[places] if isinstance(places, int) else tuple([args[i] for i in places])
        return value, tree.map(_restored, chosen, found, is_leaf=is_sparse)

    return differentiated


def _elements(x: object) -> object:
    return x.data if isinstance(x, BCOO) else x


def _restored(x: object, data: object) -> object:
    return x.with_data(cast(Array, data)) if isinstance(x, BCOO) else data
