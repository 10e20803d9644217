"""Random samples of densities that decrease with a power, and of balls of p-norms."""

from __future__ import annotations

import operator

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.shapes import expand_dims
from effax.lax import elementwise as el
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import power
from effax.numpy.reduce import sum as sum_along
from effax.random.arguments import placed
from effax.random.distributions import exponential
from effax.random.gamma import gamma
from effax.random.generators import checked
from effax.random.keys import two
from effax.random.uniform import rademacher

__all__ = ["ball", "generalized_normal"]


@placed
def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of density proportional to ``exp(-|x|ᵖ)``.

    Args:
        key: random key, or its words.
        p: exponent.
        shape: shape of the result.
        dtype: floating dtype, float32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not floating, or ``p`` does not broadcast.

    >>> random.generalized_normal(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    of_size, of_sign = two(checked(key, "generalized_normal"))
    sizes = plain_shape(shape, "generalized_normal")
    inverse = uf.true_divide(1.0, p)
    size = gamma(of_size, inverse, sizes, dtype)
    sign = rademacher(of_sign, sizes, size.dtype)
    return uf.multiply(sign, power(size, inverse))


@placed
def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return uniform samples of the unit ball of the p-norm.

    Args:
        key: random key, or its words.
        d: dimension.
        p: exponent of the norm.
        shape: shape of the result without its last axis.
        dtype: floating dtype, float32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape (*shape, d).

    Raises:
        IllTyped: the dtype is not floating.

    >>> random.ball(random.key(0), 3).shape
    (3,)
    """
    # Source: Barthe, Guédon, Mendelson, Naor, "A probabilistic approach to the geometry of the
    # ℓpⁿ-ball" (2005).
    sizes = plain_shape(shape, "ball")
    of_direction, of_size = two(checked(key, "ball"))
    g = generalized_normal(of_direction, p, (*sizes, operator.index(d)), dtype)
    e = exponential(of_size, sizes, g.dtype)
    total = uf.add(sum_along(power(el.abs(g), p), -1), e)
    return uf.true_divide(g, expand_dims(power(total, uf.true_divide(1.0, p)), -1))
