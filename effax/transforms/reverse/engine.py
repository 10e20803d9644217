"""Reverse-mode differentiation in one pass: results and cotangents of inputs, in one program.

Before::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a in (c,) }

After, with a tangent for ``a`` and a cotangent ``b`` of the result::

    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = cos a
        e:f32[] = mul c a
        f:f32[] = mul b c
        g:f32[] = mul b a
        h:f32[] = mul g d
        i:f32[] = add f h
      in (e, i) }

It is linearisation, then transposition. Where a program has no effects, both can be done an
equation at a time: its forward half in order, its backward half in reverse. Three sweeps, each
over the equations once: which values have tangents; which have a cotangent or are used, from the
end; and what that leaves is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from effax.ir.build import Builder
from effax.ir.errors import EffaxError, NotApplicable, TransformError
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, is_inexact, tangent_type
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import as_result
from effax.transforms.linearize import linearize
from effax.transforms.reverse.template import (
    Later,
    ReverseTemplate,
    first_template,
    reverse_template,
)
from effax.transforms.transpose.accumulation import Sums, added
from effax.transforms.transpose.cotangent_spec import GradValue, NonLinear
from effax.transforms.transpose.engine import transpose

_new: Final = tuple.__new__


class Reverse(NamedTuple):
    """The result of :func:`reverse`.

    Attributes:
        jaxpr: ``(*inputs, *cotangents of results) -> (*results, *cotangents that are not zero)``.
        tangents: which inputs have a tangent; the given mask.
        nonzero: one entry an input with a tangent: whether its cotangent is a result.
    """

    jaxpr: Jaxpr
    tangents: Mask
    nonzero: Mask


@as_result
def reverse(
    jaxpr: Jaxpr,
    tangents: Sequence[bool],
    cts: Sequence[bool] | None = None,
    rules: RuleSet | None = None,
) -> Reverse:
    """Run ``jaxpr``, and pull cotangents of its results back to inputs, in one program.

    Type:     (a, b) -> (c, d)  =>  (a, b, tc) -> (c, d, ta)    a has tangents, c has cotangents
    Effects:  those of the program; a cotangent that is used in parts is summed in place.
    Laws:     tests/laws/test_reverse.py
    Raises:   TransformError: as for ``linearize`` and ``transpose``.
    Source:   autodidax, part 4; "You only linearize once".

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether its cotangent is asked for. For an array only.
        cts: which results have a cotangent, each of the result's tangent type; all floating and
            complex ones where it is None.
        rules: the rules; the library's own where it is None.
    """
    given = tuple(map(is_inexact, jaxpr.out_types)) if cts is None else tuple(cts)
    used, wanted = rules_or_default(rules), tuple(tangents)
    _check_cotangents(jaxpr, given)
    plan = plan_reverse(jaxpr, wanted, given, used)
    return _composed(jaxpr, wanted, given, used) if plan is None else assembled(plan)


def _check_cotangents(jaxpr: Jaxpr, cts: Mask) -> None:
    if len(cts) != len(jaxpr.outs):
        raise TransformError(
            "reverse needs one entry of `cts` a result",
            expected=str(len(jaxpr.outs)),
            found=str(len(cts)),
        )
    for i, (type_, has) in enumerate(zip(jaxpr.out_types, cts, strict=True)):
        if has and not is_inexact(type_):
            raise TransformError(
                f"result {i} has no cotangent: only floats and complex numbers do",
                found=str(type_),
            )


def _composed(jaxpr: Jaxpr, tangents: Mask, cts: Mask, rules: RuleSet) -> Reverse:
    """Linearisation and transposition of the whole program, one after the other."""
    done = linearize.uncached(jaxpr, tangents, False, rules)
    ct_specs = (NonLinear(),) * len(done.residuals) + (GradValue(),) * sum(tangents)
    present = tuple([ct for ct, has in zip(cts, done.out_tangents, strict=True) if has])
    pulled = transpose.cached(done.linear, ct_specs, present, rules)
    b = Builder(jaxpr.in_types)
    args = list(b.binders)
    given = _bind_cotangents(b, jaxpr, cts)
    results = b.inline_jaxpr(done.primal, args)
    used = [ct for ct, has in zip(given, done.out_tangents, strict=True) if has and ct is not None]
    values = b.inline_jaxpr(pulled.jaxpr, [*[r.pick(args, results) for r in done.residuals], *used])
    made = b.finish([*results[: len(cts)], *values], jaxpr.n_consts, jaxpr.names)
    return Reverse(without_dead(made), tangents, pulled.nonzero)


def _bind_cotangents(b: Builder, jaxpr: Jaxpr, cts: Mask) -> list[Atom | None]:
    return [
        b.bind(tangent_type(t)) if has else None
        for t, has in zip(jaxpr.out_types, cts, strict=True)
    ]


Step = tuple[Eqn, ReverseTemplate | None]
"""An equation with its template; None: it runs forward, as it is."""


class ReversePlan(NamedTuple):
    """What is built of a program that is differentiated in reverse.

    Attributes:
        jaxpr: the program.
        tangents: which inputs have a tangent.
        cts: which results have a cotangent.
        reached: which of those cotangents flow anywhere.
        steps: the equations that matter, in order.
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
) -> ReversePlan | None:
    """Decide what is built; None where it must be linearised and transposed as a whole.

    That is so where there are effects; where a cotangent goes nowhere; and where a rule fails, of
    which ``linearize`` and ``transpose`` tell.
    """
    if (len(tangents), len(cts)) != (len(jaxpr.binders), len(jaxpr.outs)):
        return None
    for v, has in zip(jaxpr.binders, tangents, strict=True):
        if isinstance(v.type, RefType) or (has and not is_inexact(v.type)):
            return None
    eqns = list(jaxpr.eqns)
    if any([eqn[3].effects for eqn in eqns]):  # noqa: C419  # a list is faster
        return None
    try:
        marked = _Marked(jaxpr, tangents)
        marked.run(eqns, rules)
        return _Flow(jaxpr, marked).plan(eqns, tuple(tangents), tuple(cts), rules)
    except (EffaxError, RecursionError):
        return None


