"""Along which named axes each value of a program may differ.

An input differs along some axes. What is computed of values differs where they do; a collective
that gives every device the same (``psum``, ``all_gather``) ends that along its axis, ``axis_index``
begins it. A reference differs where what is written to it does, a choice where its predicate does.
What is found is an upper bound: a value that is the same by accident counts as different.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from effax.effects import Accum, Write
from effax.ir.axes import joined_axes
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.prims.collective import Collective
from effax.ir.syntax import Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType

Names = frozenset[str]
Positions = frozenset[int]

SAME: Final[Names] = frozenset()
"""The axes of a value that is the same everywhere: none."""

_NONE: Final[Positions] = frozenset()


class Variance(NamedTuple):
    """Along which axes the values of a program may differ.

    Attributes:
        ins: the inputs, with what is written to references.
        outs: the results.
        variables: by number, those that differ along any.
    """

    ins: tuple[Names, ...]
    outs: tuple[Names, ...]
    variables: dict[int, Names]


@memoize(maxsize=1024)
def variance(jaxpr: Jaxpr, ins: tuple[Names, ...], fixed: Positions = _NONE) -> Variance:
    """Follow differences through ``jaxpr``, to the least fixpoint.

    Args:
        jaxpr: the program.
        ins: along which axes each input differs.
        fixed: positions of references that devices share: they stay as they are, since what is
            added to them is summed.
    """
    found = {v.id: names for v, names in zip(jaxpr.binders, ins, strict=True) if names}
    held = frozenset(jaxpr.binders[i].id for i in fixed)
    while _sweep(jaxpr, found, held):
        pass
    return Variance(
        tuple([found.get(v.id, SAME) for v in jaxpr.binders]),
        tuple([SAME if isinstance(a, Lit) else found.get(a.id, SAME) for a in jaxpr.outs]),
        found,
    )


def _sweep(jaxpr: Jaxpr, found: dict[int, Names], held: Positions) -> bool:
    """One pass over the equations. True if a reference was found to differ more: look again."""
    again = False
    for eqn in jaxpr.eqns:
        again = _follow(eqn, found, held) or again
    return again


def _follow(eqn: Eqn, found: dict[int, Names], held: Set[int]) -> bool:
    """Follow one equation. True if a reference was found to differ more."""
    before = [SAME if type(a) is Lit else found.get(a.id, SAME) for a in eqn.ins]
    if not any(before) and not eqn.prim.free_axes():
        return False
    again = False
    fixed = frozenset(i for i, a in enumerate(eqn.ins) if type(a) is not Lit and a.id in held)
    after, outs = of_application(eqn, tuple(before), fixed)
    for a, old, new in zip(eqn.ins, before, after, strict=True):
        if new != old and isinstance(a, Var) and type(a.type) is RefType:
            found[a.id] = new
            again = True
    for v, names in zip(eqn.outs, outs, strict=True):
        if names:
            found[v.id] = found.get(v.id, SAME) | names
    return again


class Following:
    """Along which axes the values of a program may differ, while it is being traced."""

    __slots__ = ("_found", "_searched", "_shared")

    def __init__(self) -> None:
        self._found: dict[int, Names] = {}
        self._shared: set[int] = set()
        self._searched = 0

    def begin(self, v: Var, names: Names, shared: bool = False) -> None:
        """Note an input; ``shared``: it is a reference that devices share."""
        if names:
            self._found[v.id] = names
        if shared:
            self._shared.add(v.id)

    def of(self, v: Var, eqns: Sequence[Eqn]) -> Names:
        """Where a value differs that these equations give; each is looked at once."""
        for eqn in eqns[self._searched :]:
            _follow(eqn, self._found, self._shared)
        self._searched = len(eqns)
        return self._found.get(v.id, SAME)


def of_application(
    eqn: Eqn, ins: tuple[Names, ...], fixed: Positions
) -> tuple[tuple[Names, ...], tuple[Names, ...]]:
    """What an equation makes of these: its arguments (references may join) and its results."""
    if eqn.prim.subjaxprs() and eqn.prim.regions():
        return of_call(eqn.prim, ins, fixed)
    names = SAME.union(*ins)
    if eqn.effects:
        changed = {e.ref for e in eqn.effects if isinstance(e, Write | Accum)} - fixed
        ins = tuple([own | names if i in changed else own for i, own in enumerate(ins)])
    if eqn.prim.subjaxprs():
        # How it runs its programs is not told: it may use what they need in any way.
        names |= {axis.name for axis in eqn.prim.free_axes()}
    if isinstance(eqn.prim, Collective):
        own = {eqn.prim.axis.name}
        names = names - own if eqn.prim.unites else names | own
    return ins, (names,) * len(eqn.outs)


def of_call(
    prim: Primitive, given: tuple[Names, ...], fixed: Positions
) -> tuple[tuple[Names, ...], tuple[Names, ...]]:
    """The closed differences of the arguments and results of a primitive that holds programs.

    What a loop feeds back joins its arguments.
    """
    regions = prim.regions()
    inside = {axis.name for axis in joined_axes([j.free_axes for j in prim.subjaxprs()])}
    bound = inside - {axis.name for axis in prim.free_axes()}
    n_outs = 1 + max((r for region in regions for r in region.results if r is not None), default=-1)
    ins, outs = list(given), [SAME] * n_outs
    selector = prim.selector()
    decided = SAME if selector is None else given[selector]
    while True:
        before = (tuple(ins), tuple(outs))
        for region in regions:
            decided |= _enter(region, ins, outs, fixed)
        if decided:
            _decide(regions, ins, outs, fixed, decided)
        if before == (tuple(ins), tuple(outs)):
            return before[0], tuple([names - bound for names in outs])


def _enter(region: Region, ins: list[Names], outs: list[Names], fixed: Positions) -> Names:
    """Follow one region once; along which axes its result decides differently what runs."""
    held = frozenset(i for i, a in enumerate(region.args) if a in fixed)
    inside = variance(region.jaxpr, tuple([ins[a] for a in region.args]), held)
    for v, a, names in zip(region.jaxpr.binders, region.args, inside.ins, strict=True):
        if isinstance(v.type, RefType):
            ins[a] |= names
    for names, result, feed in zip(inside.outs, region.results, region.carry_to, strict=True):
        if feed is not None:
            ins[feed] |= names
        if result is not None:
            # A loop without iterations gives back what it was given.
            outs[result] |= names | (SAME if feed is None else ins[feed])
    return inside.outs[0] if region.is_predicate else SAME


def _decide(
    regions: Sequence[Region],
    ins: list[Names],
    outs: list[Names],
    fixed: Positions,
    decided: Names,
) -> None:
    """Everything that a predicate decides differs where it does."""
    for region in regions:
        for result, feed in zip(region.results, region.carry_to, strict=True):
            if result is not None:
                outs[result] |= decided
            if feed is not None:
                ins[feed] |= decided
        for effect in region.jaxpr.effects:
            if isinstance(effect, Write | Accum) and region.args[effect.ref] not in fixed:
                ins[region.args[effect.ref]] |= decided
