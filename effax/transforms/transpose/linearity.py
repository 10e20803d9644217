"""Linearity: which values of a program depend on its linear inputs.

A value is fixed if it depends on no linear input, wanted if it depends on one with a wanted
cotangent, and unwanted otherwise. A call that computes fixed and linear values is split in two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from effax.effects import Accum, Alloc, ArgIndex, Free, Row, SideEffect, Write
from effax.ir.analysis.dataflow import Analysis, analyze, close_regions
from effax.ir.build import Builder
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import TransformError
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import Type, is_inexact
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.propagation import Mask, mentions_refs
from effax.transforms.framework.rules import Indivisible, PartialEvalOut, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.rules.common.arrays import zeros

Kind = int
"""The dependence of a value on linear inputs; the greatest of its operands' kinds."""

FIXED: Final[Kind] = 0
UNWANTED: Final[Kind] = 1
WANTED: Final[Kind] = 2

Kinds = tuple[Kind, ...]


@dataclass(frozen=True)
class _Linear(Analysis[Kind]):
    """Every result of an equation has the greatest kind among its operands."""

    bottom = FIXED

    def join(self, first: Kind, second: Kind) -> Kind:
        return max(first, second)

    def transfer(self, eqn: Eqn, ins: Kinds) -> Kinds:
        return (max(ins, default=FIXED),) * len(eqn.outs)

    def tracks(self, type_: Type) -> bool:
        return is_inexact(type_)


LINEAR: Final = _Linear()


class Call(NamedTuple):
    """A call that is linear in part.

    Attributes:
        eqn: the equation.
        types: the types of its operands.
        kinds: the kinds of its operands, closed over carries.
        linear_outs: which results depend on a linear operand.
        written_later: whether a later equation changes a fixed reference that it uses.
    """

    eqn: Eqn
    types: tuple[Type, ...]
    kinds: Kinds
    linear_outs: Mask
    written_later: bool


Splitter = Callable[[RuleSet, Call], PartialEvalOut | None]


class Linearity:
    """The kinds of all values, from one sweep forward.

    A call that is linear in part sets ``mixed``; ``split`` splits it if it can. So does a test for
    nan of a linear value: it is fixed, since a linear program is the same for all numbers.
    """

    nonlinear_effects: bool
    mixed: bool

    def __init__(self, jaxpr: Jaxpr, ins: Kinds, rules: RuleSet, split: Splitter | None) -> None:
        self.jaxpr = jaxpr
        self.rules = rules
        self.split = split
        self.mixed = False
        self.changed: dict[int, int] | None = None
        self.refs: bool = mentions_refs(jaxpr)
        self.kinds: list[Kind] = _first_kinds(jaxpr, ins, self.refs)
        # The operand kinds of each equation; None: it is fixed.
        self.steps: list[Kinds | None] = []
        self.splits: dict[int, tuple[PartialEvalOut, Kinds]] = {}
        self.nan_tests: set[int] = set()
        # Whether a linear equation also has effects that do not depend on linear inputs.
        self.nonlinear_effects = False
        kinds, push = self.kinds, self.steps.append
        for eqn in jaxpr.eqns:
            prim, args, outs, effects, _ = eqn
            given = tuple([FIXED if type(a) is Lit else kinds[a.id] for a in args])
            top = WANTED if WANTED in given else UNWANTED if UNWANTED in given else FIXED
            if top and prim.subjaxprs() and prim.regions():
                push(self._call(eqn, given))
                continue
            if top and len(args) == 2 and args[0] == args[1] and rules.of(prim).tests_nan:
                self.mixed = True
                self.nan_tests.add(len(self.steps))
                push(None)
                continue
            made = False
            for v in outs:
                if kinds[v.id] < top:
                    kinds[v.id] = top
                # A reference with fixed initial contents may have linear values written later.
                elif effects and kinds[v.id]:
                    made = True
            if top and effects and effects.side_effects:
                # A side effect on linear operands: its transpose rule raises, or handles it.
                self.nonlinear_effects = True
            push(given if top or made else None)

    def _call(self, eqn: Eqn, given: Kinds) -> Kinds:
        types = tuple([a.type for a in eqn.ins])
        closed, results = close_regions(LINEAR, eqn.prim, given)
        outs = tuple([kind > FIXED for kind in results])
        for v, kind in zip(eqn.outs, results, strict=True):
            self.kinds[v.id] = kind
        self.nonlinear_effects = self.nonlinear_effects or bool(fixed_effects(eqn, closed))
        if self.split is not None and is_mixed(eqn, closed, outs):
            self.mixed = True
            call = Call(eqn, types, closed, outs, self._is_written_later(eqn, closed))
            parts = self.split(self.rules, call)
            if parts is not None:
                self.splits[len(self.steps)] = (parts, closed)
        return closed

    def _is_written_later(self, eqn: Eqn, kinds: Kinds) -> bool:
        """Return whether a later equation changes a fixed reference that this one uses."""
        used = [e.ref for e in fixed_effects(eqn, kinds) if not isinstance(e, SideEffect)]
        if not used:
            return False
        if self.changed is None:
            self.changed = _last_changes(self.jaxpr)
        return any(
            self.changed.get(ref.id, -1) > len(self.steps)
            for i in used
            if isinstance(ref := eqn.ins[i], Var)
        )


