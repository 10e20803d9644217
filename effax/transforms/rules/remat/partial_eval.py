"""Partial evaluation of ``remat``: what the policy does not keep is computed again, late."""

from __future__ import annotations

from dataclasses import dataclass, replace

from effax.ir.build import Builder
from effax.ir.prims import Remat
from effax.ir.prims.remat import NOTHING
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefType, Type
from effax.transforms.discharge import discharge, has_refs
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.partial_eval.partial_eval import FromInput, PartialEval, partial_eval
from effax.transforms.rules.jit.partial_eval import split_call


@dataclass(frozen=True, slots=True)
class Both:
    """The policy that keeps what two policies keep."""

    outer: Policy
    inner: Policy

    def __call__(self, eqn: Eqn) -> bool:
        return self.outer(eqn) and self.inner(eqn)


def remat_split(
    rules: RuleSet, prim: Remat, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    """The known half as it is; the unknown half with what it needs of the known one once more.

    A policy from outside, that of an enclosing ``remat``, keeps no more than it says either.
    """
    own = prim.policy or NOTHING
    keeps = own if policy is None else Both(policy, own)
    none = (False,) * len(prim.jaxpr.outs)
    if prim.jaxpr.effects:
        # Somebody sees what it does, so that is done once, and what it reads is kept.
        pe = partial_eval.cached(prim.jaxpr, known, keeps, none, rules)
    elif own == NOTHING:
        pe = _all_again(prim.jaxpr, known, rules)
    else:
        pure = _without_local_refs(prim.jaxpr, rules)
        pe = partial_eval.cached(pure, known, keeps, none, rules)
    return split_call(rules, prim, replace(prim, differentiated=True), pe, in_types)


def _without_local_refs(jaxpr: Jaxpr, rules: RuleSet) -> Jaxpr:
    """The program on contents in the place of references that it makes, if it takes none.

    Reads of references are never done again, those of contents are.
    """
    if any(isinstance(v.type, RefType) for v in jaxpr.binders) or not has_refs(jaxpr):
        return jaxpr
    return discharge.cached(jaxpr, rules).jaxpr


def _all_again(jaxpr: Jaxpr, known: Mask, rules: RuleSet) -> PartialEval:
    """The known results early, and for the others the whole program late."""
    pe = partial_eval.cached(jaxpr, known, None, (False,) * len(jaxpr.outs), rules)
    n_early = sum(pe.known_outs)
    results = tuple([j < n_early for j in range(len(pe.known.outs))])
    every = (True,) * len(pe.known.binders)
    early = dce.cached(pe.known, results, every, every, rules).jaxpr

    unknown = tuple([not has for has in known])
    late_outs = tuple([not has for has in pe.known_outs])
    late = dce.cached(jaxpr, late_outs, (True,) * len(known), unknown, rules)
    taken = [i for i, used in enumerate(late.used_ins) if used or unknown[i]]
    order = sorted(taken, key=unknown.__getitem__)
    b = Builder([jaxpr.binders[i].type for i in order])
    place = dict(zip(order, b.binders, strict=True))
    outs = b.inline_jaxpr(late.jaxpr, [place[i] for i in taken])
    residuals = tuple([FromInput(i) for i in order if known[i]])
    return PartialEval(early, b.finish(outs), known, pe.known_outs, residuals)
