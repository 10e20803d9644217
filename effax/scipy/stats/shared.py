"""Parameters of location and scale, and descriptions, that distributions share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeVar

from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.numpy import ufuncs as uf
from effax.numpy.predicates import isnan
from effax.scipy.formulas import floats

F = TypeVar("F", bound=Callable[..., object])

PARAMETERS: Final = {
    "x": "points, array or scalar.",
    "k": "integer points, array or scalar.",
    "q": "probabilities, array or scalar.",
    "loc": "location.",
    "scale": "scale, positive.",
}
RESULT: Final = "Floating array of the broadcast shape; nan where a parameter is out of range."


def described(**own: str) -> Callable[[F], F]:
    """Return a decorator that describes the parameters of a function of a distribution."""
    return shared_docs(PARAMETERS, RESULT, **own)


def standardized(
    what: str, x: ArrayLike, loc: ArrayLike, scale: ArrayLike, *shapes: ArrayLike
) -> list[Array]:
    """Return ``(x - loc) / scale``, the scale, nan where it is not positive, and the shapes."""
    point, middle, unit, *rest = floats(what, x, loc, scale, *shapes)
    unit = positive(unit)
    return [uf.true_divide(uf.subtract(point, middle), unit), unit, *rest]


def quantiles(
    what: str, q: ArrayLike, loc: ArrayLike, scale: ArrayLike, *shapes: ArrayLike
) -> list[Array]:
    """Return the probabilities, nan where they are none, the location, the scale and the shapes."""
    p, middle, unit, *rest = floats(what, q, loc, scale, *shapes)
    inside = uf.bitwise_and(uf.greater_equal(p, 0), uf.less_equal(p, 1))
    return [uf.where(inside, p, math.nan), middle, positive(unit), *rest]


def positive(x: Array) -> Array:
    """Return ``x``, nan where it is not positive."""
    return uf.where(uf.greater(x, 0), x, math.nan)


def in_support(inside: Array, value: Array, x: Array) -> Array:
    """Return the logarithm of a density: -inf outside of the support, and nan where ``x`` is."""
    invalid = uf.bitwise_or(isnan(x), isnan(value))
    return uf.where(inside, value, uf.where(invalid, math.nan, -math.inf))


def whole(k: Array) -> Array:
    """Return whether numbers are integers."""
    return uf.equal(uf.floor(k), k)


def log_of(part: Array, rest: Array) -> Array:
    """Return the logarithm of a probability, by that of the complement where it is near 1."""
    near = uf.greater(part, 0.5)
    complement = uf.log1p(uf.negative(uf.where(near, rest, 0)))
    return uf.where(near, complement, uf.log(uf.where(near, 1, part)))