def _last_changes(jaxpr: Jaxpr) -> dict[int, int]:
    """Return the position of the last equation that changes each reference, by its number."""
    return {
        ref.id: at
        for at, eqn in enumerate(jaxpr.eqns)
        for e in eqn.effects
        if isinstance(e, Write | Accum | Free) and isinstance(ref := eqn.ins[e.ref], Var)
    }


def split_by_rule(rules: RuleSet, call: Call) -> PartialEvalOut | None:
    """Split a call by the partial evaluation rule of its primitive."""
    if _is_pure_loop(call):
        return None
    rule = rules.of(call.eqn.prim).split
    if isinstance(rule, Indivisible):
        return None
    known = tuple([kind == FIXED for kind in call.kinds])
    return rule(rules, call.eqn.prim, call.types, known, None)


def _is_pure_loop(call: Call) -> bool:
    """Return whether it is a loop on a predicate without fixed effects: a split would not pay."""
    tests = [region.jaxpr for region in call.eqn.prim.regions() if region.is_predicate]
    if not tests or call.written_later or any(test.effects.changes_state for test in tests):
        return False
    return not fixed_effects(call.eqn, call.kinds).changes_state


def split_by_copy(rules: RuleSet, call: Call) -> PartialEvalOut | None:
    """Split a call into one that computes the fixed results only, and the call itself.

    Common equations run twice, so the call must have no observable fixed effects.
    """
    eqn, types, kinds, linear_outs, _ = call
    if all(linear_outs) or fixed_effects(eqn, kinds).changes_state:
        return None
    b = Builder(types)
    outs = b.emit(eqn.prim, b.binders, eqn.source)
    fixed_outs = tuple([not has for has in linear_outs])
    fixed = tuple([kind == FIXED for kind in kinds])
    known = dce.uncached(b.finish(outs), fixed_outs, (False,) * len(types), fixed, rules)
    if any(used and not has for used, has in zip(known.used_ins, fixed, strict=True)):
        return None
    unknown = b.finish([v for v, has in zip(outs, linear_outs, strict=True) if has])
    return PartialEvalOut(known.jaxpr, unknown, fixed_outs, 0, tuple(range(len(types))))


def _first_kinds(jaxpr: Jaxpr, ins: Kinds, refs: bool) -> list[Kind]:
    """Return the kinds of the inputs, by variable number; with references, those of all variables.

    Raises TransformError if a linear value is written to a fixed reference.
    """
    if not refs:
        kinds = [FIXED] * jaxpr.size
        for v, kind in zip(jaxpr.binders, ins, strict=True):
            kinds[v.id] = kind
        return kinds
    found = analyze(LINEAR, jaxpr, ins)
    for i, (kind, now) in enumerate(zip(ins, found.ins, strict=True)):
        if now and not kind:
            raise TransformError(
                f"a linear value is written to {jaxpr.name_of(i)}, which is not linear",
                found=str(jaxpr.binders[i].type),
                remedy="mark it linear: GradRef() for its gradient, or DontWant()",
            )
    return list(found.variables)


def fixed_effects(eqn: Eqn, kinds: Kinds) -> Row[ArgIndex]:
    """Return the side effects of an equation, and its effects on fixed references."""
    return Row(
        e
        for e in eqn.effects
        if isinstance(e, SideEffect) or not (isinstance(e, Alloc) or kinds[e.ref])
    )


def is_mixed(eqn: Eqn, kinds: Kinds, linear_outs: Mask) -> bool:
    """Return whether a call has fixed parts: a result, a carry, or an effect."""
    carries = (c for region in eqn.prim.regions() for c in region.carry_to)
    return (
        not all(linear_outs)
        or any(c is not None and not kinds[c] for c in carries)
        or bool(fixed_effects(eqn, kinds))
    )


def split_calls(jaxpr: Jaxpr, found: Linearity) -> Jaxpr:
    """Return the program with each split call replaced by its known and unknown jaxprs, inlined.

    Tests of linear values for nan are replaced by False.
    """
    made = Rewriter(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        args = made.operands(eqn)
        if i in found.splits:
            made.replace(eqn, _inline_split(made.b, *found.splits[i], args))
        elif i in found.nan_tests:
            made.replace(eqn, [zeros(made.b, v.type) for v in eqn.outs])
        else:
            made.keep(eqn, args)
    return made.build(made.results())


def _inline_split(
    b: Builder, split: PartialEvalOut, kinds: Kinds, args: Sequence[Atom]
) -> list[Atom]:
    """Inline the known, then the unknown jaxpr of a call; return the results of the call."""
    given = [a for a, kind in zip(args, kinds, strict=True) if not kind]
    first = b.inline_jaxpr(split.known, given)
    n = len(first) - split.n_residuals
    rest = b.inline_jaxpr(split.unknown, [*first[n:], *[args[i] for i in split.unknown_args]])
    known, unknown = iter(first[:n]), iter(rest)
    return [next(known) if has else next(unknown) for has in split.known_outs]
