"""The form of reverse mode: fused, an equation at a time, or two passes over the whole program.

The fused form builds no linear program. It requires that each equation can be differentiated by
itself: the program has no effects, and neither has the derivative of an equation. The choice reads
types, effects and templates; an error that a rule raises is never part of it.

Two sweeps, each over the equations once: forward for the values that have tangents, backward for
the values that have a cotangent or are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.effects import NO_EFFECTS
from effax.ir.edit.uses_first import uses_first
from effax.ir.errors import EffaxError, TransformError
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, is_inexact
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.jvp import check_tangents
from effax.transforms.reverse.template import (
    Application,
    NotFused,
    ReverseTemplate,
    application,
    reverse_template,
)
from effax.transforms.smooth_squares import smooth_squares
from effax.transforms.transpose.plan import add_wholes

Step = tuple[Eqn, ReverseTemplate | None]
"""An equation with its template; None: it runs forward, unchanged."""


class Composed(NamedTuple):
    """The program is linearized, then transposed, as a whole.

    Attributes:
        reason: why the fused form does not apply.
    """

    reason: str


class Fused(NamedTuple):
    """Each equation is differentiated by itself.

    Attributes:
        jaxpr: the program.
        tangents: which inputs have a tangent.
        cts: which results have a cotangent.
        reached: which of those cotangents reach an input with a tangent.
        steps: the equations of the forward sweep, in order, with their templates.
        accumulated: the numbers of the arrays whose cotangents are summed in place.
    """

    jaxpr: Jaxpr
    tangents: Mask
    cts: Mask
    reached: Mask
    steps: Sequence[Step]
    accumulated: frozenset[int]


def plan_reverse(
    jaxpr: Jaxpr, tangents: Sequence[bool], cts: Sequence[bool], rules: RuleSet
) -> Fused | Composed:
    """Choose the form of reverse mode for a program.

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether its cotangent is a result.
        cts: one entry a result: whether it has a cotangent.
        rules: the rules.

    Raises:
        TransformError: an entry is missing; an input or a result has no tangents; a rule is
            missing or fails, at its equation.
    """
    check_tangents(jaxpr, tangents)
    _check_cotangents(jaxpr, cts)
    for i, v in enumerate(jaxpr.binders):
        if isinstance(v.type, RefType):
            return Composed(f"{jaxpr.name_of(i)} is a reference")
    jaxpr = smooth_squares(jaxpr)
    eqns = list(jaxpr.eqns)
    for eqn in eqns:
        if eqn.effects is not NO_EFFECTS and eqn.effects:
            return Composed(f"{eqn.prim.name} has effects")
    has_tangent, found = _tangents(jaxpr, eqns, tangents, rules)
    return _Liveness(jaxpr, has_tangent, rules).plan(eqns, found, tuple(tangents), tuple(cts))


def _check_cotangents(jaxpr: Jaxpr, cts: Sequence[bool]) -> None:
    if len(cts) != len(jaxpr.outs):
        raise TransformError(
            "reverse needs one entry of `cts` for each result",
            expected=str(len(jaxpr.outs)),
            found=str(len(cts)),
        )
    for i, (type_, has) in enumerate(zip(jaxpr.out_types, cts, strict=True)):
        if has and not is_inexact(type_):
            raise TransformError(
                f"result {i} has no cotangent: only floats and complex numbers do",
                found=str(type_),
            )


def _tangents(
    jaxpr: Jaxpr, eqns: Sequence[Eqn], tangents: Sequence[bool], rules: RuleSet
) -> tuple[list[bool], list[Application | None]]:
    """Sweep forward: which values have a tangent, and the equations of which an operand has one."""
    has = [False] * jaxpr.size
    for v, tangent in zip(jaxpr.binders, tangents, strict=True):
        has[v.id] = tangent
    found: list[Application | None] = []
    push = found.append
    for eqn in eqns:
        prim, ins, outs, _, _ = eqn
        mask = tuple([type(a) is not Lit and has[a.id] for a in ins])
        if True not in mask:
            push(None)
            continue
        try:
            applied = application(rules, prim, tuple([a.type for a in ins]), mask)
        except EffaxError as error:
            raise _located(error, eqn) from None
        push(applied)
        if len(outs) == 1:
            (has[outs[0].id],) = applied.out_tangents
            continue
        for v, tangent in zip(outs, applied.out_tangents, strict=True):
            has[v.id] = tangent
    return has, found


def _located(error: EffaxError, eqn: Eqn) -> EffaxError:
    """Set the equation of an error.

    An equation without a source that the error has already is one of the template, whose variables
    are numbered differently: it is replaced.
    """
    if error.source is None:
        error.equation = None
    return located(error, eqn)


class _Liveness:
    """The values that have a cotangent, and those that are used, from one sweep backward."""

    def __init__(self, jaxpr: Jaxpr, has_tangent: Sequence[bool], rules: RuleSet) -> None:
        self.jaxpr = jaxpr
        self.rules = rules
        self.has_tangent = has_tangent
        self.has_cotangent = [False] * jaxpr.size
        self.needed = [False] * jaxpr.size
        self.uses = [0] * jaxpr.size
        self.in_part: set[int] = set()

    def plan(
        self, eqns: Sequence[Eqn], found: Sequence[Application | None], tangents: Mask, cts: Mask
    ) -> Fused | Composed:
        reached = self._begin(cts)
        steps = self._sweep(eqns, found)
        accumulated = frozenset([i for i in self.in_part if self.uses[i] > 1])
        if accumulated and not isinstance(steps, NotFused):
            steps = self._with_places(steps, accumulated)
        if isinstance(steps, NotFused):
            return Composed(steps.reason)
        return Fused(self.jaxpr, tangents, cts, reached, steps, accumulated)

    def _sweep(
        self, eqns: Sequence[Eqn], found: Sequence[Application | None]
    ) -> list[Step] | NotFused:
        """Choose the template of each live equation, and mark the values that it uses."""
        has_cotangent, needed = self.has_cotangent, self.needed
        steps: list[Step] = []
        for eqn, applied in zip(reversed(eqns), reversed(found), strict=True):
            outs = eqn.outs
            k = outs[0].id if len(outs) == 1 else None
            rule: ReverseTemplate | NotFused | None
            try:
                if applied is not None and k is not None and has_cotangent[k] and needed[k]:
                    rule = applied.template  # most equations
                elif any([needed[v.id] or has_cotangent[v.id] for v in outs]):  # noqa: C419  # a list is faster
                    rule = self._template(eqn, applied)
                else:
                    continue
            except EffaxError as error:
                raise _located(error, eqn) from None
            if isinstance(rule, NotFused):
                return rule
            self._use(eqn.ins, rule)
            steps.append((eqn, rule))
        steps.reverse()
        return steps

    def _use(self, ins: Sequence[Atom], rule: ReverseTemplate | None) -> None:
        """Mark the operands that an equation uses, and those that get a cotangent from it."""
        needed = self.needed
        if rule is None:
            for a in ins:
                if type(a) is not Lit:
                    needed[a.id] = True
            return
        for i in rule.ct_operands:
            k = ins[i].id  # type: ignore[union-attr]  # a variable: it has a tangent
            self.has_cotangent[k] = True
            self.uses[k] += 1
            if i in rule.in_part:
                self.in_part.add(k)
        for i in rule.uses:
            a = ins[i]
            if type(a) is not Lit:
                needed[a.id] = True

    def _with_places(
        self, steps: Sequence[Step], accumulated: frozenset[int]
    ) -> list[Step] | NotFused:
        """Return the steps with templates that add to accumulated cotangents in place."""
        changed: list[Step] = []
        for eqn, rule in steps:
            in_place = None if rule is None else self._in_place(eqn, rule, accumulated)
            if isinstance(in_place, NotFused):
                return in_place
            changed.append((eqn, in_place))
        # The sum of an array begins with a whole cotangent where there is one.
        ends: dict[int, list[Var]] = {}
        for k, (eqn, rule) in enumerate(changed):
            if rule is not None:
                wholes = [eqn.ins[i] for i in rule.ct_operands if i not in rule.in_part]
                add_wholes(ends, k, wholes, accumulated)
        return [changed[k] for k in uses_first([eqn for eqn, _ in changed], ends)]

    def _begin(self, cts: Mask) -> Mask:
        """Mark the results of the program; return which of their cotangents reach an input."""
        outs = self.jaxpr.outs
        reached = [
            ct and isinstance(a, Var) and self.has_tangent[a.id]
            for a, ct in zip(outs, cts, strict=True)
        ]
        for a, ct in zip(outs, reached, strict=True):
            if isinstance(a, Var):
                self.needed[a.id] = True
                if ct:
                    self.has_cotangent[a.id] = True
                    self.uses[a.id] += 1
        return tuple(reached)

    def _template(self, eqn: Eqn, applied: Application | None) -> ReverseTemplate | NotFused | None:
        """Return the template of an equation; None if it runs forward unchanged."""
        if applied is None and not eqn.prim.subjaxprs():
            return None
        # An unused result is removed, from subjaxprs too.
        cts = tuple([self.has_cotangent[v.id] for v in eqn.outs])
        needed = tuple([self.needed[v.id] for v in eqn.outs])
        return self._reverse_template(eqn, cts, needed)

    def _reverse_template(
        self, eqn: Eqn, cts: Mask, needed: Mask, places: tuple[int, ...] = ()
    ) -> ReverseTemplate | NotFused:
        types = tuple([a.type for a in eqn.ins])
        mask = tuple([isinstance(a, Var) and self.has_tangent[a.id] for a in eqn.ins])
        return reverse_template(self.rules, eqn.prim, types, mask, cts, needed, places)

    def _in_place(
        self, eqn: Eqn, rule: ReverseTemplate, accumulated: frozenset[int]
    ) -> ReverseTemplate | NotFused:
        """Return the template that adds cotangents in place, for arrays that are used in part."""
        ins = eqn.ins
        places = [
            i
            for i in rule.in_part
            if i in rule.ct_operands and isinstance(a := ins[i], Var) and a.id in accumulated
        ]
        if not places:
            return rule
        cts = tuple([self.has_cotangent[v.id] for v in eqn.outs])
        needed = tuple([self.needed[v.id] for v in eqn.outs])
        made = self._reverse_template(eqn, cts, needed, tuple(places))
        once = tuple({ins[i]: i for i in places}.values())
        if len(once) < len(places) and isinstance(made, ReverseTemplate) and _takes_two(made):
            # No alias: a reference is passed once, and a second cotangent is returned.
            made = self._reverse_template(eqn, cts, needed, once)
        return made


def _takes_two(rule: ReverseTemplate) -> bool:
    """Return whether an equation of the backward template takes two of the references."""
    refs = range(len(rule.picks), len(rule.picks) + len(rule.ref_operands))
    return any(sum(slot in refs for slot in step.slots) > 1 for step in rule.backward.steps)
