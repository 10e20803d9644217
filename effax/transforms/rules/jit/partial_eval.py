"""Partial evaluation of ``jit``: a call of the known half, and one of the unknown half."""

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
    FromInput,
    FromOutput,
    PartialEval,
    frees_refs,
    partial_eval,
)


def jit_split(
    rules: RuleSet, prim: Jit, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    none = (False,) * len(prim.jaxpr.outs)
    pe = partial_eval.cached(prim.jaxpr, known, policy, none, rules)
    return split_call(rules, prim, prim, pe, in_types)


def split_call(
    rules: RuleSet,
    early_prim: Jit | Remat,
    late_prim: Jit | Remat,
    pe: PartialEval,
    in_types: tuple[Type, ...],
) -> PartialEvalOut | None:
    """Two calls of the halves of a program. None where the early one would do nothing."""
    pe = packed(rules, pe)
    known = pe.known_ins
    computed = [r.index for r in pe.residuals if isinstance(r, FromOutput)]
    forwarded = {r.index for r in pe.residuals if isinstance(r, FromInput)}
    gained = any(pe.known_outs) or computed or pe.known.effects
    if not gained and not frees_refs(in_types, known, forwarded):
        return None

    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    outs = _called(b, early_prim, pe.known, b.binders)
    residuals = [outs[j] for j in computed]
    early = b.finish([*outs[: sum(pe.known_outs)], *residuals])

    unknown_args = [i for i, has in enumerate(known) if i in forwarded or not has]
    late = Builder([*[r.type for r in residuals], *[in_types[i] for i in unknown_args]])
    values = iter(late.binders[: len(residuals)])
    args = dict(zip(unknown_args, late.binders[len(residuals) :], strict=True))
    ins = [args[r.index] if isinstance(r, FromInput) else next(values) for r in pe.residuals]
    ins += [args[i] for i, has in enumerate(known) if not has]
    return PartialEvalOut(
        early,
        late.finish(_called(late, late_prim, pe.unknown, ins)),
        pe.known_outs,
        len(residuals),
        tuple(unknown_args),
    )


def _called(b: Builder, prim: Jit | Remat, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
    """The results of a call; those that are inputs or literals need none."""
    inputs = {v.id: a for v, a in zip(jaxpr.binders, args, strict=True)}

    def given(out: Atom) -> Atom | None:
        found = out if isinstance(out, Lit) else inputs.get(out.id)
        return found if found is not None and found.type is out.type else None

    computed = dict.fromkeys(a for a in jaxpr.outs if given(a) is None)
    results: dict[Atom, Var] = {}
    if computed or jaxpr.effects:
        called = jaxpr.replace(outs=tuple(computed))
        results = dict(zip(computed, b.emit(replace(prim, jaxpr=called), args), strict=True))
    return [given(out) or results[out] for out in jaxpr.outs]
