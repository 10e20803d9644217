"""Random samples of distributions of location and scale."""

from __future__ import annotations

import math

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.device_array import DeviceArray
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import slice_along
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_complex, is_inexact_dtype, real_dtype
from effax.ir.errors import IllTyped
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.special import erf_inv
from effax.numpy import arithmetic as ar
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.random.arguments import SAMPLE, chosen, floating, parameter, placed, sample_shape
from effax.random.fixed_point import gumbel_of_64_bits
from effax.random.generators import checked
from effax.random.keys import two
from effax.random.normal_tail import TAIL, tail_quantile
from effax.random.uniform import uniform

__all__ = [
    "cauchy", "exponential", "gumbel", "laplace", "logistic", "lognormal", "normal",
    "truncated_normal",
]  # fmt: skip


@placed
def normal(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return standard normal samples.

    Args:
        key: random key, or its words.
        shape: shape of the result.
        dtype: floating or complex dtype, float32 by default.
        out_sharding: sharding of the result.

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
    kind = floating(kind, "normal")
    low = np.nextafter(np.asarray(-1, kind), np.asarray(0, kind))
    u = uniform(parent, sizes, kind, low, 1.0)
    return el.mul(erf_inv(u), float(np.asarray(math.sqrt(2), kind)))


@placed
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return standard normal samples conditioned to lie between bounds.

    Args:
        key: random key, or its words.
        lower: lower bound.
        upper: upper bound.
        shape: shape of the result, that of the bounds by default.
        dtype: floating dtype, float32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not floating, or a bound does not broadcast.

    >>> random.truncated_normal(random.key(0), -1.0, 1.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "truncated_normal")
    low, high = (uf.astype(x, kind) for x in (lower, upper))
    sizes = sample_shape(shape, "truncated_normal", low, high)
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


@placed
@shared_docs(SAMPLE, "Array of shape ``shape``.")
def exponential(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the exponential distribution with mean 1.

    >>> random.exponential(random.key(0), (2,)).shape
    (2,)
    """
    u = uniform(key, shape, floating(dtype, "exponential"))
    return el.neg(el.log1p(el.neg(u)))


@placed
@shared_docs(
    SAMPLE,
    "Array of shape ``shape``.",
    mode='"low"; "high" and "highest": from twice the bits, so that greater samples occur.',
)
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the standard Gumbel distribution.

    Raises:
        BadArgument: an unknown mode.

    >>> random.gumbel(random.key(0), (2,)).shape
    (2,)
    """
    chosen(mode or "low", ("highest", "high", "low"), "mode of gumbel")
    kind = floating(dtype, "gumbel")
    if mode == "highest" and kind == np.float32:
        return gumbel_of_64_bits(checked(key, "gumbel"), plain_shape(shape, "gumbel"))
    limits = finfo(kind)
    if mode is None or mode == "low":
        u = uniform(key, shape, kind, float(limits.tiny), 1.0)
        return el.neg(el.log(el.neg(el.log(u))))
    pair = uniform(key, (2, *plain_shape(shape, "gumbel")), kind)
    high, low = (slice_along(pair, 0, i, i + 1, drop=True) for i in range(2))
    # Samples below 1/2 get the bits of a second one, and are not 0.
    digits = int(limits.nmant)
    least = max(2.0 ** -(2 * digits + 1), float(limits.tiny))
    finer = el.add(el.add(high, el.mul(low, 2.0**-digits)), least)
    u = el.select(el.ge(high, 0.5), high, finer)
    return el.neg(el.log(el.neg(el.log1p(el.neg(u)))))


@placed
@shared_docs(SAMPLE, "Array of shape ``shape``.")
def laplace(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the standard Laplace distribution.

    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    kind = floating(dtype, "laplace")
    u = uniform(key, shape, kind, -1.0 + float(finfo(kind).epsneg), 1.0)
    return el.mul(el.sign(u), el.log1p(el.neg(el.abs(u))))


@placed
@shared_docs(SAMPLE, "Array of shape ``shape``.")
def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the standard logistic distribution.

    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    kind = floating(dtype, "logistic")
    u = uniform(key, shape, kind, float(finfo(kind).tiny), 1.0)
    return el.sub(el.log(u), el.log1p(el.neg(u)))


@placed
@shared_docs(SAMPLE, "Array of shape ``shape``.")
def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the standard Cauchy distribution.

    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    kind = floating(dtype, "cauchy")
    u = uniform(key, shape, kind, float(finfo(kind).eps), 1.0)
    return el.tan(el.mul(el.sub(u, 0.5), math.pi))


@placed
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return exponentials of normal samples of mean 0.

    Args:
        key: random key, or its words.
        sigma: standard deviation of the normal samples.
        shape: shape of the result, that of ``sigma`` by default.
        dtype: floating or complex dtype, float32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not inexact, or ``sigma`` does not broadcast.

    >>> random.lognormal(random.key(0), 1.0, (2,)).shape
    (2,)
    """
    kind = default_dtype(dtype)
    if not is_inexact_dtype(kind):
        raise IllTyped(
            "dtype argument to `lognormal` must be a float or complex dtype",
            expected="an inexact dtype",
            found=str(kind),
        )
    sizes = sample_shape(shape, "lognormal", sigma)
    samples = normal(key, sizes, kind)
    return el.exp(uf.multiply(samples, parameter(sigma, kind, "lognormal")))
