"""Logarithms of sums of exponentials, and softmax, as in ``nn``."""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike, Axis
from effax.nn import normalization as _nn
from effax.nn.normalization import logsumexp

__all__ = ["log_softmax", "logsumexp", "softmax"]


def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Return ``exp(x) / sum(exp(x), axis)``.

    Args:
        x: array or scalar.
        axis: axis or axes to normalize; None for all.

    Returns:
        Inexact array of the shape of ``x``.

    >>> special.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    return _nn.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Return ``log(softmax(x, axis))``.

    Args:
        x: array or scalar.
        axis: axis or axes to normalize; None for all.

    Returns:
        Inexact array of the shape of ``x``.

    >>> special.log_softmax(jnp.array([0.0, -jnp.inf]))
    Array([  0., -inf], dtype=float32)
    """
    return _nn.log_softmax(x, axis)