class _Marked:
    """Which values have tangents, and what is known of each equation: one sweep forward."""

    def __init__(self, jaxpr: Jaxpr, tangents: Sequence[bool]) -> None:
        self.has = [False] * jaxpr.size
        for v, has in zip(jaxpr.binders, tangents, strict=True):
            self.has[v.id] = has
        self.found: list[ReverseTemplate | Later | None] = []

    def run(self, eqns: Sequence[Eqn], rules: RuleSet) -> None:
        has, push = self.has, self.found.append
        for prim, ins, outs, _, _ in eqns:
            given = tuple([type(a) is not Lit and has[a[0]] for a in ins])
            if True not in given:
                push(None)
                continue
            found = first_template(rules, prim, tuple([a.type for a in ins]), given)
            push(found)
            if type(found) is ReverseTemplate:
                has[outs[0][0]] = True
            elif found is not None:
                for v, tangent in zip(outs, cast(Later, found).out_tangents, strict=True):
                    has[v.id] = tangent


class _Flow:
    """Where cotangents flow, and which values somebody uses: one sweep backward."""

    def __init__(self, jaxpr: Jaxpr, marked: _Marked) -> None:
        self.jaxpr = jaxpr
        self.has = marked.has
        self.found = marked.found
        self.flows = [False] * jaxpr.size
        self.needed = [False] * jaxpr.size
        self.uses = [0] * jaxpr.size
        self.in_part: set[int] = set()
        self.steps: list[Step] = []

    def plan(
        self, eqns: Sequence[Eqn], tangents: Mask, cts: Mask, rules: RuleSet
    ) -> ReversePlan | None:
        flows, needed, uses, push = self.flows, self.needed, self.uses, self.steps.append
        reached = [
            ct and isinstance(a, Var) and self.has[a.id]
            for a, ct in zip(self.jaxpr.outs, cts, strict=True)
        ]
        for a, ct in zip(self.jaxpr.outs, reached, strict=True):
            if isinstance(a, Var):
                needed[a.id] = True
                if ct:
                    flows[a.id] = True
                    uses[a.id] += 1
        for eqn, found in zip(reversed(eqns), reversed(self.found), strict=True):
            ins, outs = eqn[1], eqn[2]
            if type(found) is not ReverseTemplate or not (flows[outs[0][0]] and needed[outs[0][0]]):
                self._other(eqn, found, rules)
                continue
            for i in found.given:
                k = ins[i][0]  # type: ignore[index]  # a variable: it has a tangent
                flows[k] = True
                uses[k] += 1
            for i in found.uses:
                a = ins[i]
                if type(a) is not Lit:
                    needed[a[0]] = True
            if found.in_part:
                self._note_parts(eqn, found)
            push((eqn, found))
        self.steps.reverse()
        # As in `transpose`: arrays that are used more than once, and in a part only at least once.
        accumulated = frozenset([i for i in self.in_part if uses[i] > 1])
        if accumulated:
            self.steps = [self._placed(step, accumulated, rules) for step in self.steps]
        return ReversePlan(self.jaxpr, tangents, cts, tuple(reached), self.steps, accumulated)

    def _placed(self, step: Step, accumulated: frozenset[int], rules: RuleSet) -> Step:
        """The step with cotangents added in place, those of arrays that it uses in a part."""
        eqn, rule = step
        if rule is None or not rule.in_part:
            return step
        ins = eqn.ins
        places = [
            i
            for i in rule.in_part
            if i in rule.given and isinstance(a := ins[i], Var) and a.id in accumulated
        ]
        if not places:
            return step
        types = tuple([a.type for a in eqn.ins])
        mask = tuple([isinstance(a, Var) and self.has[a.id] for a in eqn.ins])
        cts = tuple([self.flows[v.id] for v in eqn.outs])
        needed = tuple([self.needed[v.id] for v in eqn.outs])
        made = reverse_template(rules, eqn.prim, types, mask, cts, needed, tuple(places))
        once = tuple({ins[i]: i for i in places}.values())
        if len(once) < len(places) and _takes_two(made):
            # One reference is not passed twice.
            made = reverse_template(rules, eqn.prim, types, mask, cts, needed, once)
        return eqn, made

    def _note_parts(self, eqn: Eqn, rule: ReverseTemplate) -> None:
        for i in rule.in_part:
            if i in rule.given:
                self.in_part.add(cast(Var, eqn.ins[i]).id)

    def _other(self, eqn: Eqn, found: ReverseTemplate | Later | None, rules: RuleSet) -> None:
        """An equation without a tangent, or without a cotangent, or not like most."""
        prim, ins, outs, _, _ = eqn
        needed = tuple([self.needed[v.id] for v in outs])
        cts = tuple([self.flows[v.id] for v in outs])
        if True not in needed and True not in cts:
            return
        rule: ReverseTemplate | None = None
        used: Sequence[Atom] = ins
        if found is not None or prim.subjaxprs():
            # What runs forward may be another program where there are tangents.
            types = tuple([a.type for a in ins])
            mask = tuple([isinstance(a, Var) and self.has[a.id] for a in ins])
            rule = reverse_template(rules, prim, types, mask, cts, needed)
            if len(rule.cts) < sum(cts):
                raise NotApplicable("a cotangent goes nowhere: what gives it is dead")
            used = [ins[i] for i in rule.uses]
            for i in rule.given:
                k = cast(Var, ins[i]).id
                self.flows[k] = True
                self.uses[k] += 1
            self._note_parts(eqn, rule)
        for a in used:
            if isinstance(a, Var):
                self.needed[a.id] = True
        self.steps.append((eqn, rule))


