"""Matching of sequences of equations, whose effects let them follow each other.

The equations between the steps are moved before the first or behind the last step, by the
commutation table; if one can be moved neither way, the sequence does not match. Nothing is moved in
fact: the steps might have followed each other, and that makes the rule right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from effax.effects import Alloc, Effect, Read, SideEffect, VarId, commutes
from effax.ir.analysis.queries import Path, PathStep, Place, effects_on_variables, steps_into
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.transforms.optimize.matcher import Match, Scope, match_app, match_name
from effax.transforms.optimize.patterns import ANY, App, Let, Seq, sequences
from effax.transforms.optimize.rewrite_rule import RewriteRule, operands_of

WINDOW: Final = 32
"""The most equations on a reference, or uses of a value, between the steps of a sequence."""

SIDE: Final = -1
"""The key of the equations with side effects."""


class Equations:
    """The equations so far, and where their variables are bound, used and accessed.

    ``sync`` takes in equations that were appended to the list; the work is linear.

    Attributes:
        eqns: the equations.
        by_var: by number, the equation that binds each variable.
        index_of: by number, its position.
        users: by number, the positions of the equations that have it as operand.
        touching: by number, those with effects on the reference.
        past: by number, the count of its uses by equations.
        removed: the positions of equations that are gone.
    """

    def __init__(self, eqns: list[Eqn], by_var: dict[int, Eqn] | None = None) -> None:
        self.eqns = eqns
        self.by_var: dict[int, Eqn] = {} if by_var is None else by_var
        self.index_of: dict[int, int] = {}
        self.users: dict[int, list[int]] = {}
        self.touching: dict[int, list[int]] = {}
        self.past: dict[int, int] = {}
        self.removed: set[int] = set()
        self._seen = 0

    def sync(self) -> None:
        """Take in the equations that were appended."""
        for i in range(self._seen, len(self.eqns)):
            eqn = self.eqns[i]
            for a in eqn.ins:
                if isinstance(a, Var):
                    self.past[a.id] = self.past.get(a.id, 0) + 1
                    places = self.users.setdefault(a.id, [])
                    if not places or places[-1] != i:
                        places.append(i)
            for v in eqn.outs:
                self.index_of[v.id] = i
                self.by_var[v.id] = eqn
            for key in wrap_words(eqn) if eqn.effects else ():
                self.touching.setdefault(key, []).append(i)
        self._seen = len(self.eqns)

    def remove(self, index: int) -> None:
        """Remove an equation: its operands have fewer uses."""
        self.removed.add(index)
        for a in self.eqns[index].ins:
            if isinstance(a, Var):
                self.past[a.id] -= 1

    def uses_in(self, v: Var, places: Iterable[int]) -> int:
        """Return how often equations at these positions use a variable."""
        return sum(a == v for i in places for a in self.eqns[i].ins)

    def between(self, keys: Iterable[int], first: int) -> list[int] | None:
        """Return the later equations on these references, in order; None if there are too many."""
        found: set[int] = set()
        for key in keys:
            for n, i in enumerate(reversed(self.touching.get(key, ()))):
                if i <= first:
                    break
                if n > WINDOW:
                    return None
                found.add(i)
        return sorted(found - self.removed)


def wrap_words(eqn: Eqn) -> list[int]:
    """Return the references on which an equation has effects, by number; ``SIDE`` for others."""
    effects = effects_on_variables(eqn)
    keys = {SIDE if isinstance(e, SideEffect) else int(e.ref): None for e in effects}
    return list(keys)


class FoundSequence(NamedTuple):
    """A sequence that was found: its match, and the position of each step."""

    match: Match
    places: tuple[int, ...]


def find_sequence(rule: RewriteRule, seq: Seq, last: int, known: Equations) -> FoundSequence | None:
    """Return the match of a sequence whose last step is at a position; None without one.

    Effects are not compared: see ``may_follow``.
    """
    match = Match()
    match.outside = rule.outside
    steps = seq.steps
    if not _match_step(steps[-1], last, known, match):
        return None
    places = [last] * len(steps)
    for j in range(len(steps) - 2, -1, -1):
        found = _find_step(steps[j], places[j + 1 :], known, match)
        if found is None:
            return None
        match, places[j] = found
    first = known.eqns[places[0]].ins
    if rule.families != ANY and (not first or family(first[0].type.dtype) not in rule.families):
        return None
    return FoundSequence(match, tuple(places))


def _find_step(
    step: Let, later: Sequence[int], known: Equations, match: Match
) -> tuple[Match, int] | None:
    for i in _candidates(step, later, known, match):
        tried = match.copy()
        if _match_step(step, i, known, tried):
            return tried, i
    return None


def _candidates(step: Let, later: Sequence[int], known: Equations, match: Match) -> Iterable[int]:
    """Return the positions where a step may be: where its result is bound, or its operand used."""
    eqns, removed = known.eqns, known.removed
    for name in step.names:
        atom = match.atoms.get(name)
        if atom is not None:
            i = known.index_of.get(atom.id) if isinstance(atom, Var) else None
            return [] if i is None or i in removed or i in later else [i]
    # Effects keep the order of the steps; pure equations have none.
    bound = min([i for i in later if eqns[i].effects], default=len(eqns))
    for name in operands_of(step):
        atom = match.atoms.get(name)
        if isinstance(atom, Var):
            places = known.users.get(atom.id, [])[-WINDOW:]
            near = [i for i in reversed(places) if i not in removed and i not in later]
            return [i for i in near if i < bound or not eqns[i].effects]
    return []


def _match_step(step: Let, index: int, known: Equations, match: Match) -> bool:
    eqn = known.eqns[index]
    scope = Scope(known.by_var)
    if step.names and len(step.names) != len(eqn.outs):
        return False
    app = step.value
    named = zip(step.names, eqn.outs, strict=False)
    return (
        isinstance(app, App)
        and match_app(app, eqn, scope, match)
        and all(match_name(name, v, scope, match) for name, v in named)
    )


def members(found: FoundSequence, known: Equations) -> list[int]:
    """Return the positions of all matched equations, in order."""
    inner = [known.index_of[eqn.outs[0].id] for eqn in found.match.inside]
    return sorted({*found.places, *inner})


def may_follow(places: Sequence[int], known: Equations, new: Sequence[Effect[VarId]] = ()) -> bool:
    """Return whether equations could follow each other, and effects behind the last replace theirs.

    Args:
        places: the positions of the equations, in order.
        known: the equations.
        new: the effects of equations that are placed behind all.
    """
    active = [i for i in places if known.eqns[i].effects]
    if not active or (len(active) == 1 and active[0] == len(known.eqns) - 1):
        return True
    keys = {key for i in active for key in wrap_words(known.eqns[i])}
    gaps = known.between(keys, active[0])
    if gaps is None:
        return False
    own = set(active)
    effects = {i: effects_on_variables(known.eqns[i]) for i in {*active, *gaps}}
    behind: list[Effect[VarId]] = []
    for g in gaps:
        if g in own:
            continue
        before = [e for i in active if i < g for e in effects[i]]
        if _commute(effects[g], [*before, *behind]):
            continue
        after = [e for i in active if i > g for e in effects[i]]
        if not _commute(effects[g], [*after, *new]):
            return False
        behind += effects[g]
    return True


def _commute(first: Iterable[Effect[VarId]], second: Sequence[Effect[VarId]]) -> bool:
    return all(commutes(a, b) for a in first for b in second)


def is_removable(eqn: Eqn) -> bool:
    """Return whether an equation whose results are unused is dead."""
    return all(isinstance(e, Read) for e in eqn.effects)


def allocated(eqns: Iterable[Eqn]) -> set[int]:
    """Return the references that equations allocate, by number."""
    return {
        eqn.outs[e.ref].id for eqn in eqns for e in eqn.effects if isinstance(e, Alloc) and eqn.outs
    }


def match(pattern: App | Seq | RewriteRule, jaxpr: Jaxpr) -> tuple[Match, ...]:
    """Return the matches of a pattern, or of the left side of a rule, in all programs of one.

    Each equation is the last of one match at most; matches may overlap. They are in program order,
    those of a subjaxpr behind those of the program that contains it, as ``walk`` visits them. The
    positions of a match are those of all its equations, in the program ``match.jaxpr``.

    ::

        for found in match(App(Mul, App(Exp, "x"), "y"), jaxpr):
            print(found.path, found.positions, found.atoms["x"])

    Raises:
        BadArgument: the first argument is not a pattern, or the second not a program.
    """
    rule = _as_rule(pattern)
    if not isinstance(jaxpr, Jaxpr):
        raise BadArgument(
            "match takes a pattern and a program",
            expected="`match(pattern, jaxpr)`",
            found=f"{jaxpr!r:.60}",
            remedy="its program is `.jaxpr`" if hasattr(jaxpr, "jaxpr") else None,
        )
    found: list[Match] = []
    for path, program in _programs(jaxpr):
        found += _matches(rule, path, program)
    return tuple(found)


def _as_rule(pattern: object) -> RewriteRule:
    if isinstance(pattern, RewriteRule):
        return pattern
    if isinstance(pattern, App | Seq):
        return RewriteRule("of match", pattern, lambda match: Seq())
    raise BadArgument(
        "match takes a pattern and a program",
        expected="`App(...)`, `Seq(...)` or a rule",
        found=f"{pattern!r:.60}",
        remedy="the pattern comes first: `match(pattern, jaxpr)`"
        if isinstance(pattern, Jaxpr)
        else None,
    )


def _programs(jaxpr: Jaxpr) -> Iterable[tuple[tuple[PathStep, ...], Jaxpr]]:
    """Yield all programs, outermost first; a shared one once, as ``walk`` does."""
    seen = {jaxpr}
    waiting: list[tuple[tuple[PathStep, ...], Jaxpr]] = [((), jaxpr)]
    while waiting:
        path, program = waiting.pop()
        yield path, program
        inner: list[tuple[tuple[PathStep, ...], Jaxpr]] = []
        for i, eqn in enumerate(program.eqns):
            nested = eqn.prim.subjaxprs()
            for one, step in zip(
                nested, steps_into(Place(path, program, i)) if nested else (), strict=True
            ):
                if one not in seen:
                    seen.add(one)
                    inner.append(((*path, step), one))
        waiting += reversed(inner)


def _matches(rule: RewriteRule, path: tuple[PathStep, ...], jaxpr: Jaxpr) -> Iterable[Match]:
    variants = sequences(rule.left)
    kind: type[Primitive] = variants[0].steps[-1].value.kind  # type: ignore[union-attr]  # checked
    known = Equations([])
    for eqn in jaxpr.eqns:
        known.eqns.append(eqn)
        known.sync()
        if type(eqn.prim) is not kind:
            continue
        for seq in variants:
            found = find_sequence(rule, seq, len(known.eqns) - 1, known)
            if found is None or not may_follow(members(found, known), known):
                continue
            made = found.match
            made.path, made.jaxpr = Path(path), jaxpr
            made.positions = tuple(members(found, known))
            if rule.where is None or rule.where(made):
                yield made
                break
