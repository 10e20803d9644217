"""Which values of a linear program depend on its linear inputs.

Three kinds: those that depend on no linear input, those that depend on one, and those that depend
on one whose cotangent is wanted. A call that computes values of the first kind beside others is
split in two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from effax.effects import Accum, Alloc, ArgIndex, Free, Row, SideEffect, Write
from effax.ir.analysis.dataflow import Analysis, analyze, close_regions
from effax.ir.build import Builder
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import TransformError
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import Type, is_inexact
from effax.transforms.framework.propagation import Mask, mentions_refs
from effax.transforms.framework.rules import Indivisible, PartialEvalOut, RuleSet
from effax.transforms.optimize.dce import dce

Kind = int
"""How a value depends on the linear inputs; the greatest of several wins."""

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
    """A call that is linear in part: the equation, and what of it is linear.

    Attributes:
        eqn: the equation.
        types: of its arguments.
        kinds: of its arguments; what a loop feeds back joins what it is fed back to.
        linear_outs: which results depend on a linear argument.
        written_later: whether a reference that it uses, and that is fixed, is changed later.
    """

    eqn: Eqn
    types: tuple[Type, ...]
    kinds: Kinds
    linear_outs: Mask
    written_later: bool


Splitter = Callable[[RuleSet, Call], PartialEvalOut | None]


class Linearity:
    """The kind of every value, in one sweep forward.

    A call that is linear in part is ``mixed``, and split where ``split`` can.
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
        # One entry an equation; None: it is fixed.
        self.steps: list[Kinds | None] = []
        self.splits: dict[int, tuple[PartialEvalOut, Kinds]] = {}
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
            made = False
            for v in outs:
                if kinds[v.id] < top:
                    kinds[v.id] = top
                # A reference that is made of fixed contents may take linear values.
                elif effects and kinds[v.id]:
                    made = True
            if top and effects and effects.side_effects:
                # An effect that a linear value decides: its rule for transposition tells.
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
            call = Call(eqn, types, closed, outs, self._is_disturbed(eqn, closed))
            halves = self.split(self.rules, call)
            if halves is not None:
                self.splits[len(self.steps)] = (halves, closed)
        return closed

    def _is_disturbed(self, eqn: Eqn, kinds: Kinds) -> bool:
        """Whether a later equation changes a fixed reference that this one uses."""
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
    """For each reference by number the position of the last equation that changes it."""
    return {
        ref.id: at
        for at, eqn in enumerate(jaxpr.eqns)
        for e in eqn.effects
        if isinstance(e, Write | Accum | Free) and isinstance(ref := eqn.ins[e.ref], Var)
    }


def split_by_rule(rules: RuleSet, call: Call) -> PartialEvalOut | None:
    """The halves that the primitive's rule for partial evaluation gives."""
    if _is_pure_loop(call):
        return None
    rule = rules.of(call.eqn.prim).split
    if isinstance(rule, Indivisible):
        return None
    known = tuple([kind == FIXED for kind in call.kinds])
    return rule(rules, call.eqn.prim, call.types, known, None)


def _is_pure_loop(call: Call) -> bool:
    """Whether it is a ``while`` whose unknown half would be all of it, and need no copies."""
    tests = [region.jaxpr for region in call.eqn.prim.regions() if region.is_predicate]
    if not tests or call.written_later or any(test.effects.changes_state for test in tests):
        return False
    return not fixed_effects(call.eqn, call.kinds).changes_state


def split_by_copy(rules: RuleSet, call: Call) -> PartialEvalOut | None:
    """The call for its fixed results alone, without what only linear ones need; and the call.

    What both need is computed twice, so nobody may see it.
    """
    eqn, types, kinds, linear_outs, _ = call
    if all(linear_outs) or fixed_effects(eqn, kinds).changes_state:
        return None
    b = Builder(types)
    outs = b.emit(eqn.prim, b.binders, eqn.source)
    fixed_outs = tuple([not has for has in linear_outs])
    fixed = tuple([kind == FIXED for kind in kinds])
    early = dce.uncached(b.finish(outs), fixed_outs, (False,) * len(types), fixed, rules)
    if any(used and not has for used, has in zip(early.used_ins, fixed, strict=True)):
        return None
    late = b.finish([v for v, has in zip(outs, linear_outs, strict=True) if has])
    return PartialEvalOut(early.jaxpr, late, fixed_outs, 0, tuple(range(len(types))))


def _first_kinds(jaxpr: Jaxpr, ins: Kinds, refs: bool) -> list[Kind]:
    """Return kinds by variable number: of the inputs; where there are references, of everything.

    Raises TransformError where a linear value is written to a reference that is fixed.
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
                remedy="mark it as linear too: GradRef() to have its gradient, or DontWant()",
            )
    return list(found.variables)


def fixed_effects(eqn: Eqn, kinds: Kinds) -> Row[ArgIndex]:
    """The effects of an equation on what is not linear, allocations aside."""
    return Row(
        e
        for e in eqn.effects
        if isinstance(e, SideEffect) or not (isinstance(e, Alloc) or kinds[e.ref])
    )


def is_mixed(eqn: Eqn, kinds: Kinds, linear_outs: Mask) -> bool:
    """Whether a call does something that does not depend on its linear arguments.

    It gives a fixed result, feeds a fixed value back, or has an effect on a fixed reference.
    """
    fed = (feed for region in eqn.prim.regions() for feed in region.carry_to)
    return (
        not all(linear_outs)
        or any(feed is not None and not kinds[feed] for feed in fed)
        or bool(fixed_effects(eqn, kinds))
    )


def split_calls(jaxpr: Jaxpr, found: Linearity) -> Jaxpr:
    """The program with calls that do two things replaced by two, inlined."""
    made = Rewriter(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        args = made.operands(eqn)
        if i in found.splits:
            made.replace(eqn, _halves(made.b, *found.splits[i], args))
        else:
            made.keep(eqn, args)
    return made.build(made.results())


def _halves(b: Builder, split: PartialEvalOut, kinds: Kinds, args: Sequence[Atom]) -> list[Atom]:
    """Both halves of a split call, the known one first; the results of the call."""
    given = [a for a, kind in zip(args, kinds, strict=True) if not kind]
    first = b.inline_jaxpr(split.known, given)
    n = len(first) - split.n_residuals
    rest = b.inline_jaxpr(split.unknown, [*first[n:], *[args[i] for i in split.unknown_args]])
    known, unknown = iter(first[:n]), iter(rest)
    return [next(known) if has else next(unknown) for has in split.known_outs]
