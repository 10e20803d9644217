"""The law of inlining."""

from __future__ import annotations

from effax.ir.syntax import Jaxpr
from effax.testing.laws.law import law
from effax.testing.laws.simplify import check_simplifies
from effax.testing.laws.transformations import LIBRARY, Passes


@law(of_primitives=True)
def inline_is_observationally_equal(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """inline(f) = f, observationally; idempotent, never larger."""
    check_simplifies(passes.inline, jaxpr, seed)
