"""Replacement of sequences, of equations with effects, and of those with several results.

Steps of the right side that begin it and are steps of the left side stay where they are. The other
equations of the left side are removed; those of the right side are placed behind the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from effax.effects import Effect, SideEffect, VarId
from effax.ir.analysis.queries import effects_on_variables
from effax.ir.edit.renumber import numbered
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import TransformError
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import Type
from effax.transforms.optimize.matcher import Match
from effax.transforms.optimize.patterns import App, Let, Pattern, Seq
from effax.transforms.optimize.replacement import UNFIT, Emit, Replacement, Unfit
from effax.transforms.optimize.rewrite_cost import CostFunction, cheaper
from effax.transforms.optimize.rewrite_rule import RewriteRule, kept_steps, steps_of
from effax.transforms.optimize.rule_effects import effects_fault
from effax.transforms.optimize.sequence_matcher import (
    Equations,
    FoundSequence,
    allocated,
    find_sequence,
    is_removable,
    may_follow,
    members,
)

ROUNDS: Final = 16
"""At most this many rules apply to the equations of one in sequence: a set of rules may cycle."""


class OrderedSeq(NamedTuple):
    """A rule, and its left side as a sequence, in one order of the operands that commute."""

    rule: RewriteRule
    left: Seq


SequencesByClass = Mapping[type[Primitive], Sequence[OrderedSeq]]
"""The sequences, by the class of the last step."""

Decide = Callable[[RewriteRule, Match], Pattern | Seq | None]
"""A function that returns the right side for a match, or None if the condition does not hold."""


def endless(rule: RewriteRule, eqn: Eqn) -> TransformError:
    """Return the error for a rule that applies to an equation after many applications."""
    return TransformError(
        f"rewriting does not end: the rule {rule.name} applies again to what it made",
        expected=f"a rule that applies at most {ROUNDS} times in sequence",
        found=f"one application more, to {eqn}",
        remedy="`where=`, a condition of the rule, or a cost that decreases: "
        "`rewriting(rules, cost=equation_count)`",
    )


class SequenceRewriter:
    """Rules on sequences, in one run over a program.

    Attributes:
        known: the equations of the new program so far.
        alias: by number, what replaces results of removed equations.
    """

    def __init__(
        self,
        made: Rewriter,
        rules: SequencesByClass,
        by_var: dict[int, Eqn],
        emit: Emit,
        decide: Decide,
        cost: CostFunction | None,
        may_cycle: bool = False,
    ) -> None:
        self.made = made
        self.may_cycle = may_cycle
        self.rules = rules
        self.emit = emit
        self.decide = decide
        self.cost = cost
        self.known: Equations = Equations(made.b.eqns, by_var)
        self.alias: dict[int, Atom] = {}
        # By number in the old program, the uses by equations that are not reached yet.
        self.future: list[int] = [0] * made.jaxpr.size
        for eqn in made.jaxpr.eqns:
            self._count(eqn.ins, 1)
        self._count(made.jaxpr.outs, 1)
        self.olds: dict[int, list[int]] = {}
        for old, new in zip(made.jaxpr.binders, made.b.binders, strict=True):
            self.bound(old, new)

    def _count(self, atoms: Iterable[Atom], n: int) -> None:
        for a in atoms:
            if isinstance(a, Var):
                self.future[a.id] += n

    def bound(self, old: Var, atom: Atom) -> None:
        """Note that a variable of the old program is this atom."""
        if isinstance(atom, Var):
            self.olds.setdefault(atom.id, []).append(old.id)

    def reach(self, eqn: Eqn, ins: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """Return the operands of an old equation that is next, replaced results excluded."""
        self._count(eqn.ins, -1)
        return tuple(map(self.resolved, ins)) if self.alias else ins

    def resolved(self, atom: Atom) -> Atom:
        """Return what replaces an atom; itself if it is not replaced."""
        while isinstance(atom, Var) and atom.id in self.alias:
            atom = self.alias[atom.id]
        return atom

    def uses(self, v: Var, gone: Iterable[int] = ()) -> int:
        """Return the number of uses of a variable, those of equations at ``gone`` excluded."""
        later = sum(self.future[old] for old in self.olds.get(v.id, ()))
        return self.known.past.get(v.id, 0) + later - self.known.uses_in(v, gone)

    def dead_inside(self, match: Match, gone: set[int]) -> set[int]:
        """Return ``gone`` and the matched equations inside of others that are then unused."""
        named = {a.id for a in match.atoms.values() if isinstance(a, Var)}
        found = {*gone}
        known = self.known
        inner = {known.index_of[eqn.outs[0].id]: eqn for eqn in match.inside}
        for i in sorted(inner, reverse=True):
            outs = inner[i].outs
            free = not any(v.id in named or self.uses(v, found) for v in outs)
            if is_removable(inner[i]) and free and i not in known.removed:
                found.add(i)
        return found

    def settle(self, start: int) -> None:
        """Apply the rules to the equations from a position on, and to what replaces them."""
        eqns = self.made.b.eqns
        used: list[RewriteRule] = []
        while start < len(eqns):
            self.known.sync()
            if start not in self.known.removed and len(used) <= ROUNDS:
                eqn = eqns[start]
                rules = self.rules.get(type(eqn.prim), ())
                one = next((r for r, seq in rules if self._applied(r, seq, start)), None)
                used += [] if one is None else [one]
                if (
                    len(used) > ROUNDS
                    and len({id(rule) for rule in used}) == 1
                    and not self.may_cycle
                ):
                    raise endless(used[0], eqn)
            start += 1

    def _applied(self, rule: RewriteRule, seq: Seq, last: int) -> bool:
        found = find_sequence(rule, seq, last, self.known)
        if found is None or not self._is_own(rule, found):
            return False
        right = self.decide(rule, found.match)
        if right is None:
            return False
        b = self.made.b
        begun = len(b.eqns), b.next_id
        try:
            self._replace(rule, found, right, begun[0])
        except UNFIT:
            del b.eqns[begun[0] :]
            b.next_id = begun[1]
            return False
        return True

    def _is_own(self, rule: RewriteRule, found: FoundSequence) -> bool:
        """Return whether equations are not those that the rewriter of single equations replaces."""
        root = self.known.eqns[found.places[-1]]
        return (
            isinstance(rule.left, Seq)
            or bool(root.effects)
            or len(root.outs) != 1
            or any(eqn.effects for eqn in found.match.inside)
        )

    def _replace(
        self, rule: RewriteRule, found: FoundSequence, right: Pattern | Seq, start: int
    ) -> None:
        """Replace the equations of a match. Raises Unfit or EffaxError where that fails."""
        left, steps = steps_of(rule.left), steps_of(right)
        kept = kept_steps(left, steps)
        eqns = self.known.eqns
        gone = {i for k, i in enumerate(found.places) if k not in kept}
        gone = self.dead_inside(found.match, gone)
        made = Replacement(found.match, self.emit)
        for k in kept:
            made.values.update((name, found.match.atoms[name]) for name in left[k].names)
        values = self._values(rule, found, steps[len(kept) :], made)
        self._check_values(values, gone, start)
        new = eqns[start:]
        self._check_effects(found, gone, new)
        old = [eqns[i] for i in sorted(gone)]
        if _same(new, old) or (self.cost is not None and not cheaper(self.cost, new, old)):
            raise Unfit
        self._commit(values, gone)

    def _values(
        self, rule: RewriteRule, found: FoundSequence, steps: Sequence[Let], made: Replacement
    ) -> list[tuple[Var, Atom | None]]:
        """Return the results of the left side, each with what replaces it; append the equations."""
        eqns = self.known.eqns
        if isinstance(rule.left, App):
            outs = eqns[found.places[-1]].outs
            new = _step(steps[0].value, [v.type for v in outs], made)
            if len(new) != len(outs):
                raise Unfit
            return [*zip(outs, new, strict=True)]
        left = steps_of(rule.left)
        olds = {
            n: v for s, i in zip(left, found.places, strict=True) for n, v in _named(s, eqns[i])
        }
        for step in steps:
            types = [olds[name].type for name in step.names if name in olds]
            values = _step(step.value, types, made)
            if step.names and len(values) != len(step.names):
                raise Unfit
            made.values.update(zip(step.names, values, strict=False))
        names = {v: name for name, v in olds.items()}
        results = [v for i in found.places for v in eqns[i].outs]
        return [(v, made.values.get(names.get(v, ""))) for v in results]

    def _check_values(
        self, values: Sequence[tuple[Var, Atom | None]], gone: set[int], start: int
    ) -> None:
        """Raise Unfit if a result is used that no value replaces, or before the value.

        Also the result of a step that stays may be another one without those before it.
        """
        index_of, past = self.known.index_of, self.known.past
        for v, a in values:
            if v == a or (a is not None and index_of[v.id] not in gone):
                continue
            if a is None:
                if self.uses(v, gone):
                    raise Unfit
                continue
            before = past.get(v.id, 0) - self.known.uses_in(v, gone)
            if a.type is not v.type or (before and isinstance(a, Var) and a.id > v.id):
                raise Unfit

    def _check_effects(self, found: FoundSequence, gone: set[int], new: Sequence[Eqn]) -> None:
        eqns, places = self.known.eqns, members(found, self.known)
        own = allocated(eqns[i] for i in places)
        before = _accesses([eqns[i] for i in places], own)
        after = _accesses([*[eqns[i] for i in places if i not in gone], *new], own)
        effects: list[Effect[VarId]] = [e for eqn in new for e in effects_on_variables(eqn)]
        if effects_fault(before, after) or not may_follow(places, self.known, effects):
            raise Unfit

    def _commit(self, values: Sequence[tuple[Var, Atom | None]], gone: set[int]) -> None:
        self.made.changed = True
        known = self.known
        known.sync()
        for i in gone:
            known.remove(i)
        for v, a in values:
            if a is None or v == a or known.index_of[v.id] not in gone:
                continue
            self.alias[v.id] = a
            if isinstance(a, Var):
                known.past[a.id] = known.past.get(a.id, 0) + known.past.get(v.id, 0)
                self.olds.setdefault(a.id, []).extend(self.olds.get(v.id, ()))

    def finish(self) -> Jaxpr:
        """Return the new program, or the old one if it did not change."""
        made, b = self.made, self.made.b
        if not self.known.removed and not self.alias:
            return made.finish()
        eqns = [
            eqn._replace(ins=tuple(map(self.resolved, eqn.ins)))
            for i, eqn in enumerate(b.eqns)
            if i not in self.known.removed
        ]
        outs = [self.resolved(a) for a in made.results()]
        jaxpr = made.jaxpr
        return numbered(b.binders, eqns, outs, b.next_id, jaxpr.n_consts, jaxpr.names)


def _named(step: Let, eqn: Eqn) -> list[tuple[str, Var]]:
    return [*zip(step.names, eqn.outs, strict=False)]


def _step(value: Pattern, types: Sequence[Type], made: Replacement) -> tuple[Atom, ...]:
    """Append the equations of a step, and return its results."""
    if isinstance(value, App):
        like = types[0] if types else None
        prim, ins = made.application(value, like)
        return made.emit(prim, ins)
    if not types:
        raise Unfit
    return (made.whole(value, types[0]),)


def _accesses(eqns: Iterable[Eqn], own: set[int]) -> list[tuple[type, object]]:
    """Return the kinds of effects of equations, each with its reference, in order."""
    found: list[tuple[type, object]] = []
    for eqn in eqns:
        for e in effects_on_variables(eqn):
            if isinstance(e, SideEffect):
                found.append((type(e), ""))
            elif e.ref not in own:
                found.append((type(e), e.ref))
    return found


def _same(new: Sequence[Eqn], old: Sequence[Eqn]) -> bool:
    """Return whether equations are the same applications: then a rule makes no progress."""
    return [(e.prim, e.ins) for e in new] == [(e.prim, e.ins) for e in old]
