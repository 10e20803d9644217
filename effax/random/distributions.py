"""Random samples of distributions."""

from __future__ import annotations

import math
from typing import Final, cast

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.device_array import DeviceArray
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import broadcast_to
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import DType, family, int_bounds, is_complex, is_float, real_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.bits import bitcast_convert_type
from effax.lax.special import erf_inv
from effax.numpy import arithmetic as ar
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.random.generators import checked, random_bits
from effax.random.keys import two
from effax.random.normal_tail import TAIL, tail_quantile
from effax.random.threefry import Width

__all__ = [
    "bernoulli", "bits", "cauchy", "exponential", "gumbel", "laplace", "logistic", "lognormal",
    "normal", "rademacher", "randint", "truncated_normal", "uniform",
]  # fmt: skip


_SAMPLE: Final = {
    "key": "random key, u32[2].",
    "shape": "shape of the result.",
    "dtype": "floating dtype, float32 by default.",
    "minval": "lower bound, included; broadcasts to ``shape``.",
    "maxval": "upper bound, excluded; broadcasts to ``shape``.",
}
"""Descriptions of the parameters that functions share."""


def _width(dtype: DType) -> Width:
    bits = dtype.itemsize * 8
    assert bits in (8, 16, 32, 64)
    return cast(Width, bits)


