"""Forward mode of calls with custom rules."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import template
from effax.ir.errors import TransformError
from effax.ir.prims import CustomJvp, CustomLinear, CustomVjp, CustomVmap, ZerosVjp
from effax.ir.prims.custom import no_forward
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type, is_inexact, tangent_type
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import jvp, with_tangents
from effax.transforms.optimize.dce import dce
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.generic_rules import add_tangents
from effax.transforms.rules.custom.batched_rules import JvpOfVmapRule
from effax.transforms.rules.custom.recursive_calls import unbound_call_error, unroll_rule


def _dense(b: RuleBuilder, atom: Atom, tangent: Atom | None) -> Atom:
    return zeros(b, tangent_type(atom.type)) if tangent is None else tangent


def _check_consts(label: str, tangents: Sequence[Atom | None]) -> None:
    if any(t is not None for t in tangents):
        raise TransformError(
            f"{label}, which has custom derivatives, closes over a differentiated value",
            remedy="pass the value as an argument",
        )


def custom_jvp_jvp(
    b: RuleBuilder, prim: CustomJvp, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Apply the user's rule, on zeros for zero tangents unless it accepts symbolic zeros."""
    if isinstance(prim.rule, int):
        raise unbound_call_error(prim)
    _check_consts(prim.label, tangents[: prim.n_consts])
    own = list(zip(primals, tangents, strict=True))[prim.n_consts :]
    given = tuple([t is not None for _, t in own])
    if not isinstance(prim.rule, Jaxpr):
        sparse = prim.rule(given)
        dots = [t for _, t in own if t is not None]
        return with_tangents(b.inline(template(sparse.jaxpr), [*primals, *dots]), sparse.nonzero)
    dense = [_dense(b, p, t) for p, t in own if is_inexact(p.type)]
    results = b.inline(template(unroll_rule(prim.rule, prim)), [*primals, *dense])
    return with_tangents(results, tuple([is_inexact(a.type) for a in prim.call.outs]))


