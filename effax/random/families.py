"""Random samples of distributions that are functions of uniform, normal or exponential samples."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to
from effax.arrays.shared_docs import shared_docs
from effax.lax import elementwise as el
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import power
from effax.numpy.linalg import norm
from effax.random.arguments import (
    SAMPLE,
    floating,
    integral,
    parameter,
    placed,
    sample_shape,
)
from effax.random.distributions import exponential, normal
from effax.random.generators import checked
from effax.random.keys import two
from effax.random.uniform import rademacher, uniform

__all__ = [
    "double_sided_maxwell", "geometric", "maxwell", "pareto", "rayleigh", "triangular", "wald",
    "weibull_min",
]  # fmt: skip

_PARAMETERS = {
    **SAMPLE,
    "shape": "shape of the result, that of the parameters by default.",
}


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", b="exponent of the density ``b·x⁻ᵇ⁻¹``.")
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the Pareto distribution on [1, ∞).

    Raises:
        IllTyped: the dtype is not floating, or ``b`` does not broadcast.

    >>> random.pareto(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "pareto")
    sizes = sample_shape(shape, "pareto", b)
    exponent = parameter(b, kind, "pareto")
    return el.exp(uf.true_divide(exponential(key, sizes, kind), exponent))


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", scale="position of the greatest density.")
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the Rayleigh distribution, of density ``x/s²·exp(-x²/(2s²))``.

    Raises:
        IllTyped: the dtype is not floating, or ``scale`` does not broadcast.

    >>> random.rayleigh(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "rayleigh")
    sizes = sample_shape(shape, "rayleigh", scale)
    factor = broadcast_to(parameter(scale, kind, "rayleigh"), sizes)
    u = uniform(key, sizes, kind)
    return el.mul(factor, el.sqrt(el.mul(el.log(u), -2.0)))


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", mean="mean of the distribution.")
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the Wald distribution (inverse Gaussian) of scale 1.

    Raises:
        IllTyped: the dtype is not floating, or ``mean`` does not broadcast.

    >>> random.wald(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    # Source: Michael, Schucany, Haas, "Generating random variates using transformations with
    # multiple roots" (1976).
    kind = floating(dtype, "wald")
    sizes = sample_shape(shape, "wald", mean)
    middle = broadcast_to(parameter(mean, kind, "wald"), sizes)
    first, second = two(checked(key, "wald"))
    y = el.square(normal(first, sizes, kind))
    z = uniform(second, sizes, kind)
    squared = el.square(middle)
    root = el.sqrt(el.add(el.mul(el.mul(middle, 4.0), y), el.mul(squared, el.square(y))))
    # x is the smaller root of a quadratic equation, mean²/x the greater one.
    x = el.sub(el.add(middle, el.div(el.mul(squared, y), 2.0)), el.mul(el.div(middle, 2.0), root))
    smaller = el.le(z, el.div(middle, el.add(middle, x)))
    return el.select(smaller, x, el.div(squared, x))


@placed
@shared_docs(
    _PARAMETERS, "Integer array of shape ``shape``.", p="probability of success of one trial."
)
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return the numbers of trials up to the first success, at least 1.

    Raises:
        IllTyped: the dtype is not of integers, or ``p`` does not broadcast.

    >>> random.geometric(random.key(0), 1.0, (2,))
    Array([1, 1], dtype=int32)
    """
    kind = integral(dtype, "geometric")
    sizes = sample_shape(shape, "geometric", p)
    chance = as_value(p, "p of geometric")
    chance = pr.converted(chance, *pr.inexact(chance.dtype, False))
    u = uniform(key, sizes, chance.dtype)
    u = el.select(el.eq(u, 0.0), 1.0, u)
    failure = broadcast_to(el.log1p(el.neg(chance)), sizes)
    trials = el.add(el.floor(el.div(el.log(u), failure)), 1.0)
    return uf.astype(trials, kind)


@placed
@shared_docs(
    _PARAMETERS,
    "Array of shape ``shape``.",
    left="lower bound.",
    mode="position of the greatest density.",
    right="upper bound.",
)
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the triangular distribution.

    Raises:
        IllTyped: the dtype is not floating, or a parameter does not broadcast.

    >>> random.triangular(random.key(0), 0.0, 1.0, 2.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "triangular")
    sizes = sample_shape(shape, "triangular", left, mode, right)
    low, top, high = (
        broadcast_to(parameter(x, kind, "triangular"), sizes) for x in (left, mode, right)
    )
    u = uniform(key, sizes, kind)
    width = el.sub(high, low)
    rising = el.add(low, el.sqrt(el.mul(el.mul(u, width), el.sub(top, low))))
    falling = el.sub(high, el.sqrt(el.mul(el.mul(el.sub(1.0, u), width), el.sub(high, top))))
    return el.select(el.lt(u, el.div(el.sub(top, low), width)), rising, falling)


@shared_docs(
    SAMPLE,
    "Array of shape ``shape``.",
    scale="factor of the samples.",
    concentration="exponent of the tail ``exp(-xᶜ)``.",
)
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Return samples of the Weibull distribution.

    Raises:
        IllTyped: the dtype is not floating, or the parameters do not broadcast with ``shape``.

    >>> random.weibull_min(random.key(0), 2.0, 1.5, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "weibull_min")
    u = uniform(key, plain_shape(shape, "weibull_min"), kind)
    raised = power(el.neg(el.log1p(el.neg(u))), uf.true_divide(1.0, concentration))
    return uf.multiply(raised, scale)


@placed
@shared_docs(SAMPLE, "Array of shape ``shape``.")
def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the standard Maxwell distribution: lengths of normal 3-vectors.

    Raises:
        IllTyped: the dtype is not floating.

    >>> random.maxwell(random.key(0), (2,)).shape
    (2,)
    """
    kind = floating(dtype, "maxwell")
    return norm(normal(key, (*plain_shape(shape, "maxwell"), 3), kind), axis=-1)


@shared_docs(
    SAMPLE,
    "Array of shape ``shape`` followed by that of the parameters, or of that alone by default.",
    loc="position of the center.",
    scale="factor of the samples.",
)
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Return samples of the Maxwell distribution with random signs.

    Raises:
        IllTyped: the dtype is not floating, or the parameters do not broadcast.

    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "double_sided_maxwell")
    of_parameters = sample_shape(None, "double_sided_maxwell", loc, scale)
    sizes = (*(plain_shape(shape, "double_sided_maxwell") or of_parameters), *of_parameters)
    first, second = two(checked(key, "double_sided_maxwell"))
    size, sign = maxwell(first, sizes, kind), rademacher(second, sizes, kind)
    return uf.add(uf.multiply(uf.multiply(sign, size), scale), loc)
