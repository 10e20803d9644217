"""Functions at the places where derivatives go wrong: values, first and second derivatives.

Each row is (x, f(x), f'(x), f''(x)): the limit, where there is one; the convention that
docs/derivatives.md states, where there is none; nan, where there is neither.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1, inf, log, nan, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

Row = tuple[float, float, float, float]


class Trap(NamedTuple):
    """A function of ``effax`` or ``jax`` and a scalar, and its expected values at some points.

    ``jax`` states for each point whether JAX agrees.
    """

    call: Callable[[Any, Any], Any]
    rows: tuple[Row, ...]
    jax: tuple[bool, ...]


def trap(call: Callable[[Any, Any], Any], *rows: Row, but: tuple[float, ...] = ()) -> Trap:
    """Return a trap where JAX disagrees at the points ``but``."""
    return Trap(call, rows, tuple(row[0] not in but for row in rows))


def constant(call: Callable[[Any, Any], Any], *points: tuple[float, float]) -> Trap:
    """Return the rows of a function whose derivative is 0."""
    return trap(call, *((x, y, 0.0, 0.0) for x, y in points))


def pair(m: Any, x: Any, y: float) -> Any:
    """Return the vector (x, y)."""
    return m.numpy.stack([x, m.numpy.float32(y)])


def twice(m: Any, x: Any) -> Any:
    """Return the vector (x, x)."""
    return m.numpy.stack([x, x])


LN2 = log(2)
SIGMOID = 1 / (1 + exp(-1))

GUARDED = {
    "where of a singular branch, twice": trap(
        lambda m, x: m.numpy.where(x > 0, m.numpy.sqrt(m.numpy.where(x > 0, x, 1.0)), 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (-1.0, 0.0, 0.0, 0.0),
        (4.0, 2.0, 0.25, -0.03125),
    ),
    "where of a logarithm, twice": trap(
        lambda m, x: m.numpy.where(x > 0, m.numpy.log(m.numpy.where(x > 0, x, 1.0)), x),
        (0.0, 0.0, 1.0, 0.0),
        (-1.0, -1.0, 1.0, 0.0),
    ),
    "x log x with 0 guarded": trap(
        lambda m, x: x * m.numpy.log(m.numpy.where(x == 0, 1.0, x)),
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 1.0, 1.0),
    ),
}

ROOTS = {
    "sqrt": trap(lambda m, x: m.numpy.sqrt(x), (0.0, 0.0, inf, -inf), (inf, inf, 0.0, 0.0)),
    "rsqrt": trap(lambda m, x: m.lax.rsqrt(x), (0.0, inf, -inf, inf), (inf, 0.0, 0.0, 0.0)),
    "cbrt": trap(
        lambda m, x: m.numpy.cbrt(x), (0.0, 0.0, inf, -inf), (-8.0, -2.0, 1 / 12, 1 / 144)
    ),
    "abs": trap(lambda m, x: m.numpy.abs(x), (0.0, 0.0, 1.0, 0.0), (-inf, inf, -1.0, 0.0)),
    "fabs": trap(lambda m, x: m.numpy.fabs(x), (0.0, 0.0, 1.0, 0.0)),
    "sign": constant(lambda m, x: m.numpy.sign(x), (0.0, 0.0), (-2.0, -1.0)),
    "hypot with 0": trap(
        lambda m, x: m.numpy.hypot(x, 0.0),
        (0.0, 0.0, 0.0, nan),
        (-2.0, 2.0, -1.0, 0.0),
        (inf, inf, 1.0, 0.0),
        but=(0.0, inf),
    ),
    "hypot with 1": trap(
        lambda m, x: m.numpy.hypot(1.0, x),
        (0.0, 1.0, 0.0, 1.0),
        (1.0, sqrt(2), sqrt(0.5), sqrt(0.125)),
        (-1.0, sqrt(2), -sqrt(0.5), sqrt(0.125)),
    ),
    "norm": trap(
        lambda m, x: m.numpy.linalg.norm(pair(m, x, 0.0)),
        (0.0, 0.0, 0.0, nan),
        (-3.0, 3.0, -1.0, 0.0),
        but=(0.0,),
    ),
    "norm of a matrix": trap(
        lambda m, x: m.numpy.linalg.norm(m.numpy.stack([twice(m, x)] * 2)),
        (0.0, 0.0, 0.0, nan),
        (1.0, 2.0, 2.0, 0.0),
        but=(0.0,),
    ),
    "norm of order 1": trap(
        lambda m, x: m.numpy.linalg.norm(pair(m, x, 0.0), 1), (0.0, 0.0, 1.0, 0.0)
    ),
    "norm of order 3": trap(
        lambda m, x: m.numpy.linalg.norm(twice(m, x), 3),
        (0.0, 0.0, 0.0, nan),
        (1.0, 2 ** (1 / 3), 2 ** (1 / 3), 0.0),
        but=(0.0,),
    ),
    "norm of order inf": trap(
        lambda m, x: m.numpy.linalg.norm(twice(m, x), np.inf),
        (0.0, 0.0, 1.0, 0.0),
        (-2.0, 2.0, -1.0, 0.0),
        but=(0.0,),
    ),
    "norm of order 0": constant(lambda m, x: m.numpy.linalg.norm(twice(m, x), 0), (0.0, 0.0)),
    "std of a constant": trap(
        lambda m, x: m.numpy.std(twice(m, x)), (0.0, 0.0, 0.0, nan), but=(0.0,)
    ),
    "std where two are equal": trap(
        lambda m, x: m.numpy.std(pair(m, x, 1.0)),
        (1.0, 0.0, 0.0, nan),
        (3.0, 1.0, 0.5, 0.0),
        but=(1.0,),
    ),
    "var of a constant": trap(lambda m, x: m.numpy.var(twice(m, x)), (0.0, 0.0, 0.0, 0.0)),
    "var where two are equal": trap(
        lambda m, x: m.numpy.var(pair(m, x, 1.0), ddof=1), (1.0, 0.0, 0.0, 1.0)
    ),
    "nanstd": trap(
        lambda m, x: m.numpy.nanstd(m.numpy.stack([x, m.numpy.float32(nan), x])),
        (1.0, 0.0, 0.0, nan),
        but=(1.0,),
    ),
}

TIES = {
    "maximum": trap(lambda m, x: m.numpy.maximum(x, 0.0), (0.0, 0.0, 0.5, 0.0)),
    "maximum with itself": trap(lambda m, x: m.numpy.maximum(x, x), (1.0, 1.0, 1.0, 0.0)),
    "minimum": trap(lambda m, x: m.numpy.minimum(0.0, x), (0.0, 0.0, 0.5, 0.0)),
    "maximum of infinities": trap(lambda m, x: m.numpy.maximum(x, inf), (inf, inf, 0.5, 0.0)),
    "fmax": trap(lambda m, x: m.numpy.fmax(x, 0.0), (0.0, 0.0, 0.0, 0.0), (nan, 0.0, 0.0, 0.0)),
    "fmax beside nan": trap(lambda m, x: m.numpy.fmax(x, nan), (1.0, 1.0, 1.0, 0.0)),
    "max": trap(lambda m, x: m.numpy.max(pair(m, x, 1.0)), (1.0, 1.0, 0.5, 0.0)),
    "max of equals": trap(lambda m, x: m.numpy.max(twice(m, x)), (1.0, 1.0, 1.0, 0.0)),
    "min": trap(lambda m, x: m.numpy.min(pair(m, x, 1.0)), (1.0, 1.0, 0.5, 0.0)),
    "nanmax": trap(
        lambda m, x: m.numpy.nanmax(pair(m, x, 1.0)), (1.0, 1.0, 0.5, 0.0), (nan, 1.0, 0.0, 0.0)
    ),
    "cummax": trap(lambda m, x: m.lax.cummax(pair(m, x, 1.0))[1], (1.0, 1.0, 0.5, 0.0)),
    "cummin": trap(
        lambda m, x: m.lax.cummin(pair(m, x, 1.0), reverse=True)[0], (1.0, 1.0, 0.5, 0.0)
    ),
    "sort": trap(
        lambda m, x: m.numpy.sort(pair(m, x, 1.0))[0], (1.0, 1.0, 1.0, 0.0), (2.0, 1.0, 0.0, 0.0)
    ),
    "argsort is stable": trap(
        lambda m, x: m.numpy.stack([x, x, x - 1])[m.numpy.argsort(m.numpy.stack([x, x, x - 1]))[1]],
        (1.0, 1.0, 1.0, 0.0),
    ),
    "median": trap(lambda m, x: m.numpy.median(pair(m, x, 1.0)), (1.0, 1.0, 0.5, 0.0)),
    "relu": trap(lambda m, x: m.nn.relu(x), (0.0, 0.0, 0.0, 0.0)),
    "relu6": trap(lambda m, x: m.nn.relu6(x), (0.0, 0.0, 0.0, 0.0), (6.0, 6.0, 0.0, 0.0)),
    "leaky_relu": trap(lambda m, x: m.nn.leaky_relu(x), (0.0, 0.0, 1.0, 0.0)),
    "clip": trap(
        lambda m, x: m.numpy.clip(x, 0.0, 1.0),
        (0.0, 0.0, 0.5, 0.0),
        (1.0, 1.0, 0.5, 0.0),
        (0.5, 0.5, 1.0, 0.0),
        (2.0, 1.0, 0.0, 0.0),
    ),
    "the bound of clip": trap(
        lambda m, x: m.numpy.clip(-1.0, x, 1.0), (-1.0, -1.0, 0.5, 0.0), (0.0, 0.0, 1.0, 0.0)
    ),
    "clamp": trap(
        lambda m, x: m.lax.clamp(0.0, x, 1.0), (0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)
    ),
    "hard_tanh": trap(lambda m, x: m.nn.hard_tanh(x), (1.0, 1.0, 1.0, 0.0)),
}

POWERS = {
    "x ** 0": trap(
        lambda m, x: x**0, (0.0, 1.0, 0.0, 0.0), (inf, 1.0, 0.0, 0.0), (nan, 1.0, 0.0, 0.0)
    ),
    "x ** 1": trap(lambda m, x: x**1, (0.0, 0.0, 1.0, 0.0)),
    "x ** 2": trap(lambda m, x: x**2, (0.0, 0.0, 0.0, 2.0), (-2.0, 4.0, -4.0, 2.0)),
    "x ** 3": trap(lambda m, x: x**3, (0.0, 0.0, 0.0, 0.0), (-2.0, -8.0, 12.0, -12.0)),
    "x ** -1": trap(lambda m, x: x**-1, (0.0, inf, -inf, inf), (-2.0, -0.5, -0.25, -0.25)),
    "x ** 0.0": trap(
        lambda m, x: m.numpy.power(x, 0.0),
        (0.0, 1.0, 0.0, 0.0),
        (1e-40, 1.0, 0.0, 0.0),
        (-2.0, 1.0, 0.0, 0.0),
        (inf, 1.0, 0.0, 0.0),
        (nan, 1.0, 0.0, 0.0),
        but=(0.0, 1e-40, nan),
    ),
    "x ** 1.0": trap(
        lambda m, x: m.numpy.power(x, 1.0),
        (0.0, 0.0, 1.0, 0.0),
        (-2.0, -2.0, 1.0, 0.0),
        but=(0.0,),
    ),
    "x ** 2.0": trap(
        lambda m, x: m.numpy.power(x, 2.0), (0.0, 0.0, 0.0, 2.0), (-2.0, 4.0, -4.0, 2.0)
    ),
    "x ** 3.0": trap(
        lambda m, x: m.numpy.power(x, 3.0), (0.0, 0.0, 0.0, 0.0), (-2.0, -8.0, 12.0, -12.0)
    ),
    "x ** 0.5": trap(lambda m, x: m.numpy.power(x, 0.5), (0.0, 0.0, inf, -inf)),
    "x ** 1.5": trap(lambda m, x: m.numpy.power(x, 1.5), (0.0, 0.0, 0.0, inf)),
    "x ** -2.0": trap(lambda m, x: m.numpy.power(x, -2.0), (-2.0, 0.25, 0.25, 0.375)),
    "0 ** x": trap(
        lambda m, x: m.numpy.power(0.0, x),
        (0.0, 1.0, 0.0, 0.0),
        (0.5, 0.0, 0.0, 0.0),
        (2.0, 0.0, 0.0, 0.0),
    ),
    "a negative base": trap(lambda m, x: m.numpy.power(-2.0, x), (3.0, -8.0, nan, nan)),
    "1 ** x": trap(lambda m, x: m.numpy.power(1.0, x), (0.0, 1.0, 0.0, 0.0), (2.0, 1.0, 0.0, 0.0)),
    "x ** x": trap(
        lambda m, x: x**x, (1.0, 1.0, 1.0, 2.0), (2.0, 4.0, 4 + 4 * LN2, 4 * (1 + LN2) ** 2 + 2)
    ),
    "x ** array(0)": trap(
        lambda m, x: m.numpy.power(x, m.numpy.array(0)),
        (0.0, 1.0, 0.0, 0.0),
        (2.0, 1.0, 0.0, 0.0),
        but=(0.0,),
    ),
    "x ** array(2)": trap(
        lambda m, x: m.numpy.power(x, m.numpy.array(2)),
        (0.0, 0.0, 0.0, 2.0),
        (-2.0, 4.0, -4.0, 2.0),
    ),
    "float_power": trap(lambda m, x: m.numpy.float_power(x, 2), (-2.0, 4.0, -4.0, 2.0)),
    "the mixed derivative at y = 0": trap(
        lambda m, x: m.jvp(lambda y: x**y, (m.numpy.zeros_like(x),), (m.numpy.ones_like(x),))[1],
        (2.0, LN2, 0.5, -0.25),
    ),
}

ANGLES = {
    "arctan2(x, 1)": trap(
        lambda m, x: m.numpy.arctan2(x, 1.0), (0.0, 0.0, 1.0, 0.0), (1.0, pi / 4, 0.5, -0.5)
    ),
    "arctan2(x, -1)": trap(lambda m, x: m.numpy.arctan2(x, -1.0), (0.0, pi, -1.0, 0.0)),
    "arctan2(0, x)": constant(lambda m, x: m.numpy.arctan2(0.0, x), (-1.0, pi), (1.0, 0.0)),
    "arctan2 at the origin": trap(lambda m, x: m.numpy.arctan2(x, 0.0), (0.0, 0.0, nan, nan)),
    "arctan2 of large numbers": trap(
        lambda m, x: m.numpy.arctan2(x, 1e25), (1e25, pi / 4, 5e-26, 0.0), but=(1e25,)
    ),
    "arctan2 of small numbers": trap(
        lambda m, x: m.numpy.arctan2(x * 1e-25, 1e-25), (1.0, pi / 4, 0.5, -0.5), but=(1.0,)
    ),
    "angle of a real number": trap(
        lambda m, x: m.numpy.angle(x), (0.0, 0.0, 0.0, 0.0), (-1.0, pi, 0.0, 0.0), but=(0.0,)
    ),
    "angle": trap(
        lambda m, x: m.numpy.angle(m.lax.complex(1.0 + 0 * x, x)),
        (0.0, 0.0, 1.0, 0.0),
        (1.0, pi / 4, 0.5, -0.5),
    ),
    "angle at the origin": trap(
        lambda m, x: m.numpy.angle(m.lax.complex(x, x)), (0.0, 0.0, nan, nan)
    ),
    "abs of a complex number": trap(
        lambda m, x: m.numpy.abs(m.lax.complex(0 * x, x)), (-2.0, 2.0, -1.0, 0.0)
    ),
    "the first derivative of abs of a complex number": trap(
        lambda m, x: m.grad(lambda y: m.numpy.abs(m.lax.complex(y, y)))(x),
        (0.0, 0.0, nan, nan),
        but=(0.0,),
    ),
    "sign of a complex number": trap(
        lambda m, x: m.numpy.imag(m.numpy.sign(m.lax.complex(1 + 0 * x, x))),
        (0.0, 0.0, 1.0, 0.0),
    ),
    "sign of complex zero": trap(
        lambda m, x: m.numpy.imag(m.numpy.sign(m.lax.complex(x, x))),
        (0.0, 0.0, 0.0, nan),
        but=(0.0,),
    ),
    "sinc": trap(
        lambda m, x: m.numpy.sinc(x),
        (0.0, 1.0, 0.0, -pi * pi / 3),
        (1e-20, 1.0, 0.0, -pi * pi / 3),
        (1e-3, 1.0, -pi * pi / 3 * 1e-3, -pi * pi / 3),
        (1.0, 0.0, -1.0, 2.0),
    ),
    "tan": trap(lambda m, x: m.numpy.tan(x), (0.0, 0.0, 1.0, 0.0), (pi / 4, 1.0, 2.0, 4.0)),
}

EXPONENTIALS = {
    "log": trap(lambda m, x: m.numpy.log(x), (0.0, -inf, inf, -inf), (inf, inf, 0.0, 0.0)),
    "log1p": trap(lambda m, x: m.numpy.log1p(x), (-1.0, -inf, inf, -inf), (0.0, 0.0, 1.0, -1.0)),
    "exp": trap(lambda m, x: m.numpy.exp(x), (-inf, 0.0, 0.0, 0.0), (inf, inf, inf, inf)),
    "expm1": trap(
        lambda m, x: m.numpy.expm1(x),
        (0.0, 0.0, 1.0, 1.0),
        (1e-10, 1e-10, 1.0, 1.0),
        (-inf, -1.0, 0.0, 0.0),
    ),
    "logaddexp": trap(
        lambda m, x: m.numpy.logaddexp(x, 0.0),
        (0.0, LN2, 0.5, 0.25),
        (-inf, 0.0, 0.0, 0.0),
        (inf, inf, 1.0, 0.0),
        (-30.0, exp(-30), exp(-30), exp(-30)),
    ),
    "logaddexp with -inf": trap(
        lambda m, x: m.numpy.logaddexp(x, -inf),
        (0.0, 0.0, 1.0, 0.0),
        (-inf, -inf, 0.5, 0.0),
        (inf, inf, 1.0, 0.0),
        but=(-inf,),
    ),
    "logaddexp with inf": trap(
        lambda m, x: m.numpy.logaddexp(x, inf),
        (0.0, inf, 0.0, 0.0),
        (-inf, inf, 0.0, 0.0),
        (inf, inf, 0.5, 0.0),
        but=(0.0, inf),
    ),
    "logaddexp with itself": trap(
        lambda m, x: m.numpy.logaddexp(x, x),
        (0.0, LN2, 1.0, 0.0),
        (-inf, -inf, 1.0, 0.0),
        (inf, inf, 1.0, 0.0),
        but=(-inf, inf),
    ),
    "logaddexp2": trap(
        lambda m, x: m.numpy.logaddexp2(x, 0.0),
        (0.0, 1.0, 0.5, LN2 / 4),
        (-inf, 0.0, 0.0, 0.0),
        (inf, inf, 1.0, 0.0),
    ),
    "logsumexp": trap(
        lambda m, x: m.nn.logsumexp(twice(m, x)),
        (0.0, LN2, 1.0, 0.0),
        (-inf, -inf, 1.0, 0.0),
        (inf, inf, 1.0, 0.0),
        but=(-inf, inf),
    ),
    "logsumexp beside 0": trap(
        lambda m, x: m.nn.logsumexp(pair(m, x, 0.0)),
        (0.0, LN2, 0.5, 0.25),
        (-inf, 0.0, 0.0, 0.0),
        (inf, inf, 1.0, 0.0),
        but=(inf,),
    ),
    "logsumexp beside -inf": trap(
        lambda m, x: m.nn.logsumexp(pair(m, x, -inf)),
        (0.0, 0.0, 1.0, 0.0),
        (-inf, -inf, 0.5, 0.0),
        but=(-inf,),
    ),
    "logsumexp with factors": trap(
        lambda m, x: m.nn.logsumexp(twice(m, x), b=np.array([2, -1], np.float32)),
        (0.0, 0.0, 1.0, 0.0),
        (-inf, -inf, 1.0, 0.0),
        but=(-inf,),
    ),
    "softmax beside -inf": trap(
        lambda m, x: m.nn.softmax(m.numpy.concatenate([pair(m, x, -inf), m.numpy.zeros(1)]))[0],
        (0.0, 0.5, 0.25, 0.0),
        (1.0, SIGMOID, SIGMOID * (1 - SIGMOID), SIGMOID * (1 - SIGMOID) * (1 - 2 * SIGMOID)),
    ),
    "softmax of -inf": trap(lambda m, x: m.nn.softmax(pair(m, x, 1.0))[0], (-inf, 0.0, 0.0, 0.0)),
    "softmax where nothing counts": trap(
        lambda m, x: m.nn.softmax(twice(m, x), where=np.array([False, False]))[0],
        (1.0, 0.0, 0.0, 0.0),
    ),
    "log_softmax beside -inf": trap(
        lambda m, x: m.nn.log_softmax(pair(m, x, -inf))[0], (0.0, 0.0, 0.0, 0.0)
    ),
    "log_softmax of -inf": trap(
        lambda m, x: m.nn.log_softmax(pair(m, x, 1.0))[0], (-inf, -inf, 1.0, 0.0)
    ),
    "log_softmax beside what is -inf": trap(
        lambda m, x: m.nn.log_softmax(pair(m, x, 1.0))[1], (-inf, 0.0, 0.0, 0.0)
    ),
    "softplus": trap(
        lambda m, x: m.nn.softplus(x),
        (0.0, LN2, 0.5, 0.25),
        (-inf, 0.0, 0.0, 0.0),
        (1000.0, 1000.0, 1.0, 0.0),
    ),
    "log_sigmoid": trap(
        lambda m, x: m.nn.log_sigmoid(x),
        (0.0, -LN2, 0.5, -0.25),
        (-1000.0, -1000.0, 1.0, 0.0),
        (inf, 0.0, 0.0, 0.0),
    ),
    "sigmoid": trap(lambda m, x: m.nn.sigmoid(x), (-inf, 0.0, 0.0, 0.0), (inf, 1.0, 0.0, 0.0)),
    "elu": trap(lambda m, x: m.nn.elu(x), (0.0, 0.0, 1.0, 1.0), (1000.0, 1000.0, 1.0, 0.0)),
    "celu": trap(
        lambda m, x: m.nn.celu(x),
        (-1.0, expm1(-1), exp(-1), exp(-1)),
        (0.0, 0.0, 1.0, 1.0),
        but=(0.0,),
    ),
    "cumlogsumexp": trap(
        lambda m, x: m.lax.cumlogsumexp(twice(m, x))[1],
        (0.0, LN2, 1.0, 0.0),
        (-inf, -inf, 1.0, 0.0),
        but=(-inf,),
    ),
}

EDGE = 1 - 2**-20

INVERSES = {
    "arcsin near 1": trap(
        lambda m, x: m.numpy.arcsin(x),
        (EDGE, pi / 2 - sqrt(2**-19), 724.0775, 724.0775**3 * EDGE),
    ),
    "arctanh near -1": trap(
        lambda m, x: m.numpy.arctanh(x),
        (-EDGE, -log(2**21 - 1) / 2, 2**19, -(2.0**39)),
    ),
    "erf": trap(lambda m, x: m.lax.erf(x), (0.0, 0.0, 2 / sqrt(pi), 0.0), (inf, 1.0, 0.0, 0.0)),
    "erfc": trap(lambda m, x: m.lax.erfc(x), (0.0, 1.0, -2 / sqrt(pi), 0.0), (-inf, 2.0, 0.0, 0.0)),
    "erf_inv": trap(
        lambda m, x: m.lax.erf_inv(x),
        (1.0, inf, inf, inf),
        (-1.0, -inf, inf, -inf),
        (0.0, 0.0, sqrt(pi) / 2, 0.0),
    ),
    "arcsin": trap(
        lambda m, x: m.numpy.arcsin(x), (1.0, pi / 2, inf, inf), (-1.0, -pi / 2, inf, -inf)
    ),
    "arccos": trap(lambda m, x: m.numpy.arccos(x), (1.0, 0.0, -inf, -inf), (-1.0, pi, -inf, inf)),
    "arccosh": trap(lambda m, x: m.numpy.arccosh(x), (1.0, 0.0, inf, -inf), (inf, inf, 0.0, 0.0)),
    "arctanh": trap(lambda m, x: m.numpy.arctanh(x), (1.0, inf, inf, inf), (-1.0, -inf, inf, -inf)),
    "tanh": trap(lambda m, x: m.numpy.tanh(x), (inf, 1.0, 0.0, 0.0), (-inf, -1.0, 0.0, 0.0)),
}

REMAINDERS = {
    "mod": trap(
        lambda m, x: m.numpy.mod(x, 3.0),
        (5.0, 2.0, 1.0, 0.0),
        (-5.0, 1.0, 1.0, 0.0),
        (3.0, 0.0, 1.0, 0.0),
    ),
    "mod of a negative divisor": trap(
        lambda m, x: m.numpy.mod(x, -3.0), (5.0, -1.0, 1.0, 0.0), (-5.0, -2.0, 1.0, 0.0)
    ),
    "the divisor of mod": trap(
        lambda m, x: m.numpy.mod(5.0, x),
        (3.0, 2.0, -1.0, 0.0),
        (-3.0, -1.0, 2.0, 0.0),
        (inf, 5.0, 0.0, 0.0),
    ),
    "the divisor of mod, of a negative number": trap(
        lambda m, x: m.numpy.mod(-5.0, x), (3.0, 1.0, 2.0, 0.0), (-3.0, -2.0, -1.0, 0.0)
    ),
    "fmod": trap(lambda m, x: m.numpy.fmod(x, 3.0), (5.0, 2.0, 1.0, 0.0), (-5.0, -2.0, 1.0, 0.0)),
    "the divisor of fmod": trap(
        lambda m, x: m.numpy.fmod(5.0, x), (3.0, 2.0, -1.0, 0.0), (-3.0, 2.0, 1.0, 0.0)
    ),
    "the divisor of fmod, of a negative number": trap(
        lambda m, x: m.numpy.fmod(-5.0, x), (3.0, -2.0, 1.0, 0.0), (-3.0, -2.0, -1.0, 0.0)
    ),
    "floor_divide": constant(lambda m, x: x // 3.0, (5.0, 1.0), (-5.0, -2.0)),
    "1 / x": trap(lambda m, x: 1.0 / x, (0.0, inf, -inf, inf), (inf, 0.0, 0.0, 0.0)),
    "x / x": trap(lambda m, x: x / x, (2.0, 1.0, 0.0, 0.0), (0.0, nan, nan, nan)),
    "floor": constant(lambda m, x: m.numpy.floor(x), (1.0, 1.0), (1.5, 1.0)),
    "ceil": constant(lambda m, x: m.numpy.ceil(x), (1.0, 1.0), (1.5, 2.0)),
    "round": constant(lambda m, x: m.numpy.round(x), (0.5, 0.0), (1.5, 2.0)),
    "trunc": constant(lambda m, x: m.numpy.trunc(x), (1.0, 1.0), (-1.5, -1.0)),
    "modf": trap(lambda m, x: m.numpy.modf(x)[0], (1.5, 0.5, 1.0, 0.0), (-1.5, -0.5, 1.0, 0.0)),
    "copysign": trap(
        lambda m, x: m.numpy.copysign(x, -1.0), (2.0, -2.0, -1.0, 0.0), (-2.0, -2.0, 1.0, 0.0)
    ),
    "heaviside": constant(lambda m, x: m.numpy.heaviside(x, 0.5), (0.0, 0.5), (1.0, 1.0)),
    "nan_to_num": trap(
        lambda m, x: m.numpy.nan_to_num(x, nan=7.0), (nan, 7.0, 0.0, 0.0), (1.0, 1.0, 1.0, 0.0)
    ),
}


def triple(m: Any, x: Any, y: float, z: float) -> Any:
    """Return the vector (x, y, z)."""
    return m.numpy.stack([x, m.numpy.float32(y), m.numpy.float32(z)])


PRODUCTS = {
    "prod with x = 0": trap(lambda m, x: m.numpy.prod(triple(m, x, 2, 3)), (0.0, 0.0, 6.0, 0.0)),
    "prod with another 0": trap(
        lambda m, x: m.numpy.prod(triple(m, x, 0, 3)), (0.0, 0.0, 0.0, 0.0), (2.0, 0.0, 0.0, 0.0)
    ),
    "prod of squares": trap(
        lambda m, x: m.numpy.prod(m.numpy.stack([x, x, m.numpy.float32(3)])), (0.0, 0.0, 0.0, 6.0)
    ),
    "cumprod": trap(
        lambda m, x: (
            m.numpy.cumprod(triple(m, 2 + 0 * x, 0, 3))[2]
            + m.numpy.cumprod(m.numpy.stack([m.numpy.float32(2), x, x]))[2]
        ),
        (0.0, 0.0, 0.0, 4.0),
    ),
    "nanprod": trap(lambda m, x: m.numpy.nanprod(triple(m, x, nan, 3)), (0.0, 0.0, 3.0, 0.0)),
    "nansum": trap(
        lambda m, x: m.numpy.nansum(pair(m, x, 1)), (nan, 1.0, 0.0, 0.0), (2.0, 3.0, 1.0, 0.0)
    ),
    "nanmean": trap(lambda m, x: m.numpy.nanmean(triple(m, x, nan, 3)), (1.0, 2.0, 0.5, 0.0)),
    "nanvar": trap(lambda m, x: m.numpy.nanvar(triple(m, x, nan, 3)), (1.0, 1.0, -1.0, 0.5)),
    "mean of no elements beside": trap(
        lambda m, x: x * m.numpy.sum(m.numpy.zeros(0)) + m.numpy.prod(m.numpy.zeros(0)) * x,
        (2.0, 2.0, 1.0, 0.0),
    ),
}

FAMILIES: dict[str, dict[str, Trap]] = {
    "guarded": GUARDED,
    "roots": ROOTS,
    "ties": TIES,
    "powers": POWERS,
    "angles": ANGLES,
    "exponentials": EXPONENTIALS,
    "inverses": INVERSES,
    "remainders": REMAINDERS,
    "products": PRODUCTS,
}
