"""Shapes of arrays, and predicates on their types."""

from __future__ import annotations

import numpy as np

from effax.arrays.array import Array
from effax.arrays.creation import asarray
from effax.numpy.dtypes import complexfloating, issubdtype, result_type

__all__ = ["iscomplexobj", "isrealobj", "isscalar", "ndim", "shape", "size"]


def ndim(a: object) -> int:
    """Return the number of axes of ``a``.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(shape(a))


def shape(a: object) -> tuple[int, ...]:
    """Return the sizes of the axes of ``a``.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    found = getattr(a, "shape", None)
    return tuple(asarray(a).shape if found is None else found)


def size(a: object, axis: int | None = None) -> int:
    """Return the number of elements of ``a``, or its size along an axis.

    Args:
        a: array or scalar.
        axis: axis; None for the number of elements.

    Returns:
        Python int.

    >>> jnp.size(jnp.ones((2, 3)))
    6
    """
    sizes = shape(a)
    return int(np.prod(sizes, dtype=int)) if axis is None else sizes[axis]


def iscomplexobj(x: object) -> bool:
    """Return whether the dtype of ``x`` is complex.

    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    return issubdtype(result_type(x), complexfloating)


def isrealobj(x: object) -> bool:
    """Return whether the dtype of ``x`` is not complex.

    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> bool:
    """Return whether ``element`` is a number or an array without axes.

    >>> jnp.isscalar(jnp.array(1.0))
    True
    """
    return np.isscalar(element) or (isinstance(element, Array) and not element.shape)
