"""What a program says about itself: who binds and uses a variable, what lives, what is in order.

All of it is linear in the size of the program, and plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from effax.effects import Alloc, Effect, Row, SideEffect, VarId, commutes
from effax.effects.row import effect_text
from effax.ir.memo import memoize
from effax.ir.recursion import subjaxprs_of
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var


class Place(NamedTuple):
    """An equation, and where it is.

    Attributes:
        path: the held programs that lead to it, outermost first: ("scan", "cond, program 1").
        jaxpr: the program that it is in.
        position: its position there.
    """

    path: tuple[str, ...]
    jaxpr: Jaxpr
    position: int

    @property
    def eqn(self) -> Eqn:
        """The equation."""
        return self.jaxpr.eqns[self.position]


def walk(jaxpr: Jaxpr) -> Iterator[Place]:
    """Every equation, in program order, those of held programs after the equation that holds them.

    A program that is held many times is walked once, where it is met first.
    """
    seen = {jaxpr}
    stack: list[Iterator[Place]] = [_places(jaxpr, ())]
    while stack:
        place = next(stack[-1], None)
        if place is None:
            stack.pop()
            continue
        yield place
        held = place.eqn.prim.subjaxprs()
        for i, program in reversed([*enumerate(held)]):
            if program not in seen:
                seen.add(program)
                name = place.eqn.prim.name
                step = name if len(held) == 1 else f"{name}, program {i}"
                stack.append(_places(program, (*place.path, step)))


def _places(jaxpr: Jaxpr, path: tuple[str, ...]) -> Iterator[Place]:
    return (Place(path, jaxpr, i) for i in range(len(jaxpr.eqns)))


class Definition(NamedTuple):
    """Where a variable is bound: result ``position`` of equation ``eqn``; of the inputs if None."""

    eqn: int | None
    position: int


class Use(NamedTuple):
    """Where a variable is used: argument ``position`` of equation ``eqn``; a result if None."""

    eqn: int | None
    position: int


@dataclass(frozen=True)
class DefUse:
    """Definitions and uses of every variable of one program, by number."""

    definitions: dict[int, Definition]
    uses: dict[int, tuple[Use, ...]]

    def uses_of(self, v: Var) -> tuple[Use, ...]:
        """Where the variable is used, in program order."""
        return self.uses.get(v.id, ())

    def definition_of(self, v: Var) -> Definition:
        """Where the variable is bound. Raises KeyError where it is not of this program."""
        return self.definitions[v.id]


def def_use(jaxpr: Jaxpr) -> DefUse:
    """Who binds and who uses each variable of the program; held programs have their own."""
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
    """What equations use and do not bind themselves, in order of first use: their inputs."""
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
    """From where to where each variable is needed.

    A variable lives in the gaps between equations: gap ``i`` is before equation ``i``, the last one
    before the results. It lives in gaps ``born[v] .. last[v]``, and in none if nothing uses it.
    """

    variables: tuple[Var, ...]
    born: dict[int, int]
    last: dict[int, int]

    def at(self, gap: int) -> tuple[Var, ...]:
        """Return the variables that are bound before the gap and used after it."""
        return tuple(v for v in self.variables if self.born[v.id] <= gap <= self.last.get(v.id, -1))

    def dies_at(self, v: Var, eqn: int) -> bool:
        """Return whether nothing after this equation uses the variable."""
        return self.last.get(v.id, -1) <= eqn


def liveness(jaxpr: Jaxpr) -> Liveness:
    """Where each variable lives."""
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
"""What effects are in order on: a reference by the number of its variable, or the outside world.

For that it is the effect as text, such as ``io stdout``, or two effects that do not commute.
"""


@dataclass(frozen=True)
class EffectOrder:
    """What effects keep in order, as runs along each reference and each host channel.

    The equations of one run commute on that thread; each dominates those of all later runs: it
    happens before them in whatever order a pass puts the program.
    """

    runs: dict[Thread, tuple[tuple[int, ...], ...]]
    places: dict[int, tuple[tuple[Thread, int], ...]]

    def dominates(self, first: int, second: int) -> bool:
        """Return whether effects alone keep equation ``first`` before equation ``second``."""
        later = dict(self.places.get(second, ()))
        return any(run < later.get(thread, -1) for thread, run in self.places.get(first, ()))


def effect_order(jaxpr: Jaxpr) -> EffectOrder:
    """Which equations must keep their order because of what they do, by the commutation table."""
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
    """Return the effects of an equation, allocations aside, by the variables that it applies to."""

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
