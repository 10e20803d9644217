"""Dead code elimination in calls with custom rules.

Unused results are removed from the function, and from its rules once they are asked: their
cotangents are zero. All arguments stay: a rule may use one that the function does not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from effax.ir.build import Builder
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    BackwardRule,
    BatchedProgram,
    CustomJvp,
    CustomLinear,
    CustomVjp,
    CustomVmap,
    ForwardRule,
    ReverseRule,
    SparseBackward,
    SparseJvp,
    SparseVjp,
    VmapRule,
)
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import DceOut, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.rules.common.arrays import zeros

V = TypeVar("V", VmapRule, VmapRule | None)


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


@dataclass(frozen=True, slots=True)
class ForwardOfUsed(ForwardRule):
    """A forward rule with unused results removed."""

    rule: ForwardRule
    used: Mask
    rules: RuleSet
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        inner = self.rule(given)
        dots = [u for u, has in zip(self.used, inner.nonzero, strict=True) if has]
        jaxpr = _results(inner.jaxpr, (*self.used, *dots), self.rules)
        return SparseJvp(jaxpr, _picked(inner.nonzero, self.used))


@dataclass(frozen=True, slots=True)
class ReverseOfUsed(ReverseRule):
    """A reverse rule with unused results removed, whose cotangents are zero.

    ``ct_types`` has the type of each result's cotangent, or None.
    """

    rule: ReverseRule
    used: Mask
    ct_types: tuple[Type | None, ...]
    rules: RuleSet
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        inner = self.rule(given)
        n_residuals = len(inner.fwd.outs) - len(self.used)
        fwd = _results(inner.fwd, (*self.used, *[True] * n_residuals), self.rules)
        pairs = list(zip(self.ct_types, self.used, strict=True))
        has_ct = tuple([u for t, u in pairs if t is not None])
        if isinstance(inner.bwd, SparseBackward):
            types = [t for t in self.ct_types if t is not None]
            bwd: BackwardRule | SparseBackward = inner.bwd._replace(
                jaxpr=_with_zeros(inner.bwd.jaxpr, types, has_ct)
            )
        else:
            bwd = BackwardOfUsed(inner.bwd, has_ct, self.label)
        return SparseVjp(fwd, inner.refs, bwd)


@dataclass(frozen=True, slots=True)
class BackwardOfUsed(BackwardRule):
    """A backward rule on the cotangents of used results."""

    rule: BackwardRule
    used: Mask
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        own = iter(given)
        return self.rule(tuple([u and next(own) for u in self.used]))


def _results(jaxpr: Jaxpr, used: Mask, rules: RuleSet) -> Jaxpr:
    """Return the program with fewer results, and all its inputs."""
    every = (True,) * len(jaxpr.binders)
    return dce.cached(jaxpr, used, every, every, rules).jaxpr


def _whole_call(rules: RuleSet, call: Jaxpr, used: Mask, observed: Mask) -> Jaxpr:
    """Return the function with unused results removed, and all its arguments.

    A rule may use an argument that the function does not use, and is not asked.
    """
    return dce.cached(call, used, observed, (True,) * len(call.binders), rules).jaxpr


def _vmap_rule(rules: RuleSet, rule: V, used: Mask, label: str) -> V | VmapRuleOfUsed:
    if all(used) or not isinstance(rule, VmapRule):
        return rule
    return VmapRuleOfUsed(rule, used, rules, label)


def dce_custom_jvp(rules: RuleSet, prim: CustomJvp, used: Mask, observed: Mask) -> DceOut:
    """Remove dead code from a ``custom_jvp`` call."""
    rule = prim.rule if all(used) else ForwardOfUsed(prim.rule, used, rules, prim.label)
    made = replace(
        prim,
        call=_whole_call(rules, prim.call, used, observed),
        rule=rule,
        vmap_rule=_vmap_rule(rules, prim.vmap_rule, used, prim.label),
    )
    return DceOut(made, (True,) * len(observed), used)


def dce_custom_vjp(rules: RuleSet, prim: CustomVjp, used: Mask, observed: Mask) -> DceOut:
    """Remove dead code from a ``custom_vjp`` call.

    A backward rule may read references after the forward rule, so their contents are observed.
    """
    pairs = zip(observed, prim.call.in_types, strict=True)
    seen = tuple([o or isinstance(t, RefType) for o, t in pairs])
    rule, forward = prim.rule, prim.forward
    if not all(used):
        types = tuple([tangent_type(t) if is_inexact(t) else None for t in prim.call.out_types])
        rule = ReverseOfUsed(rule, used, types, rules, prim.label)
        if forward is not None:
            forward = ForwardOfUsed(forward, used, rules, prim.label)
    made = replace(
        prim,
        call=_whole_call(rules, prim.call, used, seen),
        rule=rule,
        forward=forward,
        vmap_rule=_vmap_rule(rules, prim.vmap_rule, used, prim.label),
    )
    return DceOut(made, (True,) * len(observed), used)


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
    """Remove dead code from a ``custom_vmap`` call."""
    made = replace(
        prim,
        call=_whole_call(rules, prim.call, used, observed),
        vmap_rule=_vmap_rule(rules, prim.vmap_rule, used, prim.label),
    )
    return DceOut(made, (True,) * len(observed), used)


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
