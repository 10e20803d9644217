"""The engine of partial evaluation: which equation goes in which half.

Nothing is renumbered here: both halves speak of the variables of the program that is divided, and
of fresh ones for what rules put in the place of an application.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from effax.effects import Alloc, ArgIndex, Row, SideEffect, commutes
from effax.effects.order import COMMUTING_KINDS
from effax.ir.build import Template, Where
from effax.ir.edit.without_io import without_io
from effax.ir.errors import EffaxError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.renumber import numbered
from effax.transforms.framework.rules import Policy, RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.partial_eval.template import (
    PartialEvalTemplate,
    partial_eval_rule,
    partial_eval_template,
)


class Partition(NamedTuple):
    """A divided program: ``early`` equations on known values, and ``late`` ones.

    Attributes:
        jaxpr: the program.
        known_ins: which inputs are known.
        known_outs: which results the early half gives.
        early: equations that the known inputs decide.
        late: all others, after those that are computed again.
        early_outs: the results that the early half gives.
        late_outs: the others.
        residuals: known variables that the late half uses, once each, in order of use.
        size: one more than the greatest number of a variable.
    """

    jaxpr: Jaxpr
    known_ins: Mask
    known_outs: Mask
    early: Sequence[Eqn]
    late: Sequence[Eqn]
    early_outs: Sequence[Atom]
    late_outs: Sequence[Atom]
    residuals: Sequence[Var]
    size: int


def partition(
    jaxpr: Jaxpr, known: Mask, policy: Policy | None, forced: Mask, rules: RuleSet
) -> Partition:
    """Divide a program; ``forced`` are the results that the late half gives in any case.

    A reference that is made here and is found to be needed late is late from its beginning: the
    search starts again with that known, once for each step of a chain of such references.
    """
    late_refs: set[int] = set()
    while True:
        run = _Division(jaxpr, known, policy, rules, late_refs)
        run.go()
        if not run.again:
            return run.finish(known, forced)


class _Again(NamedTuple):
    """A call under a policy.

    Attributes:
        early: gives all results, then what the policy keeps.
        late: gives the results that are not kept, from what is.
        taken: where each input of ``late`` is in ``(*inputs, *results of early)``.
    """

    early: Jaxpr
    late: Jaxpr
    taken: tuple[int, ...]


@memoize(maxsize=1024)
def _call_again(jaxpr: Jaxpr, again: Mask, policy: Policy | None, rules: RuleSet) -> _Again:
    """How a call is done, and how those of its results are computed again that ``again`` marks."""
    known = (True,) * len(jaxpr.binders)
    halves = partition(jaxpr, known, policy, again, rules)
    first, second = iter(halves.early_outs), iter(halves.late_outs)
    outs = [next(second) if flag else next(first) for flag in again]
    places = {v.id: i for i, v in enumerate(jaxpr.binders)}
    for i, (a, flag) in enumerate(zip(outs, again, strict=True), len(known)):
        if isinstance(a, Var) and not flag:
            places.setdefault(a.id, i)
    extra = [v for v in halves.residuals if v.id not in places]
    places.update((v.id, len(known) + len(outs) + i) for i, v in enumerate(extra))
    return _Again(
        numbered(jaxpr.binders, halves.early, [*outs, *extra], halves.size, jaxpr.n_consts),
        numbered(halves.residuals, halves.late, halves.late_outs, halves.size),
        tuple([places[v.id] for v in halves.residuals]),
    )


class _Division:
    """One sweep over the program."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        known: Mask,
        policy: Policy | None,
        rules: RuleSet,
        late_refs: set[int],
    ) -> None:
        self.jaxpr = jaxpr
        self.policy = policy
        self.rules = rules
        self.early: list[Eqn] = []
        self.late: list[Eqn] = []
        # By variable number: whether the value is known in the late half only.
        self.unknown = [False] * jaxpr.size
        for v, has in zip(jaxpr.binders, known, strict=True):
            self.unknown[v.id] = not has
        # What a rule gave as the value of a variable, where that is a value from before.
        self.alias: dict[int, Atom] = {}
        # The caller's references, with the kinds of late effects on each; known ones made here.
        self.outer: dict[int, set[type]] = {
            v.id: set() for v in jaxpr.binders if isinstance(v.type, RefType)
        }
        self.made: set[int] = set()
        self.late_refs = late_refs
        self.again = False
        # Late effects on the outside world.
        self.late_host: set[SideEffect] = set()
        # Known variables that the late half computes again, with position and equation.
        self.repeat: dict[int, tuple[int, Eqn]] = {}
        # Whether the equations of a type of primitive need more than their arguments' marks.
        self.special: dict[type[Primitive], bool] = {}

    def go(self) -> None:
        unknown, special = self.unknown, self.special
        push_early, push_late = self.early.append, self.late.append
        for eqn in self.jaxpr.eqns:
            if self.alias:
                eqn = self.resolved(eqn)  # noqa: PLW2901  # the same equation, on older variables
            prim, ins, outs, effects, _ = eqn
            if effects:
                self.step(eqn)
                continue
            late, constant = False, True
            for a in ins:
                if type(a) is not Lit:
                    constant = False
                    if unknown[a.id]:
                        late = True
                        break
            if late:
                kind = type(prim)
                if kind not in special:
                    special[kind] = self.is_special(prim)
                if special[kind]:
                    self.step(eqn)
                    continue
                for v in outs:
                    unknown[v.id] = True
                push_late(eqn)
            elif constant or self.policy is not None:
                push_early(self.consider_repeating(eqn, constant))
            else:
                push_early(eqn)

    def is_special(self, prim: Primitive) -> bool:
        return bool(prim.subjaxprs()) or partial_eval_rule(self.rules, prim) is not None

    def resolved(self, eqn: Eqn) -> Eqn:
        return eqn._replace(ins=tuple([self.value(a) for a in eqn.ins]))

    def value(self, atom: Atom) -> Atom:
        return self.alias.get(atom.id, atom) if isinstance(atom, Var) else atom

    def is_known(self, atom: Atom) -> bool:
        return not (isinstance(atom, Var) and self.unknown[atom.id])

    def consider_repeating(self, eqn: Eqn, constant: bool) -> Eqn:
        """Note that the late half repeats it: a constant, or what may not be kept.

        Gives the equation for the early half.
        """
        if constant:
            repeated = not eqn.prim.subjaxprs()
        else:
            takes_ref = any(isinstance(a.type, RefType) for a in eqn.ins)
            repeated = self.policy is not None and not takes_ref and not self.policy(eqn)
        if repeated and eqn.prim.is_call:
            return self.call_again(eqn, len(self.early), ())
        if repeated:
            for v in eqn.outs:
                self.repeat[v.id] = (len(self.early), eqn)
        return eqn

    def call_again(self, call: Eqn, position: int, kept: Collection[int]) -> Eqn:
        """Note that the late half repeats a call, but for what the policy keeps inside of it.

        Gives the early call, which hands that over too. Results in ``kept`` are not repeated.
        """
        prim = call.prim
        again = tuple([v.id not in kept for v in call.outs])
        if True not in again:
            return call
        found = _call_again(prim.subjaxprs()[0], again, self.policy, self.rules)
        fresh = [self.fresh(a.type) for a in found.early.outs[len(call.outs) :]]
        early = call
        if fresh:
            early = call._replace(
                prim=prim.with_subjaxprs([found.early]), outs=(*call.outs, *fresh)
            )
        values = [*call.ins, *early.outs]
        late = call._replace(
            prim=prim.with_subjaxprs([found.late]),
            ins=tuple([values[i] for i in found.taken]),
            outs=tuple([v for v, flag in zip(call.outs, again, strict=True) if flag]),
        )
        self.repeat.update((v.id, (position, late)) for v in late.outs)
        return early

    def step(self, eqn: Eqn) -> None:
        """Place an equation that has effects, holds programs or can be split."""
        usable = tuple(
            [self.is_known(a) and not self.conflicts(eqn, i) for i, a in enumerate(eqn.ins)]
        )
        ordered = not all(
            commutes(e, late) for e in eqn.effects.side_effects for late in self.late_host
        )
        if all(usable) and not ordered and not any(v.id in self.late_refs for v in eqn.outs):
            self.keep_early(eqn)
            return
        split = None
        # What a held program computes of nothing is known too.
        if not ordered and (any(usable) or eqn.prim.subjaxprs()):
            types = tuple([a.type for a in eqn.ins])
            try:
                split = partial_eval_template(self.rules, eqn.prim, types, usable, self.policy)
            except EffaxError as error:
                located(error, eqn)
                raise
        if split is None:
            self.keep_late(eqn)
            return
        taken = [eqn.ins[i] for i in split.unknown_args if usable[i]]
        if self.give_up(taken):
            self.step(eqn)
        else:
            self.keep_both(eqn, split, usable)

    def conflicts(self, eqn: Eqn, index: int) -> bool:
        """Whether what it does to this reference may not go before a late effect on it."""
        ref = eqn.ins[index]
        late = self.outer.get(ref.id) if isinstance(ref, Var) else None
        if not late:
            return False
        kinds = [type(e) for e in eqn.effects.on(ArgIndex(index))]
        return any((kind, other) not in COMMUTING_KINDS for kind in kinds for other in late)

    def give_up(self, atoms: Sequence[Atom]) -> bool:
        """Make references that are made here, and that the late half needs, late as a whole."""
        needed = {a.id for a in atoms if isinstance(a, Var)} & self.made
        for i in needed:
            self.made.discard(i)
            self.late_refs.add(i)
            self.unknown[i] = self.again = True
        return bool(needed)

    def keep_early(self, eqn: Eqn) -> None:
        for effect in eqn.effects:
            if isinstance(effect, Alloc):
                self.made.add(eqn.outs[effect.ref].id)
        self.consider_silence(eqn)
        self.early.append(eqn)

    def consider_silence(self, eqn: Eqn) -> None:
        """Note that the late half does again what may not be kept, without what it tells others."""
        if self.policy is None or not eqn.effects.side_effects or self.policy(eqn):
            return
        quiet = without_io(eqn)
        if quiet is not None and not _uses_refs(quiet):
            self.repeat.update((v.id, (len(self.early), quiet)) for v in eqn.outs)

    def keep_late(self, eqn: Eqn) -> None:
        self.give_up(eqn.ins)
        self.note_late_effects(eqn.effects, eqn.ins)
        for v in eqn.outs:
            self.unknown[v.id] = True
        self.late.append(eqn)

    def note_late_effects(self, effects: Row[ArgIndex], args: Sequence[Atom]) -> None:
        """Remember late effects on the caller's references and on the outside world."""
        for effect in effects:
            match effect:
                case SideEffect():
                    self.late_host.add(effect)
                case Alloc():
                    pass
                case _:
                    ref = args[effect.ref]
                    if isinstance(ref, Var) and ref.id in self.outer:
                        self.outer[ref.id].add(type(effect))

    def keep_both(self, eqn: Eqn, split: PartialEvalTemplate, usable: Mask) -> None:
        """Put both parts of a split application in the place of the equation."""
        known_args = [a for a, has in zip(eqn.ins, usable, strict=True) if has]
        known_outs = [v for v, has in zip(eqn.outs, split.known_outs, strict=True) if has]
        late_outs = [v for v, has in zip(eqn.outs, split.known_outs, strict=True) if not has]
        first = len(self.early)
        results = self.place(split.known, known_args, known_outs, self.early, False, eqn.source)
        residuals = results[len(known_outs) :]
        self.repeat_parts(eqn, first, residuals)
        late_args = [*residuals, *[eqn.ins[i] for i in split.unknown_args]]
        self.note_late_effects(split.unknown_effects, late_args)
        self.place(split.unknown, late_args, late_outs, self.late, True, eqn.source)

    def repeat_parts(self, eqn: Eqn, first: int, residuals: Sequence[Atom]) -> None:
        """Constants among the early parts are computed again, and what the policy says of ``eqn``.

        Its residuals are kept: the policy was asked about each of them inside.
        """
        kept = {a.id for a in residuals if isinstance(a, Var)}
        again = self.policy is not None and not self.policy(eqn)
        for position in range(first, len(self.early)):
            part = without_io(self.early[position])
            if part is None or _uses_refs(part):
                continue
            constant = not part.prim.subjaxprs() and all(isinstance(a, Lit) for a in part.ins)
            if again and part.prim.is_call and part is self.early[position]:
                self.early[position] = self.call_again(part, position, kept)
                continue
            for v in part.outs:
                if constant or (again and v.id not in kept):
                    self.repeat[v.id] = (position, part)

    def place(
        self,
        body: Template,
        args: Sequence[Atom],
        results: Sequence[Var],
        half: list[Eqn],
        late: bool,
        source: Where,
    ) -> list[Atom]:
        """Append a template's equations; its first results become the variables ``results``."""
        env: list[Atom] = [*args, *body.lits]
        named: dict[int, Var] = {}
        for slot, v in zip(body.outs, results, strict=False):
            if slot >= len(env):
                named.setdefault(slot, v)
        for prim, slots, out_types, effects in body.steps:
            ins = tuple([env[s] for s in slots])
            outs = []
            for type_ in out_types:
                v = named.get(len(env)) or self.fresh(type_)
                self.unknown[v.id] = late
                env.append(v)
                outs.append(v)
            half.append(Eqn(prim, ins, tuple(outs), effects, source))
        given = [env[s] for s in body.outs]
        for v, a in zip(results, given, strict=False):
            if a is not v:
                self.alias[v.id] = a
        return given

    def fresh(self, type_: Type) -> Var:
        self.unknown.append(False)
        return Var(len(self.unknown) - 1, type_)

    def finish(self, known_ins: Mask, forced: Mask) -> Partition:
        outs = [self.value(a) for a in self.jaxpr.outs]
        known_outs = tuple(
            [self.is_known(a) and not late for a, late in zip(outs, forced, strict=True)]
        )
        late_outs = [a for a, has in zip(outs, known_outs, strict=True) if not has]
        residuals, repeated = self.residuals(late_outs)
        return Partition(
            self.jaxpr,
            known_ins,
            known_outs,
            self.early,
            [*repeated, *self.late],
            [a for a, has in zip(outs, known_outs, strict=True) if has],
            late_outs,
            residuals,
            len(self.unknown),
        )

    def residuals(self, late_outs: Sequence[Atom]) -> tuple[list[Var], list[Eqn]]:
        """What the late half uses of the early one, and the equations that it does again."""
        unknown = self.unknown
        used: dict[int, Var] = {}
        for eqn in self.late:
            for a in eqn.ins:
                if type(a) is not Lit and not unknown[a.id]:
                    used[a.id] = a
        used.update((a.id, a) for a in late_outs if isinstance(a, Var) and not unknown[a.id])
        if not self.repeat:
            return list(used.values()), []
        kept: dict[int, Var] = {}
        repeated: dict[int, Eqn] = {}
        todo = list(reversed(used.values()))
        while todo:
            v = todo.pop()
            found = self.repeat.get(v.id)
            if found is None:
                kept[v.id] = v
                continue
            position, again = found
            if position not in repeated:
                repeated[position] = again
                todo += [a for a in reversed(again.ins) if isinstance(a, Var)]
        return list(kept.values()), [repeated[i] for i in sorted(repeated)]


def _uses_refs(eqn: Eqn) -> bool:
    return bool(eqn.effects) or any(isinstance(a.type, RefType) for a in eqn.ins)
