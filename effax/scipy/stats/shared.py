"""Parameters of location and scale, and descriptions, that distributions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.numpy import ufuncs as uf
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


def standardized(what: str, x: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> tuple[Array, Array]:
    """Return ``(x - loc) / scale`` and the scale, nan where it is not positive."""
    point, middle, unit = floats(what, x, loc, scale)
    unit = uf.where(uf.greater(unit, 0), unit, float("nan"))
    return uf.true_divide(uf.subtract(point, middle), unit), unit
