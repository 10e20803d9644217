"""The changes of references in a program that is being traced, and the equations it may drop."""

from __future__ import annotations

from collections.abc import Sequence

from effax.effects import Read, SideEffect, VarId
from effax.ir.analysis.queries import effects_on_variables
from effax.ir.syntax import Atom, Eqn, Var


class ReferenceChanges:
    """The last change of each reference, and equations that are kept only where they are used."""

    __slots__ = ("_last", "_searched", "_spare")

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._searched = 0
        self._spare: list[range] = []

    def last(self, eqns: Sequence[Eqn], ref: Var) -> int:
        """Return the position of the last equation that changes a reference, or -1.

        Each equation is searched once.
        """
        for i in range(self._searched, len(eqns)):
            for effect in effects_on_variables(eqns[i]) if eqns[i].effects else ():
                if not isinstance(effect, Read | SideEffect):
                    self._last[effect.ref] = i
        self._searched = len(eqns)
        return self._last.get(VarId(ref.id), -1)

    def drop_if_unused(self, first: int, end: int) -> None:
        """Drop these equations at the end of the trace, if no equation uses their results."""
        self._spare.append(range(first, end))

    def used(self, eqns: list[Eqn], outs: Sequence[Atom]) -> list[Eqn]:
        """Return the equations without those that are dropped: reads, and some without effects."""
        if not self._spare:
            return eqns
        spare = {i for positions in self._spare for i in positions}
        used = {a.id for a in outs if isinstance(a, Var)}
        kept: list[Eqn] = []
        for i, eqn in reversed([*enumerate(eqns)]):
            dropped = i in spare and all(isinstance(e, Read) for e in eqn.effects)
            if not dropped or any(v.id in used for v in eqn.outs):
                used.update([a.id for a in eqn.ins if isinstance(a, Var)])
                kept.append(eqn)
        return kept[::-1]
