"""Passes by name, for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from returns.result import Result

from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.ir.types import is_inexact
from effax.transforms.dce import dce
from effax.transforms.discharge import discharge
from effax.transforms.inline import inline
from effax.transforms.jvp import jvp
from effax.transforms.linearize import linearize
from effax.transforms.run import unwrap

Step = Callable[[Jaxpr], Result[Jaxpr, TransformError]]


def _jvp(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Values and tangents, of all inputs that can have one."""
    return jvp(jaxpr, [is_inexact(t) for t in jaxpr.in_types]).map(lambda made: made.jaxpr)


def _linear(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """The linear half of the derivative by all inputs that can have one."""
    tangents = [is_inexact(t) for t in jaxpr.in_types]
    return linearize(jaxpr, tangents).map(lambda made: made.linear)


STEPS: Final[Mapping[str, Step]] = {
    "dce": lambda jaxpr: dce(jaxpr).map(lambda made: made.jaxpr),
    "discharge": lambda jaxpr: discharge(jaxpr).map(lambda made: made.jaxpr),
    "inline": inline,
    "jvp": _jvp,
    "linearize": _linear,
}
"""Passes by name."""


def step_of(name: str) -> Step:
    """The pass of that name. Raises BadArgument where there is none."""
    found = STEPS.get(name)
    if found is not None:
        return found
    close = get_close_matches(name, STEPS, 1)
    raise BadArgument(
        f"there is no pass {name!r}",
        expected=", ".join(sorted(STEPS)),
        remedy=f"did you mean {close[0]}?" if close else None,
    )


def after(jaxpr: Jaxpr, names: str) -> Jaxpr:
    """The program after the passes of these names, which commas separate.

    Raises:
        BadArgument: a pass does not exist; none is run then.
        TransformError: a pass does not apply.
    """
    steps = [step_of(name.strip()) for name in names.split(",") if name.strip()]
    for step in steps:
        jaxpr = unwrap(step(jaxpr))
    return jaxpr
