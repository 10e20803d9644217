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

It is linearization, then transposition. If the plan is ``Fused``, both are done one equation at a
time: the forward templates in order, the backward templates in reverse. If it is ``Composed``, both
passes run over the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from effax.ir.build import Builder
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import is_inexact, tangent_type
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import as_result
from effax.transforms.linearize import linearize
from effax.transforms.reverse.plan import Composed, Fused, plan_reverse
from effax.transforms.reverse.template import ReverseTemplate
from effax.transforms.transpose.accumulation import Sums
from effax.transforms.transpose.cotangent_spec import GradValue, NonLinear
from effax.transforms.transpose.engine import transpose


class Reverse(NamedTuple):
    """The result of :func:`reverse`.

    Attributes:
        jaxpr: ``(*inputs, *cotangents of results) -> (*results, *nonzero cotangents of inputs)``.
        tangents: which inputs have a tangent; the argument.
        nonzero: one entry an input with a tangent: whether its cotangent is a result.
        reason: why the program was linearized and transposed as a whole; None if each equation
            was differentiated by itself.
    """

    jaxpr: Jaxpr
    tangents: Mask
    nonzero: Mask
    reason: str | None = None


@as_result
def reverse(
    jaxpr: Jaxpr,
    tangents: Sequence[bool],
    cts: Sequence[bool] | None = None,
    rules: RuleSet | None = None,
) -> Reverse:
    """Return a program that runs ``jaxpr`` and pulls cotangents of its results back to its inputs.

    Type:     (a, b) -> (c, d)  =>  (a, b, tc) -> (c, d, ta)    a has tangents, c has cotangents
    Effects:  those of the program; a cotangent that is used in parts is summed in place.
    Laws:     tests/laws/test_reverse.py
    Raises:   TransformError: as for ``linearize`` and ``transpose``.
    Source:   autodidax, part 4; "You only linearize once".

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether its cotangent is a result. For arrays only.
        cts: which results have a cotangent, of the result's tangent type; None: all floating and
            complex ones.
        rules: the rules; the registered ones where it is None.
    """
    given = tuple(map(is_inexact, jaxpr.out_types)) if cts is None else tuple(cts)
    used, mask = rules_or_default(rules), tuple(tangents)
    match plan_reverse(jaxpr, mask, given, used):
        case Fused() as plan:
            return fuse(plan)
        case Composed(reason):
            return _compose(jaxpr, mask, given, used)._replace(reason=reason)


def _compose(jaxpr: Jaxpr, tangents: Mask, cts: Mask, rules: RuleSet) -> Reverse:
    """Linearize the whole program, then transpose it."""
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
    return Reverse(without_dead(made, rules), tangents, pulled.nonzero)


def _bind_cotangents(b: Builder, jaxpr: Jaxpr, cts: Mask) -> list[Atom | None]:
    return [
        b.bind(tangent_type(t)) if has else None
        for t, has in zip(jaxpr.out_types, cts, strict=True)
    ]


class Tape(NamedTuple):
    """The result of the forward sweep.

    Attributes:
        outs: the results of the program.
        entries: the equations that run backward, in order, each with its residuals.
    """

    outs: list[Atom]
    entries: list[tuple[Eqn, ReverseTemplate, list[Atom]]]


def fuse(plan: Fused) -> Reverse:
    """Build the forward and the backward sweep as one program."""
    jaxpr = plan.jaxpr
    b = Builder(jaxpr.in_types)
    args = list(b.binders)
    given = _bind_cotangents(b, jaxpr, plan.cts)
    tape = run_forward(plan, b, args)
    values = run_backward(plan, b, tape, given)
    outs = [*tape.outs, *[x for x in values if x is not None]]
    made = b.finish(outs, jaxpr.n_consts, jaxpr.names)
    return Reverse(made, plan.tangents, tuple([x is not None for x in values]))


def run_forward(plan: Fused, b: Builder, args: Sequence[Atom]) -> Tape:
    """Append the forward sweep on these operands."""
    jaxpr = plan.jaxpr
    env = cast("list[Atom]", [None] * jaxpr.size)  # None is never read: bound before use
    for v, x in zip(jaxpr.binders, args, strict=True):
        env[v.id] = x
    entries: list[tuple[Eqn, ReverseTemplate, list[Atom]]] = []
    emit_like, inline = b.emit_like, b.inline
    for eqn, rule in plan.steps:
        operands = [a if type(a) is Lit else env[a.id] for a in eqn.ins]
        results: Sequence[Atom]
        if rule is None or rule.plain:
            results = emit_like(eqn, tuple(operands))
            for v, x in zip(eqn.outs, results, strict=True):
                env[v.id] = x
        else:
            results = inline(rule.forward, operands, eqn.source)
            for j, x in zip(rule.outs, results, strict=False):  # residuals come after
                env[eqn.outs[j].id] = x
        if rule is not None and (rule.ct_operands or rule.ref_operands):
            values = [*operands, *results]
            entries.append((eqn, rule, [values[i] for i in rule.picks]))
    return Tape([a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs], entries)


def run_backward(
    plan: Fused, b: Builder, tape: Tape, cts: Sequence[Atom | None]
) -> list[Atom | None]:
    """Append the backward sweep; return one cotangent an input with a tangent, None for zero.

    Args:
        plan: the plan.
        b: the builder to which the forward sweep was appended.
        tape: the result of the forward sweep.
        cts: one entry a result: its cotangent, or None.
    """
    jaxpr = plan.jaxpr
    sums = Sums(b, jaxpr.size)
    add, take = sums.add, sums.take
    for a, ct, has in zip(jaxpr.outs, cts, plan.reached, strict=True):
        if has and isinstance(a, Var) and ct is not None:
            add(a, ct, None)
    inline, place = b.inline, sums.place
    for (_, ins, outs, _, source), rule, residuals in reversed(tape.entries):
        # All uses of the results are later equations, which ran before: their sums are complete,
        # and none is None, since a cotangent flows to these results. References and operands that
        # have cotangents are variables, never literals, which the checkers cannot see.
        args = list(residuals)
        if rule.ref_operands:
            args += [place(ins[i], source) for i in rule.ref_operands]  # type: ignore[arg-type]
        args += cast("list[Atom]", [take(outs[j], source) for j in rule.cts])
        for i, part in zip(rule.ct_operands, inline(rule.backward, args, source), strict=True):
            add(ins[i], part, source)  # type: ignore[arg-type]
    inputs = [v for v, has in zip(jaxpr.binders, plan.tangents, strict=True) if has]
    return [take(v, None) for v in inputs]
