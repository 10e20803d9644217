"""Partial evaluation of ``cond`` under a known index: each branch in two halves.

The residuals of the branches share places: those of one type are given in the same results, and a
branch that has fewer gives zeros, which nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.analysis.dataflow import fixpoint
from effax.ir.build import Builder
from effax.ir.prims import Cond
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.partial_eval.packing import packed
from effax.transforms.partial_eval.partial_eval import (
    FromInput,
    PartialEval,
    frees_refs,
    partial_eval,
)
from effax.transforms.rules.common.arrays import zeros


def cond_split(
    rules: RuleSet, prim: Cond, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    if not known[0]:
        return None
    halves = _branches(rules, prim, known[1:], policy)
    known_outs = halves[0].known_outs
    shared = _shared(halves)
    passed = [i + 1 for i in shared.inputs]
    gained = any(known_outs) or shared.places or any(pe.known.effects for pe in halves)
    if not gained and not frees_refs(in_types, known, passed):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    early = Cond(tuple([_early(pe, shared) for pe in halves]))
    results = b.emit(early, b.binders)
    n_outs = sum(known_outs)
    residuals = [*results[n_outs:], *[results[j] for j in shared.results]]

    unknown_args = (
        0,
        *[i for i, has in enumerate(known) if i and (i in passed or not has)],
    )
    late = Builder([*[r.type for r in residuals], *[in_types[i] for i in unknown_args]])
    values, (index, *operands) = late.binders[: len(residuals)], late.binders[len(residuals) :]
    branches = [_late(pe, shared, unknown_args[1:]) for pe in halves]
    outs = late.emit(Cond(tuple(branches)), [index, *values, *operands])
    return PartialEvalOut(
        b.finish([*results[:n_outs], *residuals]),
        late.finish(outs),
        known_outs,
        len(residuals),
        unknown_args,
    )


def _branches(rules: RuleSet, prim: Cond, known: Mask, policy: Policy | None) -> list[PartialEval]:
    """Split the branches, so that a result is known in all of them or in none."""

    def halves(forced: Mask) -> list[PartialEval]:
        return [partial_eval.cached(br, known, policy, forced, rules) for br in prim.branches]

    def unknown(forced: Mask) -> Mask:
        rows = [pe.known_outs for pe in halves(forced)]
        return tuple([not all(row) for row in zip(*rows, strict=True)])

    forced = fixpoint(unknown, (False,) * len(prim.branches[0].outs))
    return [packed(rules, pe) for pe in halves(forced)]


class _Shared(NamedTuple):
    """What the unknown branches take.

    Attributes:
        places: residuals that the known branches compute: their types, and which of that type.
        results: known results that are residuals too.
        inputs: known operands that are passed on.
    """

    places: tuple[tuple[Type, int], ...]
    results: tuple[int, ...]
    inputs: frozenset[int]


def _shared(halves: Sequence[PartialEval]) -> _Shared:
    places: dict[tuple[Type, int], None] = {}
    results: set[int] = set()
    inputs: set[int] = set()
    for pe in halves:
        for source, place in zip(pe.residuals, _places(pe), strict=True):
            if isinstance(source, FromInput):
                inputs.add(source.index)
            elif place is None:
                results.add(source.index)
            else:
                places[place] = None
    return _Shared(tuple(places), tuple(sorted(results)), frozenset(inputs))


def _places(pe: PartialEval) -> list[tuple[Type, int] | None]:
    """The place of each residual that only this branch computes."""
    n_outs = sum(pe.known_outs)
    counts: dict[Type, int] = {}
    found: list[tuple[Type, int] | None] = []
    for source in pe.residuals:
        if isinstance(source, FromInput) or source.index < n_outs:
            found.append(None)
            continue
        type_ = pe.known.outs[source.index].type
        number = counts[type_] = counts.get(type_, -1) + 1
        found.append((type_, number))
    return found


def _early(pe: PartialEval, shared: _Shared) -> Jaxpr:
    """The known branch: its known results, then a value in every place."""
    b = Builder(pe.known.in_types)
    outs = b.inline_jaxpr(pe.known, b.binders)
    given = {
        place: outs[source.index]
        for source, place in zip(pe.residuals, _places(pe), strict=True)
        if place is not None
    }
    filled = [given.get(place) or zeros(b, place[0]) for place in shared.places]
    return b.finish([*outs[: sum(pe.known_outs)], *filled])


def _late(pe: PartialEval, shared: _Shared, unknown_args: Sequence[int]) -> Jaxpr:
    """The unknown branch on ``(places, known results, operands at unknown_args)``."""
    known_outs = pe.known.out_types
    inputs = _in_types(pe)
    b = Builder([type_ for type_, _ in shared.places])
    places = dict(zip(shared.places, b.binders, strict=True))
    results = {j: b.bind(known_outs[j]) for j in shared.results}
    operands = {i - 1: b.bind(inputs[i - 1]) for i in unknown_args}
    ins: list[Atom] = []
    for source, place in zip(pe.residuals, _places(pe), strict=True):
        if isinstance(source, FromInput):
            ins.append(operands[source.index])
        else:
            ins.append(results[source.index] if place is None else places[place])
    ins += [operands[i] for i, has in enumerate(pe.known_ins) if not has]
    return b.finish(b.inline_jaxpr(pe.unknown, ins))


def _in_types(pe: PartialEval) -> list[Type]:
    """The types of all inputs of the branch."""
    known = iter(pe.known.in_types)
    unknown = iter(pe.unknown.in_types[len(pe.residuals) :])
    return [next(known) if has else next(unknown) for has in pe.known_ins]