def _takes_two(rule: ReverseTemplate) -> bool:
    """Whether an equation of the backward half takes two of the references."""
    refs = range(len(rule.picks), len(rule.picks) + len(rule.places))
    return any(sum(slot in refs for slot in step.slots) > 1 for step in rule.backward.steps)


class Tape(NamedTuple):
    """What the forward half leaves: its results, and residuals an equation to run backward."""

    outs: list[Atom]
    entries: list[tuple[Eqn, ReverseTemplate, list[Atom]]]


def assembled(plan: ReversePlan) -> Reverse:
    """Both halves as one program."""
    jaxpr = plan.jaxpr
    b = Builder(jaxpr.in_types)
    args = list(b.binders)
    given = _bind_cotangents(b, jaxpr, plan.cts)
    tape = run_forward(plan, b, args)
    values = run_backward(plan, b, tape, given)
    outs = [*tape.outs, *[x for x in values if x is not None]]
    made = b.finish(outs, jaxpr.n_consts, jaxpr.names)
    return Reverse(made, plan.tangents, tuple([x is not None for x in values]))


def run_forward(plan: ReversePlan, b: Builder, args: Sequence[Atom]) -> Tape:
    """Append the forward half, on these arguments."""
    jaxpr = plan.jaxpr
    env = cast("list[Atom]", [None] * jaxpr.size)  # None is never read: bound before use
    for v, x in zip(jaxpr.binders, args, strict=True):
        env[v.id] = x
    entries: list[tuple[Eqn, ReverseTemplate, list[Atom]]] = []
    push, inline, append, n = entries.append, b.inline, b.eqns.append, b.next_id
    for eqn, rule in plan.steps:
        prim, ins, outs, effects, source = eqn
        held: list[Atom] = [a if type(a) is Lit else env[a[0]] for a in ins]
        if rule is None or rule[1]:
            # As it is; what it gives is numbered anew.
            made: list[Var] = []
            for k, type_ in outs:
                v = env[k] = _new(Var, (n, type_))
                made.append(v)
                n += 1
            append(_new(Eqn, (prim, tuple(held), tuple(made), effects, source)))
            if rule is None:
                continue
            held += made
        else:
            b.next_id = n
            results = inline(rule[0], held, source)
            n = b.next_id
            for i, x in zip(rule[2], results):  # noqa: B905  # other residuals come after
                env[outs[i][0]] = x
            held += results
        if rule[7] or rule[9]:
            push((eqn, rule, [held[i] for i in rule[4]]))
    b.next_id = n
    return Tape([a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs], entries)


