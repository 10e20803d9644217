"""Partial evaluation of ``remat``: the unknown call recomputes what the policy does not save.

Invariant: no effect runs twice. A jaxpr with effects is split by plain partial evaluation, so
that the values read are residuals.
"""

from __future__ import annotations

from dataclasses import replace

from effax.ir.build import Builder
from effax.ir.prims import Remat
from effax.ir.prims.remat import NOTHING
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefType, Type
from effax.lazy.dataclasses import dataclass
from effax.transforms.discharge import discharge, has_refs
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.partial_eval.partial_eval import FromInput, PartialEval, partial_eval
from effax.transforms.rules.jit.partial_eval import split_call


@dataclass(frozen=True, slots=True)
class Both:
    """The policy that saves what both policies save."""

    outer: Policy
    inner: Policy

    def __call__(self, eqn: Eqn) -> bool:
        return self.outer(eqn) and self.inner(eqn)


def remat_split(
    rules: RuleSet, prim: Remat, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    """Split a call into a known call and an unknown call that recomputes the known values it needs.

    ``policy`` is that of an enclosing ``remat``: a value is saved if both policies save it.
    """
    own = prim.policy or NOTHING
    saves = own if policy is None else Both(policy, own)
    none = (False,) * len(prim.jaxpr.outs)
    if prim.jaxpr.effects:
        pe = partial_eval.cached(prim.jaxpr, known, saves, none, rules)
    elif own == NOTHING:
        pe = _recompute_all(prim.jaxpr, known, rules)
    else:
        pure = _without_local_refs(prim.jaxpr, rules)
        pe = partial_eval.cached(pure, known, saves, none, rules)
    return split_call(rules, prim, replace(prim, differentiated=True), pe, in_types)


def _without_local_refs(jaxpr: Jaxpr, rules: RuleSet) -> Jaxpr:
    """Discharge a jaxpr that allocates references and takes none.

    Partial evaluation recomputes values, but never reads of references.
    """
    if any(isinstance(v.type, RefType) for v in jaxpr.binders) or not has_refs(jaxpr):
        return jaxpr
    return discharge.cached(jaxpr, rules).jaxpr


def _recompute_all(jaxpr: Jaxpr, known: Mask, rules: RuleSet) -> PartialEval:
    """Split so that all residuals are inputs: the unknown jaxpr recomputes all known values."""
    pe = partial_eval.cached(jaxpr, known, None, (False,) * len(jaxpr.outs), rules)
    n_known = sum(pe.known_outs)
    results = tuple([j < n_known for j in range(len(pe.known.outs))])
    every = (True,) * len(pe.known.binders)
    known_jaxpr = dce.cached(pe.known, results, every, every, rules).jaxpr

    unknown = tuple([not has for has in known])
    unknown_outs = tuple([not has for has in pe.known_outs])
    whole = dce.cached(jaxpr, unknown_outs, (True,) * len(known), unknown, rules)
    taken = [i for i, used in enumerate(whole.used_ins) if used or unknown[i]]
    order = sorted(taken, key=unknown.__getitem__)
    b = Builder([jaxpr.binders[i].type for i in order])
    args = dict(zip(order, b.binders, strict=True))
    outs = b.inline_jaxpr(whole.jaxpr, [args[i] for i in taken])
    residuals = tuple([FromInput(i) for i in order if known[i]])
    return PartialEval(known_jaxpr, b.finish(outs), known, pe.known_outs, residuals)
