"""The steps of random programs, and the tables in which families list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from effax.testing.generate.program_builder import ProgramBuilder

Step = Callable[[ProgramBuilder], object]
"""Append an equation, sometimes a few."""

Generate = Callable[[ProgramBuilder, int], None]
"""Append at most so many steps to a subjaxpr."""

Nested = Callable[[ProgramBuilder, Generate], object]
"""Append an equation with subjaxprs, which are generated in turn."""

Weighted = tuple[tuple[int, Step], ...]
"""Steps with their weights, the simplest first: choices shrink to earlier ones."""


@dataclass(frozen=True)
class Steps:
    """The steps of a family, by the programs that use them.

    Attributes:
        linear: steps that append linear equations to linear operands; for all programs.
        fixed: steps on nonlinear operands, for programs with linear values too.
        nonlinear: steps of programs without linear values.
        jumping: steps that are not smooth.
        complexes: steps of programs with complex numbers.
        keys: steps of programs with random keys.
        refs: steps of programs with references.
        axes: steps of programs with named axes.
        jumping_axes: those of ``axes`` without a derivative.
        nested: steps that append equations with subjaxprs, by the name of the control flow.
    """

    linear: Weighted = ()
    fixed: Weighted = ()
    nonlinear: Weighted = ()
    jumping: Weighted = ()
    complexes: Weighted = ()
    keys: Weighted = ()
    refs: Weighted = ()
    axes: Weighted = ()
    jumping_axes: Weighted = ()
    nested: Mapping[str, tuple[int, Nested]] = field(default_factory=dict)
