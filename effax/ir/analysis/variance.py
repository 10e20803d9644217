"""Variance analysis: the named axes along which each value of a program may differ.

The facts are sets of axes, ordered by inclusion. A result has the union of its operands' axes; a
collective with the same result on every device (``psum``, ``all_gather``) removes its axis,
``axis_index`` adds it. A reference has the axes of the values written to it, a branch those of its
predicate. The solution is an upper bound: a value that is the same by accident counts as different.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.analysis.dataflow import NONE, Analysis, Facts, Positions, Solver, analyze
from effax.ir.axes import joined_axes
from effax.ir.primitive import Primitive
from effax.ir.prims.collective import Collective
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.lazy.dataclasses import dataclass

Names = frozenset[str]

SAME: Final[Names] = frozenset()
"""The axes of a value that is the same everywhere: none."""


@dataclass(frozen=True)
class VarianceAnalysis(Analysis[Names]):
    """The sets of axes, ordered by inclusion."""

    bottom = SAME
    control = True

    def join(self, first: Names, second: Names) -> Names:
        return first | second

    def origin(self, eqn: Eqn) -> Names:
        return names_of(eqn.prim)

    def transfer(self, eqn: Eqn, ins: tuple[Names, ...]) -> tuple[Names, ...]:
        names, prim = SAME.union(*ins), eqn.prim
        if isinstance(prim, Collective):
            own = {prim.axis.name}
            names = names - own if prim.unites else names | own
        elif prim.subjaxprs():
            # Without regions, any result may depend on the free axes of its subjaxprs.
            names |= names_of(prim)
        return (names,) * len(eqn.outs)

    def call(
        self, eqn: Eqn, ins: tuple[Names, ...], fixed: Positions
    ) -> tuple[tuple[Names, ...], tuple[Names, ...]]:
        closed, outs = super().call(eqn, ins, fixed)
        inside = joined_axes([jaxpr.free_axes for jaxpr in eqn.prim.subjaxprs()])
        bound = {axis.name for axis in inside} - names_of(eqn.prim)
        return closed, tuple([names - bound for names in outs])


DIFFERS: Final = VarianceAnalysis()


def names_of(prim: Primitive) -> Names:
    """Return the names of the free axes of an application."""
    axes = prim.free_axes()
    return frozenset([axis.name for axis in axes]) if axes else SAME


def variance(jaxpr: Jaxpr, ins: tuple[Names, ...], fixed: Positions = NONE) -> Facts[Names]:
    """Return the axes along which the values of a program may differ.

    Args:
        jaxpr: the program.
        ins: the axes along which each input differs.
        fixed: positions of references that devices share; they keep their facts, since
            accumulations into them are summed over devices.
    """
    return analyze(DIFFERS, jaxpr, ins, fixed)


class Following:
    """The variance of the values of a program that is being traced."""

    __slots__ = ("_searched", "_solver")

    def __init__(self) -> None:
        self._solver: Solver[Names] = Solver(DIFFERS, 0)
        self._searched = 0

    def begin(self, v: Var, names: Names, shared: bool = False) -> None:
        """Add an input; a ``shared`` one is a reference that devices share."""
        self._extend(v.id + 1)
        self._solver.bind(v, names, shared)

    def of(self, v: Var, eqns: Sequence[Eqn], size: int) -> Names:
        """Return the axes along which one of ``size`` variables, bound by these equations, differs.

        Each equation is analyzed once.
        """
        self._extend(size)
        self._solver.sweep(eqns[self._searched :])
        self._searched = len(eqns)
        return self._solver.facts[v.id]

    def _extend(self, size: int) -> None:
        facts = self._solver.facts
        facts.extend([SAME] * (size - len(facts)))
