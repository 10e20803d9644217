"""Partial evaluation of ``jit`` and ``remat``: a call of the known and one of the unknown jaxpr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.build import Builder
from effax.ir.prims import Jit, Remat
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.partial_eval.packing import packed
from effax.transforms.partial_eval.partial_eval import (
    FromOutput,
    PartialEval,
    partial_eval,
)
from effax.transforms.rules.common.split_subjaxprs import split_into_calls


def jit_split(
    rules: RuleSet, prim: Jit, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    none = (False,) * len(prim.jaxpr.outs)
    pe = partial_eval.cached(prim.jaxpr, known, policy, none, rules)
    return split_call(rules, prim, prim, pe, in_types)


def split_call(
    rules: RuleSet,
    known_prim: Jit | Remat,
    unknown_prim: Jit | Remat,
    pe: PartialEval,
    in_types: tuple[Type, ...],
) -> PartialEvalOut | None:
    """Return two calls, of the known and of the unknown jaxpr, with packed residuals."""
    split = packed(rules, pe)

    def known_call(b: Builder, args: Sequence[Atom]) -> Sequence[Atom]:
        outs = _called(b, known_prim, split.known, args)
        computed = [outs[r.index] for r in split.residuals if isinstance(r, FromOutput)]
        return [*outs[: sum(split.known_outs)], *computed]

    def unknown_call(b: Builder, args: Sequence[Atom]) -> Sequence[Atom]:
        return _called(b, unknown_prim, split.unknown, args)

    return split_into_calls(split, in_types, known_call, unknown_call)


def _called(b: Builder, prim: Jit | Remat, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
    """Emit a call. Results that are inputs or literals are not returned by it."""
    inputs = {v.id: a for v, a in zip(jaxpr.binders, args, strict=True)}

    def forwarded(out: Atom) -> Atom | None:
        found = out if isinstance(out, Lit) else inputs.get(out.id)
        return found if found is not None and found.type is out.type else None

    computed = dict.fromkeys(a for a in jaxpr.outs if forwarded(a) is None)
    results: dict[Atom, Var] = {}
    if computed or jaxpr.effects:
        called = jaxpr.replace(outs=tuple(computed))
        results = dict(zip(computed, b.emit(replace(prim, jaxpr=called), args), strict=True))
    return [forwarded(out) or results[out] for out in jaxpr.outs]