def custom_vjp_jvp(
    b: RuleBuilder, prim: CustomVjp, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Apply the forward rule, then a linear equation whose transpose is the backward rule."""
    if isinstance(prim.fwd, int):
        raise unbound_call_error(prim)
    _check_consts(prim.label, tangents[: prim.n_consts])
    if not isinstance(prim.fwd, Jaxpr):
        return _sparse_vjp_jvp(b, prim, prim.fwd, primals, tangents)
    assert isinstance(prim.bwd, Jaxpr), "a forward rule has a backward one"
    n = len(prim.call.outs)
    results = b.inline(template(unroll_rule(prim.fwd, prim)), primals)
    residuals, refs = results[n:], [primals[i] for i in prim.refs]
    own = list(zip(primals, tangents, strict=True))[prim.n_consts :]
    dots = [_dense(b, p, t) for (p, t), ct_spec in zip(own, prim.wanted, strict=True) if ct_spec]
    bwd = unroll_rule(prim.bwd, prim)
    if prim.forward is None:
        fixed = [*primals[: prim.n_consts], *residuals, *refs]
        linear = CustomLinear(bwd, len(fixed), _tangent_types(prim.call), prim.label)
        return with_tangents([*results[:n], *b.emit(linear, [*fixed, *dots])], _inexact(prim.call))
    # Both rules: the linear equation evaluates the jvp rule, and its transpose is the vjp rule.
    fixed = [*primals, *residuals]
    n_ins, n_residuals, n_dots = len(primals), len(residuals), len(dots)
    pushed = RuleBuilder(b.rules, [x.type for x in [*fixed, *dots]])
    args, given = pushed.binders[:n_ins], pushed.binders[n_ins + n_residuals :]
    both = pushed.inline(template(unroll_rule(prim.forward, prim)), [*args, *given])
    pulled = RuleBuilder(b.rules, [*[x.type for x in fixed], *_tangent_types(prim.call)])
    consts, rest = pulled.binders[: prim.n_consts], pulled.binders[n_ins:]
    cts = pulled.inline(template(bwd), [*consts, *rest])
    assert len(cts) == n_dots, "with both rules, every differentiable argument is wanted"
    linear = CustomLinear(
        pulled.finish(cts),
        len(fixed),
        _tangent_types(prim.call),
        prim.label,
        pushed.finish(both[n:]),
    )
    return with_tangents([*results[:n], *b.emit(linear, [*fixed, *dots])], _inexact(prim.call))


def _sparse_vjp_jvp(
    b: RuleBuilder,
    prim: CustomVjp,
    rules: ZerosVjp,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Apply the rules for the arguments that have tangents."""
    own = list(zip(primals, tangents, strict=True))[prim.n_consts :]
    sparse = rules(tuple([t is not None for _, t in own]))
    n = len(prim.call.outs)
    results = b.inline(template(sparse.fwd), primals)
    refs = [primals[i] for i in sparse.refs]
    fixed = [*primals[: prim.n_consts], *results[n:], *refs]
    dots = [t for _, t in own if t is not None and not isinstance(t.type, RefType)]
    linear = CustomLinear(sparse.bwd, len(fixed), _tangent_types(prim.call), prim.label)
    return with_tangents([*results[:n], *b.emit(linear, [*fixed, *dots])], _inexact(prim.call))


def _inexact(call: Jaxpr) -> tuple[bool, ...]:
    return tuple([is_inexact(a.type) for a in call.outs])


def _tangent_types(call: Jaxpr) -> tuple[Type, ...]:
    return tuple([tangent_type(a.type) for a in call.outs if is_inexact(a.type)])


def custom_vmap_jvp(
    b: RuleBuilder, prim: CustomVmap, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Apply the call, then its derivative, whose batching rule is the derivative of the rule.

    The derivative is a separate call, linear in the tangents, unless effects would happen twice.
    """
    given = tuple([t is not None for t in tangents])
    present = [t for t in tangents if t is not None]
    inner = jvp.cached(prim.call, given, False, b.rules)
    whole = bool(prim.call.effects)
    vmap_rule = JvpOfVmapRule(
        prim.vmap_rule, prim.call.in_types, given, inner.out_tangents, whole, b.rules, prim.label
    )
    if whole:
        made = CustomVmap(inner.jaxpr, vmap_rule, prim.n_consts, prim.label)
        return with_tangents(b.emit(made, [*primals, *present]), inner.out_tangents)
    outs = b.emit(prim, primals)
    n_ins, n_outs = len(inner.jaxpr.binders), len(outs)
    dots_only = (False,) * n_outs + (True,) * sum(inner.out_tangents)
    keep = (True,) * n_ins
    pushed = dce.cached(inner.jaxpr, dots_only, keep, keep, b.rules).jaxpr
    made = CustomVmap(pushed, vmap_rule, prim.n_consts, prim.label)
    dots = b.emit(made, [*primals, *present])
    return with_tangents([*outs, *dots], inner.out_tangents)


def custom_linear_jvp(
    b: RuleBuilder, prim: CustomLinear, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate y = L(r)·x, linear in x: dy = L(r)·dx + (dL(r)·dr)·x."""
    if prim.forward is None:
        raise no_forward(TransformError, prim.label)
    n = prim.n_fixed
    outs = b.emit(prim, primals)
    total: list[Atom | None] = [None] * len(outs)
    if any(t is not None for t in tangents[n:]):
        own = zip(primals[n:], tangents[n:], strict=True)
        total = list(b.emit(prim, [*primals[:n], *[_dense(b, p, t) for p, t in own]]))
    if any(t is not None for t in tangents[:n]):
        mask = tuple([i < n and t is not None for i, t in enumerate(tangents)])
        present = [t for t in tangents[:n] if t is not None]
        inner = jvp.cached(prim.forward, mask, False, b.rules)
        results = b.inline(template(inner.jaxpr), [*primals, *present])
        _, parts = with_tangents(results, inner.out_tangents)
        total = [add_tangents(b, x, y) for x, y in zip(total, parts, strict=True)]
    return JvpOut(outs, total)
