"""Passes by name, for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Final, cast

from returns.result import Result

from effax import passes
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.ir.types import is_inexact
from effax.passes import AnyPass, Pass, Transform
from effax.passes.watch import well_formed
from effax.transforms.discharge import discharge
from effax.transforms.framework.runner import unwrap
from effax.transforms.jvp import jvp
from effax.transforms.linearize import linearize

Take = Callable[[Jaxpr], Result[Jaxpr, TransformError]]
Find = Callable[[str], object]
"""A function that returns the object ``module:name``."""


def _jvp(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Differentiate by all inputs that can have a tangent."""
    return jvp(jaxpr, [is_inexact(t) for t in jaxpr.in_types]).map(lambda made: made.jaxpr)


def _linear(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Return the linear program of the derivative by all inputs that can have a tangent."""
    tangents = [is_inexact(t) for t in jaxpr.in_types]
    return linearize(jaxpr, tangents).map(lambda made: made.linear)


_SIMPLIFYING: Final[Mapping[str, Take]] = {
    name: step for name, step in vars(passes).items() if isinstance(step, AnyPass)
}
STEPS: Final[Mapping[str, Take]] = {
    **_SIMPLIFYING,
    "discharge": lambda jaxpr: discharge(jaxpr).map(lambda made: made.jaxpr),
    "jvp": _jvp,
    "linearize": _linear,
}
"""The passes of :mod:`effax.passes`, and passes that change the type of a program."""


def step_of(name: str, find: Find) -> Take:
    """Return the pass of a name, or the user-defined pass ``module:name``.

    Raises:
        BadArgument: it does not exist.
    """
    if ":" in name:
        return _own(name, find(name))
    found = STEPS.get(name)
    if found is not None:
        return found
    close = get_close_matches(name, STEPS, 1)
    raise BadArgument(
        f"unknown pass {name!r}",
        expected=", ".join(sorted(STEPS)),
        remedy=f"did you mean {close[0]}?" if close else "name a user-defined pass: module:name",
    )


def _own(name: str, found: object) -> Take:
    if isinstance(found, AnyPass):
        return found
    if not callable(found):
        raise BadArgument(
            f"{name} is not a pass",
            expected="a pass, or a function from a program to a Result",
            found=type(found).__name__,
        )
    return Pass(name, cast(Transform, found))


def after(jaxpr: Jaxpr, names: str, find: Find) -> Jaxpr:
    """Return the program after passes, of comma-separated names.

    Raises:
        BadArgument: a pass does not exist; then none is run.
        TransformError: a pass does not apply, or returns a program that is not well formed.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name, step in [(name, step_of(name, find)) for name in wanted]:
        jaxpr = unwrap(step(jaxpr).bind(partial(well_formed, name)))
    return jaxpr
