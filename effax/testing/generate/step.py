"""The steps by which a random program grows, and the tables in which families list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from effax.testing.generate.program_builder import ProgramBuilder

Step = Callable[[ProgramBuilder], object]
"""Append an equation, sometimes a few."""

Generate = Callable[[ProgramBuilder, int], None]
"""Append at most so many steps to a subjaxpr."""

Nested = Callable[[ProgramBuilder, Generate], object]
"""Append an equation with subjaxprs, and let these grow."""

Weighted = tuple[tuple[int, Step], ...]
"""Steps with their weights; the simplest first, since a smaller choice is an earlier one."""


@dataclass(frozen=True)
class Steps:
    """The steps of a family, by the programs that take them.

    Attributes:
        linear: steps that append linear equations to linear operands; all programs take them.
        fixed: steps on operands that are not linear, which programs with linear values take too.
        nonlinear: steps of programs without linear values.
        jumping: steps whose derivative is not that of their value everywhere.
        complexes: steps of programs with complex numbers.
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
    refs: Weighted = ()
    axes: Weighted = ()
    jumping_axes: Weighted = ()
    nested: Mapping[str, tuple[int, Nested]] = field(default_factory=dict)
