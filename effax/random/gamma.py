"""Random samples of the gamma distribution and of those that are functions of it.

Samples are differentiable in the parameters: the derivative is that of the quantile function at the
sample (Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike
from effax.arrays.batching import vmap
from effax.arrays.binding import ForwardOfFunction, bind1, program_of
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, reshape
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import IllTyped
from effax.ir.prims import CustomJvp
from effax.ir.state import cached
from effax.ir.types import ArrayType
from effax.lax import elementwise as el
from effax.lax.special import random_gamma_grad
from effax.lax.whiles import while_loop
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.numpy.ranges import arange
from effax.numpy.reduce import max as max_along
from effax.numpy.reduce import sum as sum_along
from effax.random.arguments import SAMPLE, chosen, floating, parameter, placed, sample_shape
from effax.random.distributions import exponential, normal
from effax.random.generators import checked, is_key, split_keys, words_and_generator, wrapped
from effax.random.keys import several, two
from effax.random.uniform import uniform

__all__ = ["beta", "chisquare", "dirichlet", "f", "gamma", "loggamma", "t"]

METHODS: Final = ("exact", "approximate")

_PARAMETERS: Final = {
    **SAMPLE,
    "shape": "shape of the result, that of the parameters by default.",
    "method": '"exact"; "approximate": by a series for the quantile, without loops.',
}


def _one(key: Array, shape: Array, in_logarithm: bool) -> Array:
    """Return one sample, or its logarithm.

    A sample of a shape below 1 is one of the shape plus 1, times ``u^(1 / shape)``.

    Source: Marsaglia, Tsang, "A simple method for generating gamma variables" (2000).
    """
    kind = shape.dtype
    large = el.ge(shape, 1.0)
    raised = el.select(large, shape, el.add(shape, 1.0))
    third = float(np.asarray(1.0 / 3.0, kind))
    d = el.sub(raised, third)
    c = el.div(third, el.sqrt(d))

    def rejected(state: tuple[Array, Array, Array, Array]) -> Array:
        _, x, v, u = state
        # x is the square of the normal sample, v the cube of 1 + c times it.
        outside = el.ge(u, el.sub(1.0, el.mul(el.mul(x, x), 0.0331)))
        density = el.add(el.mul(x, 0.5), el.mul(d, el.add(el.sub(1.0, v), el.log(v))))
        return el.bitwise_and(outside, el.ge(el.log(u), density))

    def proposed(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        following, of_normal, of_uniform = several(state[0], 3)
        x, v = _positive(of_normal, c)
        cube = el.mul(el.mul(v, v), v)
        return following, el.mul(x, x), cube, uniform(of_uniform, (), kind)

    first, last = several(key, 2)
    zero, one, two_ = (el.convert_element_type(n, kind) for n in (0.0, 1.0, 2.0))
    v = while_loop(rejected, proposed, (first, zero, one, two_))[2]
    if not in_logarithm:
        u = el.sub(1.0, uniform(last, (), kind))
        boost = el.select(large, 1.0, el.pow(u, el.div(1.0, shape)))
        return el.mul(el.mul(d, v), boost)
    u = el.neg(exponential(last, (), kind))
    unboosted = el.bitwise_or(large, el.eq(u, 0.0))
    boost = el.select(unboosted, 0.0, el.mul(u, el.div(1.0, shape)))
    return el.add(el.add(el.log(d), el.log(v)), boost)


def _positive(key: Array, c: Array) -> tuple[Array, Array]:
    """Return a normal sample x with ``1 + c·x > 0``, and that number."""
    kind = c.dtype
    zero, below = (el.convert_element_type(n, kind) for n in (0.0, -1.0))

    def proposed(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        following, sub = several(state[0], 2)
        x = normal(sub, (), kind)
        return following, x, el.add(el.mul(x, c), 1.0)

    _, x, v = while_loop(lambda s: el.le(s[2], 0.0), proposed, (key, zero, below))
    return x, v


def _samples(key: Array, shapes: Array, in_logarithm: bool) -> Array:
    """Return a sample of each shape, each from its own key."""
    flat = reshape(shapes, (shapes.size,))
    each = vmap(partial(_one, in_logarithm=in_logarithm))
    return reshape(each(split_keys(key, (shapes.size,)), flat), shapes.shape)


@cached(maxsize=1 << 8)
def _call(key: ArrayType, shapes: ArrayType, in_logarithm: bool) -> CustomJvp:
    """Return the call from a key and shapes to samples, with its derivative in the shapes."""
    name = "loggamma" if in_logarithm else "gamma"
    function = program_of(lambda k, a: [_samples(k, a, in_logarithm)], name, key, shapes)
    rule = ForwardOfFunction(partial(_jvp, in_logarithm), (key, shapes), name)
    return CustomJvp(function, rule, 0, name)


def _jvp(in_logarithm: bool, key: Array, shapes: Array, _: Array, tangent: Array) -> list[Array]:
    samples = bind1(_call(key.type, shapes.type, in_logarithm), key, shapes)
    if not in_logarithm:
        return [samples, el.mul(tangent, random_gamma_grad(shapes, samples))]
    # d log x = dx / x, where x may have rounded to 0.
    x = el.exp(samples)
    x = el.select(el.eq(x, 0.0), float(finfo(x.dtype).tiny), x)
    return [samples, el.mul(tangent, el.div(random_gamma_grad(shapes, x), x))]


def _drawn(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None,
    dtype: DTypeLike | None,
    what: str,
    method: str,
    in_logarithm: bool,
) -> Array:
    kind = floating(dtype, what)
    chosen(method, METHODS, f"method of {what}")
    sizes = sample_shape(shape, what, a)
    shapes = broadcast_to(el.convert_element_type(as_value(a, f"a of {what}"), kind), sizes)
    parent = typed(checked(key, what))
    if method == "approximate":
        return _approximate(parent, shapes, in_logarithm)
    return bind1(_call(parent.type, shapes.type, in_logarithm), parent, shapes)


def typed(key: Array) -> Array:
    """Return the key of words; a key unchanged."""
    return key if is_key(key) else wrapped(*words_and_generator(key))


# Coefficients of x^k·ν^(-k/2), k = 0..6, of the cube root of χ²/ν at the normal quantile x; each a
# polynomial in 1/ν. Source: R. Goldstein, "Algorithm 451: Chi-square quantiles" (1973).
_QUANTILE: Final = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)

BOOSTS: Final = 4
"""The shape of a sample is raised by so much, where the series is accurate."""


def _approximate(key: Array, shapes: Array, in_logarithm: bool) -> Array:
    """Return samples by the series for the quantile, at a raised shape, and their products.

    A sample of shape a is one of shape a + 4, times ``u_k^(1 / (a + k))`` for k = 0..3.
    """
    kind = shapes.dtype
    wide = kind if kind.itemsize >= 4 else np.dtype(np.float32)
    a = el.convert_element_type(shapes, wide)
    base, boost = two(key)
    logarithm = _of_quantile(base, el.add(a, float(BOOSTS)))
    steps = reshape(el.convert_element_type(arange(BOOSTS), wide), (BOOSTS, *[1] * a.ndim))
    u = el.neg(exponential(boost, (BOOSTS, *a.shape), wide))
    logarithm = el.add(logarithm, sum_along(uf.true_divide(u, uf.add(a[None], steps)), 0))
    return el.convert_element_type(logarithm if in_logarithm else el.exp(logarithm), kind)


def _of_quantile(key: Array, a: Array) -> Array:
    """Return logarithms of samples of shape ``a`` by the series."""
    degrees = el.mul(a, 2.0)
    x = normal(key, a.shape, a.dtype)
    inverse, step = el.div(1.0, degrees), el.mul(x, el.rsqrt(degrees))
    root = el.mul(a, 0.0)
    for row in reversed(_QUANTILE):
        root = el.add(el.mul(root, step), _polynomial(row, inverse))
    root = el.max(root, float(finfo(a.dtype).tiny))
    return el.add(el.log(a), el.mul(el.log(root), 3.0))


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    result = el.mul(x, 0.0)
    for c in reversed(coefficients):
        result = el.add(el.mul(result, x), c)
    return result


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", a="shape parameter of the distribution.")
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Return samples of the gamma distribution, of density ``xᵃ⁻¹·exp(-x)/Γ(a)``.

    They are differentiable in ``a``.

    Raises:
        IllTyped: the dtype is not floating, or ``a`` does not broadcast.
        BadArgument: an unknown method.

    >>> random.gamma(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    return _drawn(key, a, shape, dtype, "gamma", method, False)


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", a="shape parameter of the distribution.")
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Return logarithms of samples of the gamma distribution, also where these round to 0.

    They are differentiable in ``a``.

    Raises:
        IllTyped: the dtype is not floating, or ``a`` does not broadcast.
        BadArgument: an unknown method.

    >>> bool(jnp.isfinite(random.loggamma(random.key(0), 1e-6)))
    True
    """
    return _drawn(key, a, shape, dtype, "loggamma", method, True)


