"""Queries on programs: definitions and uses, liveness, the order of effects.

Each is linear in the size of the program and returns plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from effax.effects import Alloc, Effect, Row, SideEffect, VarId, commutes
from effax.effects.row import effect_text
from effax.ir.memo import memoize
from effax.ir.recursion import subjaxprs_of
from effax.ir.regions.forms import region_names
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.lazy.dataclasses import dataclass


class PathStep(NamedTuple):
    """A step of a path: into a region of an equation.

    Attributes:
        position: the position of the equation in its program.
        prim: the name of its primitive.
        region: the name of the region, such as ``body`` or ``branch 1``.
        trip_count: how often the region runs in one application, if it is selected; None if values
            decide it, or no region is declared.
    """

    position: int
    prim: str
    region: str
    trip_count: int | None = None

    def __str__(self) -> str:
        return f"{self.position}:{self.prim}.{self.region}"


class Path(tuple[PathStep, ...]):
    """The steps that lead to a program, outermost first; prints as ``2:scan.body/0:jit.body``."""

    __slots__ = ()

    def __str__(self) -> str:
        return "/".join(map(str, self))


class Place(NamedTuple):
    """An equation and its place; prints as ``2:scan.body/0:mul``.

    Attributes:
        path: the steps that lead to it, outermost first; prints as ``2:scan.body``.
        jaxpr: the program that contains it.
        position: its position there.
    """

    path: tuple[PathStep, ...]
    jaxpr: Jaxpr
    position: int

    @property
    def eqn(self) -> Eqn:
        """The equation."""
        return self.jaxpr.eqns[self.position]

    @property
    def trip_count(self) -> int | None:
        """The number of runs of the equation in one run of the program; None if values decide it.

        A branch that is not selected does not run: the count is the greatest possible one.
        """
        counts = [step.trip_count for step in self.path]
        return prod([n for n in counts if n is not None]) if None not in counts else None

    def __str__(self) -> str:
        return "/".join([*map(str, self.path), f"{self.position}:{self.eqn.prim.name}"])


def walk(jaxpr: Jaxpr, every: bool = False) -> Iterator[Place]:
    """Yield all equations in program order; those of a subjaxpr follow the one that contains it.

    ::

        >>> from effax.ir import parse, walk
        >>> loop = parse('''{ lambda ; a:f32[]. let
        ...   b:f32[] = scan[
        ...     jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
        ...     length=3 n_carry=1 n_consts=0 reverse=False unroll=1
        ...   ] a
        ... in (b,) }''')
        >>> [(str(place), place.trip_count) for place in walk(loop)]
        [('0:scan', 1), ('0:scan.body/0:sin', 3)]

    Args:
        jaxpr: the program.
        every: whether to visit a shared subjaxpr wherever it occurs, which may be exponential in
            the depth; by default it is visited once, at its first occurrence.
    """
    seen = {jaxpr}
    stack: list[Iterator[Place]] = [_places(jaxpr, Path())]
    while stack:
        place = next(stack[-1], None)
        if place is None:
            stack.pop()
            continue
        yield place
        nested = place.eqn.prim.subjaxprs()
        if nested:
            for program, step in reversed([*zip(nested, steps_into(place), strict=True)]):
                if every or program not in seen:
                    seen.add(program)
                    stack.append(_places(program, Path((*place.path, step))))


def steps_into(place: Place) -> tuple[PathStep, ...]:
    """Return the steps from an equation into each of its subjaxprs."""
    prim = place.eqn.prim
    names, regions = region_names(prim), prim.regions()
    counts = [r.trip_count for r in regions] if len(regions) == len(names) else [None] * len(names)
    return tuple(
        [PathStep(place.position, prim.name, *both) for both in zip(names, counts, strict=True)]
    )


def _places(jaxpr: Jaxpr, path: tuple[PathStep, ...]) -> Iterator[Place]:
    return (Place(path, jaxpr, i) for i in range(len(jaxpr.eqns)))


class Definition(NamedTuple):
    """A definition: result ``position`` of equation ``eqn``, or an input if that is None."""

    eqn: int | None
    position: int


class Use(NamedTuple):
    """A use: argument ``position`` of equation ``eqn``, or a result if that is None."""

    eqn: int | None
    position: int


@dataclass(frozen=True)
class DefUse:
    """Definitions and uses of every variable of one program, by number."""

    definitions: dict[int, Definition]
    uses: dict[int, tuple[Use, ...]]

    def uses_of(self, v: Var) -> tuple[Use, ...]:
        """Return the uses of the variable, in program order."""
        return self.uses.get(v.id, ())

    def definition_of(self, v: Var) -> Definition:
        """Return the definition of the variable. Raises KeyError if it is not bound."""
        return self.definitions[v.id]


def def_use(jaxpr: Jaxpr) -> DefUse:
    """Return the definition and the uses of each variable, those of subjaxprs excluded."""
    definitions = {v.id: Definition(None, i) for i, v in enumerate(jaxpr.binders)}
    uses: dict[int, list[Use]] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for k, a in enumerate(eqn.ins):
            if isinstance(a, Var):
                uses.setdefault(a.id, []).append(Use(i, k))
        definitions.update((v.id, Definition(i, k)) for k, v in enumerate(eqn.outs))
    for k, a in enumerate(jaxpr.outs):
        if isinstance(a, Var):
            uses.setdefault(a.id, []).append(Use(None, k))
    return DefUse(definitions, {v: tuple(places) for v, places in uses.items()})


def free_variables(eqns: Iterable[Eqn]) -> tuple[Var, ...]:
    """Return the variables that equations use and do not bind, in order of first use."""
    bound: set[int] = set()
    free: dict[Var, None] = {}
    for eqn in eqns:
        for a in eqn.ins:
            if isinstance(a, Var) and a.id not in bound:
                free[a] = None
        bound.update(v.id for v in eqn.outs)
    return tuple(free)


@dataclass(frozen=True)
class Liveness:
    """The live ranges of variables.

    A variable is live in the gaps between equations: gap ``i`` is before equation ``i``, the last
    one before the results. It is live in gaps ``born[v] .. last[v]``, and in none if it is unused.
    """

    variables: tuple[Var, ...]
    born: dict[int, int]
    last: dict[int, int]

    def at(self, gap: int) -> tuple[Var, ...]:
        """Return the live variables in a gap: bound before it and used after it."""
        return tuple(v for v in self.variables if self.born[v.id] <= gap <= self.last.get(v.id, -1))

    def dies_at(self, v: Var, eqn: int) -> bool:
        """Return whether no later equation, and no result, uses the variable."""
        return self.last.get(v.id, -1) <= eqn


def liveness(jaxpr: Jaxpr) -> Liveness:
    """Return the live range of each variable."""
    variables: list[Var] = [*jaxpr.binders]
    born = {v.id: 0 for v in jaxpr.binders}
    last: dict[int, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        _used(last, eqn.ins, i)
        variables.extend(eqn.outs)
        born.update((v.id, i + 1) for v in eqn.outs)
    _used(last, jaxpr.outs, len(jaxpr.eqns))
    return Liveness(tuple(variables), born, last)


def _used(last: dict[int, int], atoms: Iterable[Atom], at: int) -> None:
    last.update((a.id, at) for a in atoms if isinstance(a, Var))


Thread = VarId | str
"""A thread along which effects are ordered: a reference, by number, or side effects.