def bits(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return uniform random bits as unsigned integers.

    Args:
        key: random key, u32[2].
        shape: shape of the result.
        dtype: unsigned dtype, of 32 bits by default.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not unsigned.

    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    kind = allowed(np.uint64 if dtype is None else dtype)
    if family(kind) != "uint":
        raise IllTyped("bits takes an unsigned dtype", "an unsigned dtype", str(kind))
    return random_bits(checked(key, "bits"), plain_shape(shape, "bits"), _width(kind))


def _floating(dtype: DTypeLike | None, what: str) -> DType:
    kind = default_dtype(dtype)
    if not is_float(kind) or kind.itemsize not in (2, 4, 8):
        raise IllTyped(
            f"{what} takes a floating dtype", "a floating dtype of 16 bits or more", str(kind)
        )
    return kind


@shared_docs(_SAMPLE, "Array of shape ``shape``.")
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Return uniform samples of ``[minval, maxval)``.

    Raises:
        IllTyped: the dtype is not floating, or a bound does not broadcast.

    >>> random.uniform(random.key(0), (2,)).shape
    (2,)
    """
    kind = _floating(dtype, "uniform")
    sizes = plain_shape(shape, "uniform")
    unit = _unit(checked(key, "uniform"), sizes, kind)
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


def _unit(key: Array, shape: Shape, dtype: DType) -> Array:
    """Return samples of [0, 1): random mantissas of [1, 2), minus 1."""
    limits = finfo(dtype)
    n_mantissa = int(limits.nmant)
    rng_bits = 8 if n_mantissa < 8 else limits.bits
    word = np.dtype(f"uint{limits.bits}")
    found = random_bits(key, shape, cast(Width, rng_bits))
    if rng_bits != limits.bits:
        found = el.convert_element_type(found, word)
    mantissa = el.shift_right_logical(found, rng_bits - n_mantissa)
    one = int(np.ones((), dtype).view(word))
    return el.sub(bitcast_convert_type(el.bitwise_or(mantissa, one), dtype), 1.0)


def _bound(x: ArrayLike, dtype: DType, shape: Shape) -> Array:
    return broadcast_to(el.convert_element_type(as_value(x, "a bound"), dtype), shape)


@shared_docs(_SAMPLE, "Array of shape ``shape``.", dtype="integer dtype, int32 by default.")
def randint(
    key: ArrayLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return uniform integers of ``[minval, maxval)``; ``minval`` where that is empty.

    Probabilities deviate by at most 2⁻³² for ranges that are not a power of 2.

    Raises:
        IllTyped: the dtype is not of integers.

    >>> random.randint(random.key(0), (2,), 0, 1)
    Array([0, 0], dtype=int32)
    """
    kind = default_dtype(dtype, int)
    if family(kind) not in ("int", "uint"):
        raise IllTyped("randint takes an integer dtype", "an integer dtype", str(kind))
    sizes = plain_shape(shape, "randint")
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


def normal(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return standard normal samples.

    Args:
        key: random key, u32[2].
        shape: shape of the result.
        dtype: floating or complex dtype, float32 by default.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not inexact.

    >>> random.normal(random.key(0), (2,)).shape
    (2,)
    """
    kind = default_dtype(dtype)
    parent, sizes = checked(key, "normal"), plain_shape(shape, "normal")
    if is_complex(kind):
        part = real_dtype(kind)
        real, imag = (normal(k, sizes, part) for k in two(parent))
        return uf.true_divide(el.complex(real, imag), math.sqrt(2))
    kind = _floating(kind, "normal")
    low = np.nextafter(np.asarray(-1, kind), np.asarray(0, kind))
    u = uniform(parent, sizes, kind, low, 1.0)
    return el.mul(erf_inv(u), float(np.asarray(math.sqrt(2), kind)))


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return standard normal samples conditioned to lie between bounds.

    Args:
        key: random key, u32[2].
        lower: lower bound.
        upper: upper bound.
        shape: shape of the result, that of the bounds by default.
        dtype: floating dtype, float32 by default.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not floating, or a bound does not broadcast.

    >>> random.truncated_normal(random.key(0), -1.0, 1.0, (2,)).shape
    (2,)
    """
    kind = _floating(dtype, "truncated_normal")
    low, high = (uf.astype(x, kind) for x in (lower, upper))
    sizes = (
        pr.broadcast_shapes([low.shape, high.shape], "truncated_normal")
        if shape is None
        else plain_shape(shape, "truncated_normal")
    )
    parent = checked(key, "truncated_normal")
    in_tail = uf.bitwise_or(uf.greater(low, TAIL), uf.less(high, -TAIL))
    if isinstance(in_tail, DeviceArray) and not in_tail.numpy().any():
        samples = _central_normal(parent, sizes, low, high)
    else:
        # There the error function is ±1 up to rounding.
        center = [uf.where(in_tail, end, x) for end, x in ((-1, low), (1, high))]
        below = uf.less(high, -TAIL)
        near, far = uf.where(below, uf.negative(high), low), uf.where(below, uf.negative(low), high)
        tail = tail_quantile(uniform(parent, sizes, kind), near, far)
        tail = uf.where(below, uf.negative(tail), tail)
        samples = uf.where(in_tail, tail, _central_normal(parent, sizes, *center))
    # Rounding must not leave the open interval.
    inner = uf.nextafter(el.stop_gradient(low), float("inf"))
    outer = uf.nextafter(el.stop_gradient(high), float("-inf"))
    return ar.clip(samples, inner, outer)


def _central_normal(key: Array, shape: Shape, low: Array, high: Array) -> Array:
    """Return standard normal samples between bounds of which one is near the mean."""
    kind = low.dtype
    root = float(np.asarray(math.sqrt(2), kind))
    first, last = (el.erf(el.div(x, root)) for x in (low, high))
    # The inverse of ±1 is infinite.
    edge = float(np.nextafter(np.ones((), kind), np.zeros((), kind)))
    u = ar.clip(uniform(key, shape, kind, first, last), -edge, edge)
    return el.mul(erf_inv(u), root)


def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: ShapeLike | None = None) -> Array:
    """Return booleans that are true with probability ``p``.

    Args:
        key: random key, u32[2].
        p: floating probability; broadcasts to ``shape``.
        shape: shape of the result, that of ``p`` by default.

    Returns:
        Boolean array of shape ``shape``.

    Raises:
        IllTyped: ``p`` is not floating.

    >>> random.bernoulli(random.key(0), 1.0, (2,))
    Array([ True,  True], dtype=bool)
    """
    chance = as_value(p, "the probability")
    if not is_float(chance.dtype):
        raise IllTyped(
            "bernoulli takes a floating probability", "a floating dtype", str(chance.type)
        )
    sizes = chance.shape if shape is None else plain_shape(shape, "bernoulli")
    chance = broadcast_to(uf.astype(chance, chance.dtype), sizes)
    return el.lt(uniform(key, sizes, chance.dtype), chance)


def rademacher(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return uniform samples of -1 and 1.

    Args:
        key: random key, u32[2].
        shape: shape of the result.
        dtype: dtype of the result, int32 by default.

    Returns:
        Array of shape ``shape``.

    >>> random.rademacher(random.key(0), (2,)).shape
    (2,)
    """
    kind = default_dtype(dtype, int)
    heads = uf.astype(bernoulli(key, 0.5, plain_shape(shape, "rademacher")), kind)
    return uf.subtract(uf.multiply(heads, 2), 1)


@shared_docs(_SAMPLE, "Array of shape ``shape``.")
def exponential(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return samples of the exponential distribution with mean 1.

    >>> random.exponential(random.key(0), (2,)).shape
    (2,)
    """
    u = uniform(key, shape, _floating(dtype, "exponential"))
    return el.neg(el.log1p(el.neg(u)))


@shared_docs(_SAMPLE, "Array of shape ``shape``.", mode='None or "low".')
def gumbel(
    key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, mode: str | None = None
) -> Array:
    """Return samples of the standard Gumbel distribution.

    Raises:
        BadArgument: an unknown mode.

    >>> random.gumbel(random.key(0), (2,)).shape
    (2,)
    """
    if mode not in (None, "low"):
        raise BadArgument("unknown mode of gumbel", "None or 'low'", repr(mode))
    kind = _floating(dtype, "gumbel")
    u = uniform(key, shape, kind, float(finfo(kind).tiny), 1.0)
    return el.neg(el.log(el.neg(el.log(u))))


@shared_docs(_SAMPLE, "Array of shape ``shape``.")
def laplace(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return samples of the standard Laplace distribution.

    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    kind = _floating(dtype, "laplace")
    u = uniform(key, shape, kind, -1.0 + float(finfo(kind).epsneg), 1.0)
    return el.mul(el.sign(u), el.log1p(el.neg(el.abs(u))))


@shared_docs(_SAMPLE, "Array of shape ``shape``.")
def logistic(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return samples of the standard logistic distribution.

    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    kind = _floating(dtype, "logistic")
    u = uniform(key, shape, kind, float(finfo(kind).tiny), 1.0)
    return el.sub(el.log(u), el.log1p(el.neg(u)))


@shared_docs(_SAMPLE, "Array of shape ``shape``.")
def cauchy(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Return samples of the standard Cauchy distribution.

    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    kind = _floating(dtype, "cauchy")
    u = uniform(key, shape, kind, float(finfo(kind).eps), 1.0)
    return el.tan(el.mul(el.sub(u, 0.5), math.pi))


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return exponentials of normal samples of mean 0.

    Args:
        key: random key, u32[2].
        sigma: standard deviation of the normal samples.
        shape: shape of the result, that of ``sigma`` by default.
        dtype: floating dtype, float32 by default.

    Returns:
        Array of shape ``shape``.

    >>> random.lognormal(random.key(0), 1.0, (2,)).shape
    (2,)
    """
    sizes = pr.shape_of(sigma) if shape is None else plain_shape(shape, "lognormal")
    samples = normal(key, sizes, _floating(dtype, "lognormal"))
    return el.exp(uf.multiply(samples, uf.astype(sigma, samples.dtype)))
