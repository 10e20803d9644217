"""Statistics of samples: the most frequent value, ranks, and the error of the mean."""

from __future__ import annotations

import math
from typing import NamedTuple

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.conversion import as_value
from effax.ir.errors import BadArgument
from effax.numpy.index import take_along_axis
from effax.numpy.predicates import isnan

__all__ = ["ModeResult", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]  # SciPy's name hides a method of tuples


def _checked(nan_policy: str, what: str, choices: tuple[str, ...] = ("propagate",)) -> None:
    if nan_policy not in choices:
        raise BadArgument(f"unknown nan_policy of {what}", " or ".join(choices), repr(nan_policy))


def _along(a: ArrayLike, axis: int | None, what: str) -> tuple[Array, int]:
    value = as_value(a, f"the argument of {what}")
    if axis is None:
        value, axis = jnp.ravel(value), 0
    return value, plain_axis(axis, value.ndim, what)


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most frequent values along ``axis``, the smallest of several.

    Args:
        a: array.
        axis: axis; None for all elements.
        nan_policy: "propagate"; nan is a value, greater than all others.
        keepdims: whether the axis remains with size 1.

    Returns:
        ModeResult of arrays without the axis; values are nan, and counts 0, of an empty axis.

    Raises:
        BadArgument: an unknown policy.

    >>> stats.mode(jnp.array([2, 1, 2, 1, 3]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    _checked(nan_policy, "mode")
    value, place = _along(a, axis, "mode")
    last = jnp.moveaxis(value, place, -1)
    n = last.shape[-1]
    if not n:
        found = jnp.full(last.shape[:-1], math.nan)
        count = jnp.zeros(last.shape[:-1], int)
    else:
        ordered = jnp.sort(last, axis=-1)
        places = jnp.arange(n)
        first = jnp.broadcast_to(places == 0, ordered.shape)
        changed = _differ(ordered[..., 1:], ordered[..., :-1])
        first = jnp.concatenate([first[..., :1], changed], -1)
        start = _running_start(first, places)
        lengths = places - start + 1
        best = jnp.argmax(lengths, -1)
        found = take_along_axis(ordered, best[..., None], -1)[..., 0]
        count = jnp.max(lengths, -1)
    if keepdims:
        shape = (1,) * jnp.ndim(a) if axis is None else None
        found, count = (
            jnp.reshape(y, shape) if shape is not None else jnp.expand_dims(y, place)
            for y in (found, count)
        )
    return ModeResult(found, count)


def _differ(x: Array, y: Array) -> Array:
    return (x != y) & ~(isnan(x) & isnan(y))


def _running_start(first: Array, places: Array) -> Array:
    """Return, for each place, the last one at which a run of equal elements starts."""
    from effax.lax import cummax

    return cummax(jnp.where(first, places, 0), axis=first.ndim - 1)


def rankdata(
    a: ArrayLike,
    method: str = "average",
    *,
    axis: int | None = None,
    nan_policy: str = "propagate",
) -> Array:
    """Return the ranks of elements, from 1 on.

    Args:
        a: array.
        method: rank of equal elements: "average", "min", "max", "dense", or "ordinal".
        axis: axis; None ranks all elements as one list.
        nan_policy: "propagate".

    Returns:
        Floating array of the shape of ``a``, a vector for axis None; nan along an axis with nan.

    Raises:
        BadArgument: an unknown method or policy.

    >>> stats.rankdata(jnp.array([3, 1, 3]))
    Array([2.5, 1. , 2.5], dtype=float32)
    """
    methods = ("average", "min", "max", "dense", "ordinal")
    if method not in methods:
        raise BadArgument("unknown method of rankdata", ", ".join(methods), repr(method))
    _checked(nan_policy, "rankdata")
    value, place = _along(a, axis, "rankdata")
    last = jnp.moveaxis(value, place, -1)
    dtype = jnp.result_type(float)
    if not last.size:
        return jnp.zeros(value.shape, dtype)
    order = jnp.argsort(last, axis=-1)
    ordered = take_along_axis(last, order, -1)
    n = last.shape[-1]
    places = jnp.arange(n)
    edge = jnp.ones((*last.shape[:-1], 1), bool)
    first = jnp.concatenate([edge, ordered[..., 1:] != ordered[..., :-1]], -1)
    if method == "ordinal":
        ranks = jnp.broadcast_to(places + 1, last.shape).astype(dtype)
    elif method == "dense":
        ranks = jnp.cumsum(first.astype(int), -1).astype(dtype)
    else:
        low = _running_start(first, places) + 1
        backwards = jnp.concatenate([first[..., 1:], edge], -1)[..., ::-1]
        high = n - _running_start(backwards, places)[..., ::-1]
        both = {"min": low + low, "max": high + high, "average": low + high}
        ranks = both[method].astype(dtype) / 2
    back = take_along_axis(ranks, jnp.argsort(order, axis=-1), -1)
    back = jnp.where(jnp.any(isnan(last), -1, keepdims=True), math.nan, back)
    return jnp.moveaxis(back, -1, place)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Return the standard error of the mean, ``std(a, axis, ddof) / sqrt(n)``.

    Args:
        a: array.
        axis: axis; None for all elements.
        ddof: subtracted from the number of elements in the divisor of the variance.
        nan_policy: "propagate", or "omit" to leave out nan.
        keepdims: whether the axis remains with size 1.

    Returns:
        Floating array without the axis.

    Raises:
        BadArgument: an unknown policy.

    >>> stats.sem(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    _checked(nan_policy, "sem", ("propagate", "omit"))
    value = as_value(a, "the argument of sem")
    if nan_policy == "omit":
        spread = jnp.nanstd(value, axis, ddof=ddof, keepdims=keepdims)
        count = jnp.sum(~isnan(value), axis, keepdims=keepdims)
    else:
        spread = jnp.std(value, axis, ddof=ddof, keepdims=keepdims)
        count = jnp.asarray(value.size if axis is None else value.shape[axis])
    return spread / jnp.sqrt(count.astype(spread.dtype))
