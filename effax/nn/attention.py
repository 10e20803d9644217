"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from effax import lax
from effax import numpy as jnp
from effax.api.remat import checkpoint
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
        implementation: None or "xla"; "cudnn", by JAX's name, for memory that is linear in the
            number of queries and of keys, in derivatives too: blocks of queries in sequence.
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
    if implementation not in (None, "xla", "cudnn"):
        raise BadArgument(
            "unknown implementation of attention", "None, 'xla' or 'cudnn'", repr(implementation)
        )
    q, k, v = (_batched(x, name) for x, name in ((query, "query"), (key, "key"), (value, "value")))
    _check(q, k, v)
    keys, values = (repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    masks = _Masks(is_causal, local_window_size, query_seq_lengths, key_value_seq_lengths)
    rows = jnp.arange(q.shape[1])
    parts = [
        q,
        *(None if x is None else _batched(x, n) for x, n in ((bias, "bias"), (mask, "mask"))),
    ]

    def attend(q: Array, bias: Array | None, mask: Array | None, rows: Array) -> _Rows:
        return _rows(q, keys, values, bias, mask, rows, scale, masks)

    blockwise = implementation == "cudnn" and q.shape[1] > BLOCK
    made, residual = (_in_blocks if blockwise else _at_once)(attend, parts, rows)
    made = made.reshape(np.shape(as_value(query)))
    return (made, residual.reshape(made.shape[:-1])) if return_residual else made


BLOCK: Final = 128
"""The number of queries in a block."""

_Rows = tuple[Array, Array]
"""Results of some queries, and the logs of their sums of exponentials."""

_Attend = Callable[[Array, Array | None, Array | None, Array], _Rows]


class _Masks(NamedTuple):
    """The masks that are functions of the positions of a query and a key."""

    is_causal: bool
    window: int | Sequence[int] | None
    query_lengths: ArrayLike | None
    key_lengths: ArrayLike | None

    def of(self, rows: Array, shape: Shape) -> list[Array]:
        """Return the masks of queries at these positions; all hold."""
        found, columns = [], np.arange(shape[3])
        at = rows[:, None]
        if self.is_causal:
            found.append(at >= columns)
        if self.window is not None:
            left, right = (self.window,) * 2 if isinstance(self.window, int) else self.window
            found.append((at <= columns + left) & (at >= columns - right))
        if self.query_lengths is not None:
            found.append(_within(self.query_lengths, shape, at))
        if self.key_lengths is not None:
            found.append(_within(self.key_lengths, shape, columns))
        return found


def _rows(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    mask: Array | None,
    rows: Array,
    scale: float | None,
    masks: _Masks,
) -> _Rows:
    """Return the results of queries at these positions."""
    logits = _products(q, k, scale)
    if bias is not None:
        logits = (logits + bias).astype(logits.dtype)
    keep = masks.of(rows, logits.shape)
    if mask is not None:
        if mask.dtype != BOOL:
            raise IllTyped("a mask has booleans", found=str(mask.type))
        keep = [mask, *keep]
    least = -0.7 * float(np.finfo(np.float32).max)
    for part in keep:
        logits = jnp.where(part, logits, least)
    logits = logits.astype(jnp.promote_types(logits.dtype, np.float32))
    weights = softmax(logits, -1).astype(k.dtype)
    made = jnp.einsum("bnts,bsnh->btnh", weights, v)
    if masks.query_lengths is not None:
        used = _within(masks.query_lengths, logits.shape, rows[:, None])
        made = jnp.where(jnp.moveaxis(used, 1, 2), made, 0)
    return made, jnp.swapaxes(logsumexp(logits, -1), 1, 2).astype(k.dtype)


def _at_once(attend: _Attend, parts: Sequence[Array | None], rows: Array) -> _Rows:
    q, bias, mask = parts
    assert q is not None
    return attend(q, bias, mask, rows)


def _in_blocks(attend: _Attend, parts: Sequence[Array | None], rows: Array) -> _Rows:
    """Attend from one block of queries after another; derivatives compute each block again."""
    n = rows.shape[0]
    # The last block ends at the last query, and repeats some of the block before it.
    starts = np.minimum(np.arange(0, n, BLOCK), n - BLOCK)

    def block(start: Array) -> _Rows:
        def part(x: Array | None, axis: int) -> Array | None:
            if x is None or x.shape[axis] == 1:
                return x
            return lax.dynamic_slice_in_dim(x, start, BLOCK, axis)

        q, bias, mask = (part(x, axis) for x, axis in zip(parts, (1, 2, 2), strict=True))
        assert q is not None
        return attend(q, bias, mask, start + np.arange(BLOCK))

    found = lax.map(checkpoint(block), jnp.asarray(starts))
    whole, rest = n // BLOCK, n % BLOCK

    def joined(x: Array) -> Array:
        full = jnp.moveaxis(x[:whole], 0, 1)
        full = full.reshape(full.shape[0], whole * BLOCK, *full.shape[3:])
        return jnp.concatenate([full, x[whole, :, BLOCK - rest :]], 1) if rest else full

    return joined(found[0]), joined(found[1])


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


def _within(lengths: ArrayLike, shape: Shape, places: Array | np.ndarray) -> Array:
    """Return which positions are within the length of their batch element."""
    given = as_value(lengths, "lengths")
    if given.shape != shape[:1]:
        raise IllTyped("there is one length a batch element", f"({shape[0]},)", str(given.shape))
    return jnp.asarray(places) < given.reshape(-1, 1, 1, 1)