@placed
@shared_docs(
    _PARAMETERS,
    "Array of shape ``shape``.",
    a="exponent of x plus 1.",
    b="exponent of 1 - x plus 1.",
)
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Return samples of the beta distribution, of density ``xᵃ⁻¹·(1-x)ᵇ⁻¹/B(a, b)``.

    They are differentiable in ``a`` and ``b``.

    Raises:
        IllTyped: the dtype is not floating, or a parameter does not broadcast.
        BadArgument: an unknown method.

    >>> random.beta(random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "beta")
    sizes = sample_shape(shape, "beta", a, b)
    parents = two(checked(key, "beta"))
    first, second = (
        loggamma(k, parameter(x, kind, "beta"), sizes, kind, method=method)
        for k, x in zip(parents, (a, b), strict=True)
    )
    # x / (x + y), scaled so that neither rounds to 0.
    greater = el.max(first, second)
    x, y = (el.exp(el.sub(z, greater)) for z in (first, second))
    return el.div(x, el.add(x, y))


@placed
@shared_docs(
    SAMPLE,
    "Array of shape ``shape`` followed by the number of probabilities.",
    alpha="parameters of the distribution, along the last axis.",
    shape="shape of the result without its last axis, that of ``alpha`` by default.",
)
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return random vectors of probabilities, of density proportional to ``∏ xᵢ^(αᵢ-1)``.

    They are differentiable in ``alpha``.

    Raises:
        IllTyped: the dtype is not floating, or ``alpha`` has no axis or does not broadcast.

    >>> random.dirichlet(random.key(0), jnp.ones(3), (2,)).shape
    (2, 3)
    """
    kind = floating(dtype, "dirichlet")
    parameters = el.convert_element_type(as_value(alpha, "alpha of dirichlet"), kind)
    if not parameters.ndim:
        raise IllTyped(
            "dirichlet requires alpha.ndim >= 1", "an axis of parameters", str(parameters.type)
        )
    lead = sample_shape(shape, "dirichlet", parameters[..., 0]) if parameters.shape[-1] else ()
    samples = loggamma(key, parameters, (*lead, parameters.shape[-1]), kind)
    scaled = el.exp(uf.subtract(samples, max_along(samples, -1, keepdims=True)))
    return uf.true_divide(scaled, sum_along(scaled, -1, keepdims=True))


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", df="degrees of freedom.")
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Return samples of the chi-square distribution: sums of ``df`` squares of normal samples.

    Raises:
        IllTyped: the dtype is not floating, or ``df`` does not broadcast.
        BadArgument: an unknown method.

    >>> random.chisquare(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "chisquare")
    sizes = sample_shape(shape, "chisquare", df)
    half = el.div(parameter(df, kind, "chisquare"), 2.0)
    return el.mul(el.exp(loggamma(key, half, sizes, kind, method=method)), 2.0)


@placed
@shared_docs(
    _PARAMETERS,
    "Array of shape ``shape``.",
    dfnum="degrees of freedom of the numerator.",
    dfden="degrees of freedom of the denominator.",
)
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of the F distribution: quotients of chi-square samples by their degrees.

    Raises:
        IllTyped: the dtype is not floating, or a parameter does not broadcast.

    >>> random.f(random.key(0), 3.0, 4.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "f")
    sizes = sample_shape(shape, "f", dfnum, dfden)
    above, below = (parameter(x, kind, "f") for x in (dfnum, dfden))
    of_below, of_above = two(checked(key, "f"))
    numerator = uf.true_divide(chisquare(of_above, above, sizes, kind), above)
    denominator = uf.true_divide(chisquare(of_below, below, sizes, kind), below)
    return el.div(numerator, denominator)


@placed
@shared_docs(_PARAMETERS, "Array of shape ``shape``.", df="degrees of freedom.")
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return samples of Student's t distribution.

    Raises:
        IllTyped: the dtype is not floating, or ``df`` does not broadcast.

    >>> random.t(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    kind = floating(dtype, "t")
    sizes = sample_shape(shape, "t", df)
    of_normal, of_gamma = two(checked(key, "t"))
    half = el.div(parameter(df, kind, "t"), 2.0)
    samples = gamma(of_gamma, half, sizes, kind)
    return el.mul(normal(of_normal, sizes, kind), el.sqrt(uf.true_divide(half, samples)))