def run_backward(
    plan: ReversePlan, b: Builder, tape: Tape, cts: Sequence[Atom | None]
) -> list[Atom | None]:
    """Append the backward half; gives one cotangent an input with a tangent, None for zero.

    Args:
        plan: the plan.
        b: what the forward half was appended to.
        tape: what that left.
        cts: one entry a result: its cotangent, where one flows.
    """
    if plan.accumulated:
        return _run_in_place(plan, b, tape, cts)
    jaxpr = plan.jaxpr
    sums: list[Atom | None] = [None] * jaxpr.size
    for a, ct, has in zip(jaxpr.outs, cts, plan.reached, strict=True):
        if has and isinstance(a, Var) and ct is not None:
            old = sums[a.id]
            sums[a.id] = ct if old is None else added(b, old, ct, None)
    inline, add = b.inline, added
    for (_, ins, outs, _, source), rule, held in reversed(tape.entries):
        for j in rule[5]:
            held.append(sums[outs[j][0]])  # type: ignore[arg-type]  # a cotangent flows here
        for i, part in zip(rule[7], inline(rule[6], held, source)):  # noqa: B905  # as many
            k = ins[i][0]  # type: ignore[index]  # a variable: it has a tangent
            old = sums[k]
            if old is None:
                sums[k] = part
            else:
                sums[k] = add(b, old, part, source)
    return [sums[v.id] for v, has in zip(jaxpr.binders, plan.tangents, strict=True) if has]


def _run_in_place(
    plan: ReversePlan, b: Builder, tape: Tape, cts: Sequence[Atom | None]
) -> list[Atom | None]:
    """:func:`run_backward` where cotangents are summed in references."""
    jaxpr = plan.jaxpr
    sums = Sums(b, jaxpr.size)
    for a, ct, has in zip(jaxpr.outs, cts, plan.reached, strict=True):
        if has and isinstance(a, Var) and ct is not None:
            sums.add(a.id, ct, None)
    for (_, ins, outs, _, source), rule, held in reversed(tape.entries):
        found = [sums.whole(outs[j][0], source) for j in rule.cts]
        refs = [sums.place(cast(Var, ins[i]), source) for i in rule.places]
        parts = b.inline(rule.backward, [*held, *refs, *found], source)
        for i, part in zip(rule.given, parts, strict=True):
            sums.add(cast(Var, ins[i]).id, part, source)
    inputs = [v for v, has in zip(jaxpr.binders, plan.tangents, strict=True) if has]
    return [sums.whole(v.id, None) if sums.has(v.id) else None for v in inputs]