A thread of side effects is named by an effect, such as ``io stdout``, or two that do not commute.
"""


@dataclass(frozen=True)
class EffectOrder:
    """The order that effects impose, as runs along each thread.

    The equations of one run commute on that thread; each dominates those of all later runs, and
    precedes them in every valid order of the program.
    """

    runs: dict[Thread, tuple[tuple[int, ...], ...]]
    places: dict[int, tuple[tuple[Thread, int], ...]]

    def dominates(self, first: int, second: int) -> bool:
        """Return whether effects order equation ``first`` before equation ``second``."""
        later = dict(self.places.get(second, ()))
        return any(run < later.get(thread, -1) for thread, run in self.places.get(first, ()))


def effect_order(jaxpr: Jaxpr) -> EffectOrder:
    """Return the order of equations that their effects impose, by the commutation table."""
    threads = _host_threads(jaxpr)
    runs: dict[Thread, list[list[int]]] = {}
    present: dict[Thread, set[Effect[VarId]]] = {}
    places: dict[int, tuple[tuple[Thread, int], ...]] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        if not eqn.effects:
            continue
        on: dict[Thread, list[Effect[VarId]]] = {}
        for effect in effects_on_variables(eqn):
            for thread in threads[effect] if isinstance(effect, SideEffect) else (effect.ref,):
                on.setdefault(thread, []).append(effect)
        for thread, effects in on.items():
            before = present.setdefault(thread, set())
            whole = runs.setdefault(thread, [])
            if not whole or not all(commutes(a, b) for a in before for b in effects):
                whole.append([])
                before.clear()
            whole[-1].append(i)
            before.update(effects)
        places[i] = tuple((thread, len(runs[thread]) - 1) for thread in on)
    return EffectOrder({thread: tuple(map(tuple, found)) for thread, found in runs.items()}, places)


def _host_threads(jaxpr: Jaxpr) -> dict[SideEffect, list[str]]:
    """Return the threads of side effects: one for each pair that is ordered."""
    found = list(dict.fromkeys(e for eqn in jaxpr.eqns for e in eqn.effects.side_effects))
    texts = {e: effect_text(e, None) for e in found}
    threads: dict[SideEffect, list[str]] = {e: [texts[e]] for e in found}
    for i, first in enumerate(found):
        for second in found[i + 1 :]:
            if not commutes(first, second):
                both = f"{texts[first]}, {texts[second]}"
                threads[first].append(both)
                threads[second].append(both)
    return threads


def effects_on_variables(eqn: Eqn) -> Row[VarId]:
    """Return the effects of an equation over its variables, allocations excluded."""

    def name(i: int) -> VarId | None:
        atom = eqn.ins[i]
        return VarId(atom.id) if isinstance(atom, Var) else None

    return eqn.effects.mask((Alloc,)).rename(name)


def size(jaxpr: Jaxpr) -> int:
    """Return the number of equations, those of a subjaxpr counted wherever it occurs."""
    return _size(jaxpr)


@memoize(maxsize=1 << 12)
def _size(jaxpr: Jaxpr) -> int:
    return len(jaxpr.eqns) + sum(map(_size, subjaxprs_of(jaxpr)))
