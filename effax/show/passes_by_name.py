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
"""Gives what ``module:name`` is."""


def _jvp(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Values and tangents, of all inputs that can have one."""
    return jvp(jaxpr, [is_inexact(t) for t in jaxpr.in_types]).map(lambda made: made.jaxpr)


def _linear(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """The linear half of the derivative by all inputs that can have one."""
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
"""The passes of :mod:`effax.passes`, and those that change what a program takes and gives."""


def step_of(name: str, find: Find) -> Take:
    """The pass of that name, or the user's own: ``module:name``.

    Raises:
        BadArgument: there is none.
    """
    if ":" in name:
        return _own(name, find(name))
    found = STEPS.get(name)
    if found is not None:
        return found
    close = get_close_matches(name, STEPS, 1)
    raise BadArgument(
        f"there is no pass {name!r}",
        expected=", ".join(sorted(STEPS)),
        remedy=f"did you mean {close[0]}?" if close else "a pass of your own: module:name",
    )


def _own(name: str, found: object) -> Take:
    if isinstance(found, AnyPass):
        return found
    if not callable(found):
        raise BadArgument(
            f"{name} is no pass",
            expected="a pass, or a function from a program to a Result",
            found=type(found).__name__,
        )
    return Pass(name, cast(Transform, found))


def after(jaxpr: Jaxpr, names: str, find: Find) -> Jaxpr:
    """The program after the passes of these names, which commas separate.

    Raises:
        BadArgument: a pass does not exist; none is run then.
        TransformError: a pass does not apply, or gives a program that is not well formed.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name, step in [(name, step_of(name, find)) for name in wanted]:
        jaxpr = unwrap(step(jaxpr).bind(partial(well_formed, name)))
    return jaxpr
