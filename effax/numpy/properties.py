"""Shapes of arrays, and predicates on their types."""

from __future__ import annotations

import math

import numpy as np

from effax.arrays.array import Array, Axis
from effax.arrays.axes import plain_axes
from effax.arrays.conversion import own_array
from effax.arrays.creation import asarray
from effax.numpy.dtypes import complexfloating, issubdtype, result_type

__all__ = [
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "iterable",
    "ndim",
    "shape",
    "size",
]


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


def size(a: object, axis: Axis = None) -> int:
    """Return the number of elements of ``a`` along all axes, or along some.

    Args:
        a: array or scalar.
        axis: axis or axes to count along; None for all.

    Returns:
        Python int.

    Raises:
        BadArgument: an axis is out of range or repeats.

    >>> jnp.size(jnp.ones((2, 3)))
    6
    """
    sizes = shape(a)
    return math.prod(sizes[i] for i in plain_axes(axis, len(sizes), "size"))


def iscomplexobj(x: object) -> bool:
    """Return whether the dtype of ``x`` is complex.

    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    if x is None or isinstance(x, list | tuple):
        return any(map(iscomplexobj, x or ()))
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
    if np.isscalar(element):
        return True
    own = element if isinstance(element, Array | np.ndarray) else own_array(element)
    return isinstance(own, Array | np.ndarray) and not own.shape


def iterable(y: object) -> bool:
    """Return whether a value has elements; an array without axes has none.

    >>> jnp.iterable([1]), jnp.iterable(jnp.float32(1))
    (True, False)
    """
    return bool(np.iterable(y))
