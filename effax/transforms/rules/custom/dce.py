"""Dead code elimination in calls with custom rules.

Unused results are removed from the function and from its rules: their cotangents are zero.
Arguments that no jaxpr uses are removed. An argument whose cotangent a rule returns stays, even if
the function does not use it. Recursive rule calls are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from effax.ir.build import Builder
from effax.ir.primitive import Primitive
from effax.ir.prims import BatchedProgram, CustomJvp, CustomLinear, CustomVjp, CustomVmap, VmapRule
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type, is_inexact, tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import DceOut, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.custom.recursive_calls import has_recursive_rules


def _whole(prim: Primitive, observed: Mask, used: Mask) -> DceOut:
    return DceOut(prim, (True,) * len(observed), (True,) * len(used))


def _none(jaxpr: Jaxpr) -> Mask:
    return (False,) * len(jaxpr.binders)


def _picked(items: Sequence[bool], mask: Mask) -> Mask:
    return tuple([x for x, has in zip(items, mask, strict=True) if has])


def _either(*masks: Sequence[bool]) -> Mask:
    return tuple(map(any, zip(*masks, strict=True)))


@dataclass(frozen=True, slots=True)
class VmapRuleOfUsed(VmapRule):
    """A batching rule with unused results removed."""

    rule: VmapRule
    used: Mask
    rules: RuleSet
    label: str

    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        inner = self.rule(size, batched)
        every = (True,) * len(inner.jaxpr.binders)
        return BatchedProgram(
            dce.cached(inner.jaxpr, self.used, every, every, self.rules).jaxpr,
            _picked(inner.batched, self.used),
        )


def dce_custom_jvp(rules: RuleSet, prim: CustomJvp, used: Mask, observed: Mask) -> DceOut:
    """Remove dead code from a ``custom_jvp`` call."""
    if not isinstance(prim.rule, Jaxpr) or prim.vmap_rule is not None or has_recursive_rules(prim):
        return _whole(prim, observed, used)
    pushed = _Pushed(prim.call, prim.rule, prim.n_consts, used, observed, rules)
    call = dce.cached(prim.call, used, observed, _none(prim.call), rules)
    kept = _either(call.used_ins, pushed.needs())
    made = replace(
        prim,
        call=dce.cached(prim.call, used, observed, kept, rules).jaxpr,
        rule=pushed.keeping(kept),
        n_consts=sum(kept[: prim.n_consts]),
    )
    return DceOut(made, kept, used)


class _Pushed:
    """A forward rule with some unused results; it takes arguments, then their tangents."""

    def __init__(
        self,
        call: Jaxpr,
        rule: Jaxpr,
        n_consts: int,
        used: Mask,
        observed: Mask,
        rules: RuleSet,
    ) -> None:
        self.rule = rule
        self.n = len(call.binders)
        self.dotted = [
            i for i, v in enumerate(call.binders) if i >= n_consts and is_inexact(v.type)
        ]
        dots = [u for u, a in zip(used, call.outs, strict=True) if is_inexact(a.type)]
        self.used = (*used, *dots)
        self.observed = (*observed, *[True] * len(self.dotted))
        self.rules = rules

    def needs(self) -> Mask:
        """Return which arguments are used, by value or by tangent."""
        found = dce.cached(
            self.rule, self.used, self.observed, _none(self.rule), self.rules
        ).used_ins
        needs = list(found[: self.n])
        for i, has in zip(self.dotted, found[self.n :], strict=True):
            needs[i] = needs[i] or has
        return tuple(needs)

    def keeping(self, kept: Mask) -> Jaxpr:
        """Return the rule on the arguments ``kept`` and their tangents."""
        keep = (*kept, *[kept[i] for i in self.dotted])
        return dce.cached(self.rule, self.used, self.observed, keep, self.rules).jaxpr


def dce_custom_vjp(rules: RuleSet, prim: CustomVjp, used: Mask, observed: Mask) -> DceOut:
    """Remove dead code from a ``custom_vjp`` call."""
    if not isinstance(prim.fwd, Jaxpr) or not isinstance(prim.bwd, Jaxpr):
        return _whole(prim, observed, used)
    if prim.vmap_rule is not None or has_recursive_rules(prim):
        return _whole(prim, observed, used)
    # The backward rule reads references after the forward rule, so their contents are observed.
    observed = tuple([seen or i in prim.refs for i, seen in enumerate(observed)])
    c, n_ins = prim.n_consts, len(prim.call.binders)
    n_residuals = len(prim.fwd.outs) - len(prim.call.outs)
    ct_types = [tangent_type(a.type) for a in prim.call.outs if is_inexact(a.type)]
    has_ct = [u for u, a in zip(used, prim.call.outs, strict=True) if is_inexact(a.type)]
    bwd = _with_zeros(prim.bwd, ct_types, has_ct)
    every_out = (True,) * len(bwd.outs)
    seen = (True,) * len(bwd.binders)
    taken = dce.cached(bwd, every_out, seen, _none(bwd), rules).used_ins
    residuals = taken[c : c + n_residuals]
    ct_specs = (*used, *residuals)

    call = dce.cached(prim.call, used, observed, _none(prim.call), rules).used_ins
    fwd = dce.cached(prim.fwd, ct_specs, observed, _none(prim.fwd), rules).used_ins
    fixed = [False] * c + [ct_spec or c + i in prim.refs for i, ct_spec in enumerate(prim.wanted)]
    by_bwd = [*taken[:c], *[False] * (n_ins - c)]
    masks = [call, fwd, tuple(fixed), tuple(by_bwd)]
    pushed = None
    if prim.forward is not None:
        pushed = _Pushed(prim.call, prim.forward, c, used, observed, rules)
        masks.append(pushed.needs())
    kept = _either(*masks)
    rest = (True,) * (len(bwd.binders) - c - n_residuals)
    place = {i: j for j, i in enumerate(i for i, has in enumerate(kept) if has)}
    made = replace(
        prim,
        call=dce.cached(prim.call, used, observed, kept, rules).jaxpr,
        fwd=dce.cached(prim.fwd, ct_specs, observed, kept, rules).jaxpr,
        bwd=dce.cached(bwd, every_out, seen, (*kept[:c], *residuals, *rest), rules).jaxpr,
        n_consts=sum(kept[:c]),
        refs=tuple([place[i] for i in prim.refs]),
        wanted=_picked(prim.wanted, kept[c:]),
        forward=None if pushed is None else pushed.keeping(kept),
    )
    return DceOut(made, kept, used)


def _with_zeros(bwd: Jaxpr, types: Sequence[Type], given: Sequence[bool]) -> Jaxpr:
    """Return a backward rule on the cotangents ``given``; the others, of ``types``, are zeros."""
    if all(given):
        return bwd
    n = len(bwd.binders) - len(types)
    b = Builder(bwd.in_types[:n])
    cts = [b.bind(t) if has else None for t, has in zip(types, given, strict=True)]
    dense = [zeros(b, t) if ct is None else ct for ct, t in zip(cts, types, strict=True)]
    outs = b.inline_jaxpr(bwd, [*b.binders[:n], *dense])
    return b.finish(outs, bwd.n_consts, bwd.names[:n])


def dce_custom_vmap(rules: RuleSet, prim: CustomVmap, used: Mask, observed: Mask) -> DceOut:
    """Remove dead code from a ``custom_vmap`` call, whose batching rule takes all arguments."""
    every = (True,) * len(observed)
    if all(used):
        return _whole(prim, observed, used)
    call = dce.cached(prim.call, used, observed, every, rules).jaxpr
    vmap_rule = VmapRuleOfUsed(prim.vmap_rule, used, rules, prim.label)
    return DceOut(
        replace(prim, call=call, vmap_rule=vmap_rule),
        every,
        used,
    )


def dce_custom_linear(rules: RuleSet, prim: CustomLinear, used: Mask, observed: Mask) -> DceOut:
    """Remove dead code from a linear call; all linear arguments stay, for their cotangents."""
    if not isinstance(prim.bwd, Jaxpr):
        return _whole(prim, observed, used)
    n, n_linear = prim.n_fixed, len(observed) - prim.n_fixed
    bwd = _with_zeros(prim.bwd, prim.out_types, used)
    every_out, seen = (True,) * len(bwd.outs), (True,) * len(bwd.binders)
    fixed = dce.cached(bwd, every_out, seen, _none(bwd), rules).used_ins[:n]
    linear = (True,) * n_linear
    if prim.forward is not None:
        pushed = dce.cached(prim.forward, used, observed, _none(prim.forward), rules).used_ins
        fixed = _either(fixed, pushed[:n])
    cts = (True,) * (len(bwd.binders) - n)
    made = replace(
        prim,
        bwd=dce.cached(bwd, every_out, seen, (*fixed, *cts), rules).jaxpr,
        n_fixed=sum(fixed),
        out_types=tuple([t for t, has in zip(prim.out_types, used, strict=True) if has]),
        forward=None
        if prim.forward is None
        else dce.cached(prim.forward, used, observed, (*fixed, *linear), rules).jaxpr,
    )
    return DceOut(made, (*fixed, *linear), used)
