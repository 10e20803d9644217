"""Forward mode of calls with custom rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.effects import Accum, Write
from effax.ir.build import template
from effax.ir.errors import ClosedOver, TransformError
from effax.ir.prims import (
    BackwardRule,
    CustomJvp,
    CustomLinear,
    CustomVjp,
    CustomVmap,
    SparseBackward,
)
from effax.ir.prims.custom import no_forward
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, is_inexact, tangent_type
from effax.transforms.framework.dead_code import used_variables
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import jvp, with_tangents
from effax.transforms.optimize.dce import dce
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.generic_rules import add_tangents
from effax.transforms.rules.custom.batched_rules import JvpOfVmapRule
from effax.transforms.rules.custom.contents import contents, on_contents


def _dense(b: RuleBuilder, atom: Atom, tangent: Atom | None) -> Atom:
    return zeros(b, tangent_type(atom.type)) if tangent is None else tangent


def _check_consts(label: str, tangents: Sequence[Atom | None], *programs: Jaxpr) -> None:
    """Raise ClosedOver where a program uses a constant, one of its first inputs, with tangents.

    A call may have constants that only other rules use.
    """
    for jaxpr in programs:
        used = used_variables(jaxpr)
        for v, t in zip(jaxpr.binders, tangents, strict=False):
            if t is not None and v.id in used:
                raise ClosedOver(
                    f"{label}, which has custom derivatives, closes over a differentiated value",
                    remedy="pass the value as an argument",
                )


def _undifferentiated(
    b: RuleBuilder,
    prim: CustomJvp | CustomVjp,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Keep a call of which only constants have tangents."""
    _check_consts(prim.label, tangents[: prim.n_consts], prim.call)
    return JvpOut(b.emit(prim, primals), [None] * len(prim.call.outs))


def custom_jvp_jvp(
    b: RuleBuilder, prim: CustomJvp, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Apply the user's rule."""
    n = prim.n_consts
    given = tuple([t is not None for t in tangents[n:]])
    if True not in given:
        return _undifferentiated(b, prim, primals, tangents)
    sparse = prim.rule(given)
    _check_consts(prim.label, tangents[:n], prim.call, sparse.jaxpr)
    dots = [t for t in tangents[n:] if t is not None]
    return with_tangents(b.inline(template(sparse.jaxpr), [*primals, *dots]), sparse.nonzero)


def custom_vjp_jvp(
    b: RuleBuilder, prim: CustomVjp, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Apply the forward rule, then a linear equation whose transpose is the backward rule."""
    n, n_outs, label = prim.n_consts, len(prim.call.outs), prim.label
    given = tuple([t is not None for t in tangents[n:]])
    if True not in given:
        return _undifferentiated(b, prim, primals, tangents)
    changed = (False,) * n + given
    _check_changed_refs(label, prim.call, changed)
    sparse = prim.rule(given)
    _check_changed_refs(label, sparse.fwd, changed)
    _check_consts(label, tangents[:n], prim.call, sparse.fwd)
    dots = [contents(b, t) for t in tangents[n:] if t is not None]
    before = primals if prim.forward is None else [contents(b, x) for x in primals]
    results = b.inline(template(sparse.fwd), primals)
    outs, residuals = results[:n_outs], results[n_outs:]
    fixed = [*primals[:n], *residuals, *[primals[i] for i in sparse.refs]]
    linear = _linear(sparse.bwd, len(fixed), _tangent_types(prim.call), label)
    if isinstance(linear.bwd, Jaxpr):
        _check_consts(label, tangents[:n], linear.bwd)
    if prim.forward is not None:
        fixed, linear = _with_forward(b, prim, linear, given, before, fixed)
    return with_tangents([*outs, *b.emit(linear, [*fixed, *dots])], _inexact(prim.call))


def _linear(
    bwd: BackwardRule | SparseBackward, n_fixed: int, out_types: tuple[Type, ...], label: str
) -> CustomLinear:
    if isinstance(bwd, SparseBackward):
        return CustomLinear(
            bwd.jaxpr, n_fixed, out_types, label, nonzero=bwd.nonzero, logs=bwd.logs
        )
    return CustomLinear(bwd, n_fixed, out_types, label)


def _check_changed_refs(label: str, jaxpr: Jaxpr, given: Sequence[bool]) -> None:
    """Raise TransformError where a program changes a reference that ``given`` marks.

    The backward rule takes the cotangents of results only.
    """
    for e in jaxpr.effects:
        if isinstance(e, Write | Accum) and e.ref < len(given) and given[e.ref]:
            name = jaxpr.name_of(e.ref)
            raise TransformError(
                f"{label} changes {name}, a differentiated reference: its backward rule takes "
                "cotangents of results, and none of what it wrote",
                expected="a function that only reads its differentiated references",
                found=f"{e.word} of {name}",
                remedy="return the value and write it outside of the function, set a forward rule "
                "with `custom_jvp`, which takes the tangent reference, or, if what is written has "
                "no derivative, write `stop_gradient(value)` to a reference without derivatives",
            )


def _with_forward(
    b: RuleBuilder,
    prim: CustomVjp,
    linear: CustomLinear,
    given: Mask,
    primals: Sequence[Atom],
    fixed: Sequence[Atom],
) -> tuple[list[Atom], CustomLinear]:
    """Return the fixed operands and the linear equation that evaluates the forward rule too.

    The forward rule runs on the contents that references had at the call, ``primals``: the equation
    may run later.
    """
    assert prim.forward is not None
    sparse, n_ins, n_fixed = prim.forward(given), len(primals), len(fixed)
    _check_changed_refs(prim.label, sparse.jaxpr, (False,) * n_ins + (True,) * sum(given))
    args = zip(primals[prim.n_consts :], given, strict=True)
    dots = [tangent_type(x.type) for x, has in args if has]
    rule = on_contents(sparse.jaxpr)
    pushed = RuleBuilder(b.rules, [x.type for x in [*primals, *fixed]] + dots)
    binders = pushed.binders
    both = pushed.inline(template(rule), [*binders[:n_ins], *binders[n_ins + n_fixed :]])
    _, tangents = with_tangents(both, sparse.nonzero)
    pairs = zip(prim.call.out_types, tangents, strict=True)
    found = [zeros(pushed, tangent_type(t)) if x is None else x for t, x in pairs if is_inexact(t)]
    bwd = linear.bwd
    if not isinstance(bwd, Jaxpr):
        bwd, nonzero, logs = bwd((True,) * len(linear.out_types))
        linear = replace(linear, nonzero=nonzero, logs=logs)
    pulled = RuleBuilder(b.rules, [*[x.type for x in [*primals, *fixed]], *linear.out_types])
    cts = pulled.inline(template(bwd), pulled.binders[n_ins:])
    made = replace(
        linear,
        bwd=pulled.finish(cts),
        n_fixed=n_ins + n_fixed,
        forward=pushed.finish(found),
    )
    return [*primals, *fixed], made


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
