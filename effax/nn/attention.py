"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from effax import numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.shapes import expand_dims
from effax.ir.dtypes import BOOL, DType
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import Shape
from effax.nn.normalization import logsumexp, softmax
from effax.numpy.join import repeat

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """Return averages of values, weighted by the softmax of products of queries and keys.

    Args:
        query: array of shape (batch, target, heads, size), or without the batch.
        key: array of shape (batch, source, groups, size); the heads are a multiple of the groups.
        value: array of the shape of ``key``.
        bias: added to the products; broadcasts to (batch, heads, target, source).
        mask: booleans that broadcast likewise; False leaves a key out.
        scale: factor of the products, ``1 / sqrt(size)`` by default.
        is_causal: whether a query attends to no key after it.
        query_seq_lengths: int32 lengths of queries, of shape (batch,); results beyond are 0.
        key_value_seq_lengths: int32 lengths of keys and values, of shape (batch,).
        local_window_size: numbers of keys to the left and right to which a query attends.
        implementation: None or "xla".
        return_residual: whether the log of the sum of exponentials is returned too.

    Returns:
        Array of the shape of ``query``; with ``return_residual`` a pair of it and an array of its
        shape without the last axis.

    Raises:
        IllTyped: shapes or dtypes do not fit.
        BadArgument: another implementation.

    Source: Vaswani et al., "Attention is all you need" (2017).

    >>> x = jnp.ones((3, 1, 2))
    >>> nn.dot_product_attention(x, x, x, is_causal=True).shape
    (3, 1, 2)
    """
    if implementation not in (None, "xla"):
        raise BadArgument(
            "unknown implementation of attention", "None or 'xla'", repr(implementation)
        )
    q, k, v = (_batched(x, name) for x, name in ((query, "query"), (key, "key"), (value, "value")))
    _check(q, k, v)
    logits = _products(q, repeat(k, q.shape[2] // k.shape[2], 2), scale)
    if bias is not None:
        logits = (logits + _batched(bias, "bias")).astype(logits.dtype)
    keep = _mask(logits.shape, mask, is_causal, local_window_size)
    for lengths, axis in ((query_seq_lengths, 2), (key_value_seq_lengths, 3)):
        if lengths is not None:
            keep = [*keep, _within(lengths, logits.shape, axis)]
    least = -0.7 * float(np.finfo(np.float32).max)
    for part in keep:
        logits = jnp.where(part, logits, least)
    logits = logits.astype(jnp.promote_types(logits.dtype, np.float32))
    weights = softmax(logits, -1).astype(k.dtype)
    made = jnp.einsum("bnts,bsnh->btnh", weights, repeat(v, q.shape[2] // v.shape[2], 2))
    if query_seq_lengths is not None:
        used = _within(query_seq_lengths, logits.shape, 2)
        made = jnp.where(jnp.moveaxis(used, 1, 2), made, 0)
    made = made.reshape(np.shape(as_value(query)))
    if not return_residual:
        return made
    residual = jnp.swapaxes(logsumexp(logits, -1), 1, 2).astype(k.dtype)
    return made, residual.reshape(made.shape[:-1])


def _batched(x: ArrayLike, name: str) -> Array:
    """Return an array of four axes, the first ones of length 1 where it has less."""
    array = as_value(x, name)
    if not 0 < array.ndim <= 4:
        raise IllTyped(f"{name} has four axes, or three without the batch", found=str(array.type))
    return expand_dims(array, tuple(range(4 - array.ndim)))


def _check(q: Array, k: Array, v: Array) -> None:
    """Raise IllTyped unless the queries, keys and values fit."""
    same = k.shape == v.shape and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3]
    if not same or q.shape[2] % k.shape[2] or len({q.dtype, k.dtype, v.dtype}) > 1:
        raise IllTyped(
            "the shapes or dtypes of query, key and value do not fit",
            expected="one dtype, (b, t, n, h), (b, s, m, h) and (b, s, m, h), where m divides n",
            found=f"{q.type}, {k.type}, {v.type}",
        )


def _products(q: Array, k: Array, scale: float | None) -> Array:
    wide: DType = jnp.promote_types(q.dtype, np.float32)
    logits = jnp.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=wide)
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else scale
    return logits * jnp.asarray(factor, wide)


def _mask(
    shape: Shape,
    mask: ArrayLike | None,
    is_causal: bool,
    window: int | Sequence[int] | None,
) -> list[Array]:
    """Return the masks of pairs of a query and a key; all hold."""
    found = []
    rows, columns = np.arange(shape[2])[:, None], np.arange(shape[3])
    if mask is not None:
        given = _batched(mask, "mask")
        if given.dtype != BOOL:
            raise IllTyped("a mask has booleans", found=str(given.type))
        found.append(given)
    if is_causal:
        found.append(jnp.asarray(rows >= columns))
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        found.append(jnp.asarray((rows <= columns + left) & (rows >= columns - right)))
    return found


def _within(lengths: ArrayLike, shape: Shape, axis: int) -> Array:
    """Return which positions along an axis are within the length of their batch element."""
    given = as_value(lengths, "lengths")
    if given.shape != shape[:1]:
        raise IllTyped("there is one length a batch element", f"({shape[0]},)", str(given.shape))
    places = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(4)])
    return jnp.asarray(places) < given.reshape(-1, 1, 1, 1)
