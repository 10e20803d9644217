"""Equations as text, as their programs print them."""

from __future__ import annotations

from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.text.printer import eqn_str, stores


class EqnTexts:
    """The texts of equations; what is common to those of a program is computed once."""

    def __init__(self) -> None:
        self._programs: dict[int, tuple[Jaxpr, list[bool]]] = {}
        self._known: dict[tuple[int, int], str] = {}

    def at(self, jaxpr: Jaxpr, position: int) -> str:
        """Return the text of the equation at a position; a store prints as a write."""
        if id(jaxpr) not in self._programs:
            self._programs[id(jaxpr)] = (jaxpr, stores(jaxpr))
        return eqn_str(jaxpr.eqns[position], self._programs[id(jaxpr)][1][position])

    def of(self, jaxpr: Jaxpr, eqn: Eqn) -> str:
        """Return the text of an equation of a program."""
        key = (id(jaxpr), id(eqn))
        if key not in self._known:
            position = next(i for i, e in enumerate(jaxpr.eqns) if e is eqn)
            self._known[key] = self.at(jaxpr, position)
        return self._known[key]
