"""Random bits, uniform samples, and samples of two values."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import broadcast_to, slice_along
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import DType, family, int_bounds, is_float
from effax.ir.errors import IllTyped
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.rng import bits_of_unit, unit_of_bits
from effax.numpy import arithmetic as ar
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.random.arguments import SAMPLE, chosen, floating, integral, placed, sample_shape
from effax.random.generators import checked, random_bits
from effax.random.keys import two
from effax.random.threefry import Width

__all__ = ["bernoulli", "bits", "rademacher", "randint", "uniform"]

_BOUNDS: Final = {
    **SAMPLE,
    "minval": "lower bound, included; broadcasts to ``shape``.",
    "maxval": "upper bound, excluded; broadcasts to ``shape``.",
}


def _width(dtype: DType) -> Width:
    bits = dtype.itemsize * 8
    assert bits in (8, 16, 32, 64)
    return cast(Width, bits)


@placed
def bits(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return uniform random bits as unsigned integers.

    Args:
        key: random key, or its words.
        shape: shape of the result.
        dtype: unsigned dtype, of 32 bits by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not unsigned.

    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    kind = allowed(np.uint64 if dtype is None else dtype)
    if family(kind) != "uint":
        raise IllTyped(
            "dtype argument to `bits` must be an unsigned int dtype", "an unsigned dtype", str(kind)
        )
    return random_bits(checked(key, "bits"), plain_shape(shape, "bits"), _width(kind))


@placed
@shared_docs(_BOUNDS, "Array of shape ``shape``.")
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: object = None,
) -> Array:
    """Return uniform samples of ``[minval, maxval)``.

    Raises:
        IllTyped: the dtype is not floating, or a bound does not broadcast.

    >>> random.uniform(random.key(0), (2,)).shape
    (2,)
    """
    kind = floating(dtype, "uniform")
    sizes = plain_shape(shape, "uniform")
    drawn = random_bits(checked(key, "uniform"), sizes, cast(Width, bits_of_unit(kind)))
    unit = unit_of_bits(drawn, kind)
    if isinstance(minval, Array | np.ndarray) or isinstance(maxval, Array | np.ndarray):
        low, high = (_bound(x, kind, sizes) for x in (minval, maxval))
        scaled = el.add(el.mul(unit, el.sub(high, low)), low)
        return el.max(low, scaled)
    with np.errstate(over="ignore"):
        first = np.asarray(minval, kind)
        width = np.asarray(np.subtract(np.asarray(maxval, kind), first), kind)
    if first == 0 and width == 1:
        return unit
    scaled = el.add(el.mul(unit, float(width)), float(first))
    return el.max(scaled, float(first))


def _bound(x: ArrayLike, dtype: DType, shape: Shape) -> Array:
    return broadcast_to(el.convert_element_type(as_value(x, "a bound"), dtype), shape)


@placed
@shared_docs(_BOUNDS, "Array of shape ``shape``.", dtype="integer dtype, int32 by default.")
def randint(
    key: ArrayLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return uniform integers of ``[minval, maxval)``; ``minval`` where that is empty.

    Probabilities deviate by at most 2⁻³² for ranges that are not a power of 2.

    Raises:
        IllTyped: the dtype is not of integers.

    >>> random.randint(random.key(0), (2,), 0, 1)
    Array([0, 0], dtype=int32)
    """
    kind = integral(dtype, "randint")
    sizes = sample_shape(shape, "randint", minval, maxval)
    parent = checked(key, "randint")
    low, high = as_value(minval, "minval of randint"), as_value(maxval, "maxval of randint")
    work = kind
    if kind.itemsize < 4:
        # In 32 bits, so that narrow integers are equally uniform.
        work = np.dtype(np.int32)
        least, greatest = int_bounds(kind)
        low = ar.clip(uf.astype(low, work), least, greatest)
        high = ar.clip(uf.astype(high, work), least, greatest + 1)
    return uf.astype(_randint(parent, low, high, sizes, work), kind)


def _randint(key: Array, low: Array, high: Array, shape: Shape, dtype: DType) -> Array:
    low, high = (
        x if family(x.dtype) in ("int", "uint") else uf.astype(x, int) for x in (low, high)
    )
    beyond = uf.greater(high, min(int_bounds(dtype)[1], int_bounds(high.dtype)[1]))
    low, high = (broadcast_to(_saturated(x, dtype), shape) for x in (low, high))
    unsigned = np.dtype(f"uint{dtype.itemsize * 8}")
    n_bits = _width(dtype)
    first, second = (random_bits(k, shape, n_bits) for k in two(key))
    empty = uf.less_equal(high, low)
    span = uf.masked(uf.invert(empty), uf.astype(uf.subtract(high, low), unsigned), 1)
    # A bound one beyond the range of the dtype widens the span by one.
    wider = uf.bitwise_and(uf.invert(empty), broadcast_to(beyond, shape))
    span = uf.where(wider, uf.add(span, 1), span)
    # (first · 2ⁿ + second) mod span, where 2ⁿ mod span = (2^(n/2) mod span)² mod span.
    half = broadcast_to(asarray(1 << (n_bits // 2), unsigned), shape)
    factor = el.rem(half, span)
    factor = el.rem(el.mul(factor, factor), span)
    offset = el.add(el.mul(el.rem(first, span), factor), el.rem(second, span))
    return el.add(low, el.convert_element_type(el.rem(offset, span), dtype))


def _saturated(x: Array, dtype: DType) -> Array:
    have, want = int_bounds(x.dtype), int_bounds(dtype)
    return uf.astype(ar.clip(x, max(want[0], have[0]), min(want[1], have[1])), dtype)


@placed
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: object = None,
) -> Array:
    """Return booleans that are true with probability ``p``.

    Args:
        key: random key, or its words.
        p: floating probability; broadcasts to ``shape``.
        shape: shape of the result, that of ``p`` by default.
        mode: "low": probabilities are multiples of the resolution of uniform samples, 2⁻²³ in 32
            bits; "high": of its square.
        out_sharding: sharding of the result.

    Returns:
        Boolean array of shape ``shape``.

    Raises:
        IllTyped: ``p`` is not floating, or does not broadcast.
        BadArgument: an unknown mode.

    >>> random.bernoulli(random.key(0), 1.0, (2,))
    Array([ True,  True], dtype=bool)
    """
    chosen(mode, ("high", "low"), "mode of bernoulli")
    chance = as_value(p, "the probability")
    if not is_float(chance.dtype):
        raise IllTyped(
            "bernoulli probability `p` must have a floating dtype",
            expected="a floating dtype",
            found=str(chance.type),
        )
    sizes = sample_shape(shape, "bernoulli", chance)
    chance = broadcast_to(uf.astype(chance, chance.dtype), sizes)
    if mode == "low":
        return el.lt(uniform(key, sizes, chance.dtype), chance)
    pair = uniform(key, (2, *sizes), chance.dtype)
    coarse, fine = (slice_along(pair, 0, i, i + 1, drop=True) for i in range(2))
    step = float(2.0 ** -int(finfo(chance.dtype).nmant))
    return el.lt(el.mul(fine, step), el.sub(chance, coarse))


@placed
def rademacher(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return uniform samples of -1 and 1.

    Args:
        key: random key, or its words.
        shape: shape of the result.
        dtype: dtype of the result, int32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    >>> random.rademacher(random.key(0), (2,)).shape
    (2,)
    """
    kind = default_dtype(dtype, int)
    heads = uf.astype(bernoulli(key, 0.5, plain_shape(shape, "rademacher")), kind)
    return uf.subtract(uf.multiply(heads, 2), 1)
