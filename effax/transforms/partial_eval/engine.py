"""The engine of partial evaluation: a partition of the equations into known and unknown ones.

All known equations run before all unknown ones. So a known equation may be moved over the unknown
ones before it only if its effects commute with theirs; otherwise it is unknown too. A local
reference is known or unknown as a whole, with every access to it.

Variables keep their numbers; the equations of rules get fresh ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from effax.effects import Alloc, ArgIndex, Row, SideEffect, commutes
from effax.effects.order import COMMUTING_KINDS
from effax.ir.build import Template, Where
from effax.ir.edit.renumber import numbered
from effax.ir.edit.without_io import without_io
from effax.ir.errors import EffaxError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Policy, RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.partial_eval.template import (
    PartialEvalTemplate,
    partial_eval_rule,
    partial_eval_template,
)


class Partition(NamedTuple):
    """The equations of a program, partitioned.

    Attributes:
        jaxpr: the program.
        known_ins: which inputs are known.
        known_outs: which results are known.
        known_eqns: the equations that depend on known inputs only.
        unknown_eqns: all others, after recomputed known ones.
        known_results: the results that are known.
        unknown_results: the others.
        residuals: known variables that unknown equations use, once each, in order of use.
        size: one more than the greatest number of a variable.
    """

    jaxpr: Jaxpr
    known_ins: Mask
    known_outs: Mask
    known_eqns: Sequence[Eqn]
    unknown_eqns: Sequence[Eqn]
    known_results: Sequence[Atom]
    unknown_results: Sequence[Atom]
    residuals: Sequence[Var]
    size: int


def partition(
    jaxpr: Jaxpr, known: Mask, policy: Policy | None, forced: Mask, rules: RuleSet
) -> Partition:
    """Partition the equations of a program; results that ``forced`` marks are unknown.

    A local reference that an unknown equation uses is unknown from its allocation on, which is
    found out after earlier accesses were placed: the sweep restarts with that fact. Each restart
    adds a reference to ``unknown_refs``, so there are at most as many as allocations.
    """
    unknown_refs: set[int] = set()
    while True:
        run = _Partitioner(jaxpr, known, policy, rules, unknown_refs)
        run.sweep()
        if not run.restart:
            return run.finish(known, forced)


class _Recomputed(NamedTuple):
    """A call whose results are recomputed in part.

    Attributes:
        known: returns all results, then the residuals that the policy keeps.
        unknown: returns the results that are recomputed, from those residuals.
        operands: the position of each input of ``unknown`` in ``(*inputs, *results of known)``.
    """

    known: Jaxpr
    unknown: Jaxpr
    operands: tuple[int, ...]


@memoize(maxsize=1024)
def _recompute(jaxpr: Jaxpr, which: Mask, policy: Policy | None, rules: RuleSet) -> _Recomputed:
    """Split a called program, so that the unknown jaxpr recomputes the results ``which``."""
    known = (True,) * len(jaxpr.binders)
    parts = partition(jaxpr, known, policy, which, rules)
    kept, recomputed = iter(parts.known_results), iter(parts.unknown_results)
    outs = [next(recomputed) if flag else next(kept) for flag in which]
    places = {v.id: i for i, v in enumerate(jaxpr.binders)}
    for i, (a, flag) in enumerate(zip(outs, which, strict=True), len(known)):
        if isinstance(a, Var) and not flag:
            places.setdefault(a.id, i)
    extra = [v for v in parts.residuals if v.id not in places]
    places.update((v.id, len(known) + len(outs) + i) for i, v in enumerate(extra))
    return _Recomputed(
        numbered(jaxpr.binders, parts.known_eqns, [*outs, *extra], parts.size, jaxpr.n_consts),
        numbered(parts.residuals, parts.unknown_eqns, parts.unknown_results, parts.size),
        tuple([places[v.id] for v in parts.residuals]),
    )


class _Partitioner:
    """One sweep over the equations, in program order."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        known: Mask,
        policy: Policy | None,
        rules: RuleSet,
        unknown_refs: set[int],
    ) -> None:
        self.jaxpr = jaxpr
        self.policy = policy
        self.rules = rules
        self.known_eqns: list[Eqn] = []
        self.unknown_eqns: list[Eqn] = []
        self.unknown = [False] * jaxpr.size
        for v, has in zip(jaxpr.binders, known, strict=True):
            self.unknown[v.id] = not has
        # Results for which a rule returned an operand or a literal: no equation binds them.
        self.alias: dict[int, Atom] = {}
        # The kinds of unknown effects so far: on each of the caller's references, and side effects.
        self.outer: dict[int, set[type]] = {
            v.id: set() for v in jaxpr.binders if isinstance(v.type, RefType)
        }
        self.unknown_io: set[SideEffect] = set()
        # Allocated references: known so far, and unknown (from an earlier sweep, or this one).
        self.local_refs: set[int] = set()
        self.unknown_refs = unknown_refs
        self.restart = False
        # Known variables that are recomputed: the position and equation of the recomputation.
        self.recomputed: dict[int, tuple[int, Eqn]] = {}
        # By type of primitive: whether a rule or subjaxprs may split its equations.
        self.splittable: dict[type[Primitive], bool] = {}

    def sweep(self) -> None:
        unknown, splittable = self.unknown, self.splittable
        push_known, push_unknown = self.known_eqns.append, self.unknown_eqns.append
        for eqn in self.jaxpr.eqns:
            if self.alias:
                eqn = self.resolved(eqn)  # noqa: PLW2901  # the same equation, without aliases
            prim, ins, outs, effects, _ = eqn
            if effects:
                self.step(eqn)
                continue
            is_unknown, constant = False, True
            for a in ins:
                if type(a) is not Lit:
                    constant = False
                    if unknown[a.id]:
                        is_unknown = True
                        break
            if is_unknown:
                kind = type(prim)
                if kind not in splittable:
                    splittable[kind] = self.is_splittable(prim)
                if splittable[kind]:
                    self.step(eqn)
                    continue
                for v in outs:
                    unknown[v.id] = True
                push_unknown(eqn)
            elif constant or self.policy is not None:
                push_known(self.apply_policy(eqn, constant))
            else:
                push_known(eqn)

    def is_splittable(self, prim: Primitive) -> bool:
        return bool(prim.subjaxprs()) or partial_eval_rule(self.rules, prim) is not None

    def resolved(self, eqn: Eqn) -> Eqn:
        return eqn._replace(ins=tuple([self.value(a) for a in eqn.ins]))

    def value(self, atom: Atom) -> Atom:
        return self.alias.get(atom.id, atom) if isinstance(atom, Var) else atom

    def is_known(self, atom: Atom) -> bool:
        return not (isinstance(atom, Var) and self.unknown[atom.id])

    def apply_policy(self, eqn: Eqn, constant: bool) -> Eqn:
        """Record a known equation whose results are recomputed: a constant, or by the policy.

        Return the known equation.
        """
        if constant:
            recomputed = not eqn.prim.subjaxprs()
        else:
            takes_ref = any(isinstance(a.type, RefType) for a in eqn.ins)
            recomputed = self.policy is not None and not takes_ref and not self.policy(eqn)
        if recomputed and eqn.prim.is_call:
            return self.recompute_call(eqn, len(self.known_eqns), ())
        if recomputed:
            for v in eqn.outs:
                self.recomputed[v.id] = (len(self.known_eqns), eqn)
        return eqn

    def recompute_call(self, call: Eqn, position: int, kept: Collection[int]) -> Eqn:
        """Record that a call is recomputed, except for the values in it that the policy keeps.

        Return the known call, which returns those values too. Results in ``kept`` are residuals.
        """
        prim = call.prim
        which = tuple([v.id not in kept for v in call.outs])
        if True not in which:
            return call
        found = _recompute(prim.subjaxprs()[0], which, self.policy, self.rules)
        fresh = [self.fresh(a.type) for a in found.known.outs[len(call.outs) :]]
        known = call
        if fresh:
            known = call._replace(
                prim=prim.with_subjaxprs([found.known]), outs=(*call.outs, *fresh)
            )
        values = [*call.ins, *known.outs]
        unknown = call._replace(
            prim=prim.with_subjaxprs([found.unknown]),
            ins=tuple([values[i] for i in found.operands]),
            outs=tuple([v for v, flag in zip(call.outs, which, strict=True) if flag]),
        )
        self.recomputed.update((v.id, (position, unknown)) for v in unknown.outs)
        return known

    def step(self, eqn: Eqn) -> None:
        """Place an equation that has effects or subjaxprs, or a rule to split it."""
        usable = tuple(
            [self.is_known(a) and not self.conflicts(eqn, i) for i, a in enumerate(eqn.ins)]
        )
        ordered = not all(
            commutes(e, other) for e in eqn.effects.side_effects for other in self.unknown_io
        )
        if all(usable) and not ordered and not any(v.id in self.unknown_refs for v in eqn.outs):
            self.keep_known(eqn)
            return
        split = None
        # A subjaxpr may compute known values without any known operand.
        if not ordered and (any(usable) or eqn.prim.subjaxprs()):
            types = tuple([a.type for a in eqn.ins])
            try:
                split = partial_eval_template(self.rules, eqn.prim, types, usable, self.policy)
            except EffaxError as error:
                located(error, eqn)
                raise
        if split is None:
            self.keep_unknown(eqn)
            return
        taken = [eqn.ins[i] for i in split.unknown_args if usable[i]]
        if self.make_unknown(taken):
            # Operands that were usable are not any more.
            self.step(eqn)
        else:
            self.keep_both(eqn, split, usable)

    def conflicts(self, eqn: Eqn, index: int) -> bool:
        """Return whether an effect on this reference conflicts with an earlier unknown effect."""
        ref = eqn.ins[index]
        unknown = self.outer.get(ref.id) if isinstance(ref, Var) else None
        if not unknown:
            return False
        kinds = [type(e) for e in eqn.effects.on(ArgIndex(index))]
        return any((kind, other) not in COMMUTING_KINDS for kind in kinds for other in unknown)

    def make_unknown(self, atoms: Sequence[Atom]) -> bool:
        """Make the local references among these atoms unknown; return whether there are any."""
        needed = {a.id for a in atoms if isinstance(a, Var)} & self.local_refs
        for i in needed:
            self.local_refs.discard(i)
            self.unknown_refs.add(i)
            self.unknown[i] = self.restart = True
        return bool(needed)

    def keep_known(self, eqn: Eqn) -> None:
        for effect in eqn.effects:
            if isinstance(effect, Alloc):
                self.local_refs.add(eqn.outs[effect.ref].id)
        self.recompute_without_io(eqn)
        self.known_eqns.append(eqn)

    def recompute_without_io(self, eqn: Eqn) -> None:
        """Record that results of an equation with side effects are recomputed without these."""
        if self.policy is None or not eqn.effects.side_effects or self.policy(eqn):
            return
        pure = without_io(eqn)
        if pure is not None and not _uses_refs(pure):
            self.recomputed.update((v.id, (len(self.known_eqns), pure)) for v in eqn.outs)

    def keep_unknown(self, eqn: Eqn) -> None:
        self.make_unknown(eqn.ins)
        self.record_effects(eqn.effects, eqn.ins)
        for v in eqn.outs:
            self.unknown[v.id] = True
        self.unknown_eqns.append(eqn)

    def record_effects(self, effects: Row[ArgIndex], args: Sequence[Atom]) -> None:
        """Record unknown effects on the caller's references, and unknown side effects."""
        for effect in effects:
            match effect:
                case SideEffect():
                    self.unknown_io.add(effect)
                case Alloc():
                    pass
                case _:
                    ref = args[effect.ref]
                    if isinstance(ref, Var) and ref.id in self.outer:
                        self.outer[ref.id].add(type(effect))

    def keep_both(self, eqn: Eqn, split: PartialEvalTemplate, usable: Mask) -> None:
        """Replace an equation by its known and unknown jaxprs."""
        known_args = [a for a, has in zip(eqn.ins, usable, strict=True) if has]
        known_outs = [v for v, has in zip(eqn.outs, split.known_outs, strict=True) if has]
        unknown_outs = [v for v, has in zip(eqn.outs, split.known_outs, strict=True) if not has]
        first = len(self.known_eqns)
        results = self.place(split.known, known_args, known_outs, False, eqn.source)
        residuals = results[len(known_outs) :]
        self.apply_policy_to_parts(eqn, first, residuals)
        unknown_args = [*residuals, *[eqn.ins[i] for i in split.unknown_args]]
        self.record_effects(split.unknown_effects, unknown_args)
        self.place(split.unknown, unknown_args, unknown_outs, True, eqn.source)

    def apply_policy_to_parts(self, eqn: Eqn, first: int, residuals: Sequence[Atom]) -> None:
        """Record which of the known equations that replaced ``eqn`` are recomputed.

        Constants are, and all if the policy does not keep ``eqn``. Its residuals are kept: the
        rule applied the policy to each of them, in the subjaxpr.
        """
        kept = {a.id for a in residuals if isinstance(a, Var)}
        recomputed = self.policy is not None and not self.policy(eqn)
        for position in range(first, len(self.known_eqns)):
            part = without_io(self.known_eqns[position])
            if part is None or _uses_refs(part):
                continue
            constant = not part.prim.subjaxprs() and all(isinstance(a, Lit) for a in part.ins)
            if recomputed and part.prim.is_call and part is self.known_eqns[position]:
                self.known_eqns[position] = self.recompute_call(part, position, kept)
                continue
            for v in part.outs:
                if constant or (recomputed and v.id not in kept):
                    self.recomputed[v.id] = (position, part)

    def place(
        self,
        body: Template,
        args: Sequence[Atom],
        results: Sequence[Var],
        unknown: bool,
        source: Where,
    ) -> list[Atom]:
        """Append a template's equations; its first results become the variables ``results``."""
        eqns = self.unknown_eqns if unknown else self.known_eqns
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
                self.unknown[v.id] = unknown
                env.append(v)
                outs.append(v)
            eqns.append(Eqn(prim, ins, tuple(outs), effects, source))
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
            [self.is_known(a) and not unknown for a, unknown in zip(outs, forced, strict=True)]
        )
        unknown_results = [a for a, has in zip(outs, known_outs, strict=True) if not has]
        residuals, recomputed = self.residuals(unknown_results)
        return Partition(
            self.jaxpr,
            known_ins,
            known_outs,
            self.known_eqns,
            [*recomputed, *self.unknown_eqns],
            [a for a, has in zip(outs, known_outs, strict=True) if has],
            unknown_results,
            residuals,
            len(self.unknown),
        )

    def residuals(self, unknown_results: Sequence[Atom]) -> tuple[list[Var], list[Eqn]]:
        """Return the residuals, and the known equations that the unknown jaxpr recomputes.

        The operands of a recomputed equation are recomputed, or residuals, in turn.
        """
        unknown = self.unknown
        used: dict[int, Var] = {}
        for eqn in self.unknown_eqns:
            for a in eqn.ins:
                if type(a) is not Lit and not unknown[a.id]:
                    used[a.id] = a
        used.update((a.id, a) for a in unknown_results if isinstance(a, Var) and not unknown[a.id])
        if not self.recomputed:
            return list(used.values()), []
        kept: dict[int, Var] = {}
        recomputed: dict[int, Eqn] = {}
        todo = list(reversed(used.values()))
        while todo:
            v = todo.pop()
            found = self.recomputed.get(v.id)
            if found is None:
                kept[v.id] = v
                continue
            position, eqn = found
            if position not in recomputed:
                recomputed[position] = eqn
                todo += [a for a in reversed(eqn.ins) if isinstance(a, Var)]
        return list(kept.values()), [recomputed[i] for i in sorted(recomputed)]


def _uses_refs(eqn: Eqn) -> bool:
    return bool(eqn.effects) or any(isinstance(a.type, RefType) for a in eqn.ins)
