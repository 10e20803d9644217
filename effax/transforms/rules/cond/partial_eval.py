"""Partial evaluation of ``cond`` with a known index: a known and an unknown ``cond``.

The branches share slots for residuals: residuals of equal type, numbered in each branch, are
returned in the same results. A branch with fewer residuals fills its slots with zeros, which its
unknown branch does not read.
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
    splits = _branches(rules, prim, known[1:], policy)
    known_outs = splits[0].known_outs
    shared = _shared(splits)
    passed = [i + 1 for i in shared.inputs]
    gained = any(known_outs) or shared.slots or any(pe.known.effects for pe in splits)
    if not gained and not frees_refs(in_types, known, passed):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    results = b.emit(Cond(tuple([_known_branch(pe, shared) for pe in splits])), b.binders)
    n_outs = sum(known_outs)
    residuals = [*results[n_outs:], *[results[j] for j in shared.results]]

    unknown_args = (
        0,
        *[i for i, has in enumerate(known) if i and (i in passed or not has)],
    )
    rest = Builder([*[r.type for r in residuals], *[in_types[i] for i in unknown_args]])
    values, (index, *operands) = rest.binders[: len(residuals)], rest.binders[len(residuals) :]
    branches = [_unknown_branch(pe, shared, unknown_args[1:]) for pe in splits]
    outs = rest.emit(Cond(tuple(branches)), [index, *values, *operands])
    return PartialEvalOut(
        b.finish([*results[:n_outs], *residuals]),
        rest.finish(outs),
        known_outs,
        len(residuals),
        unknown_args,
    )


def _branches(rules: RuleSet, prim: Cond, known: Mask, policy: Policy | None) -> list[PartialEval]:
    """Split the branches so that each result is known in all of them or in none."""

    def split(forced: Mask) -> list[PartialEval]:
        return [partial_eval.cached(br, known, policy, forced, rules) for br in prim.branches]

    def unknown(forced: Mask) -> Mask:
        rows = [pe.known_outs for pe in split(forced)]
        return tuple([not all(row) for row in zip(*rows, strict=True)])

    forced = fixpoint(unknown, (False,) * len(prim.branches[0].outs))
    return [packed(rules, pe) for pe in split(forced)]


Slot = tuple[Type, int]
"""A residual in all branches: its type, and its number among the residuals of that type."""


class _Shared(NamedTuple):
    """The residuals of all branches.

    Attributes:
        slots: residuals that the known branches compute.
        results: known results that are also residuals.
        inputs: known operands that are also operands of the unknown branches.
    """

    slots: tuple[Slot, ...]
    results: tuple[int, ...]
    inputs: frozenset[int]


def _shared(splits: Sequence[PartialEval]) -> _Shared:
    slots: dict[Slot, None] = {}
    results: set[int] = set()
    inputs: set[int] = set()
    for pe in splits:
        for source, slot in zip(pe.residuals, _slots(pe), strict=True):
            if isinstance(source, FromInput):
                inputs.add(source.index)
            elif slot is None:
                results.add(source.index)
            else:
                slots[slot] = None
    return _Shared(tuple(slots), tuple(sorted(results)), frozenset(inputs))


def _slots(pe: PartialEval) -> list[Slot | None]:
    """Return the slot of each residual; None for inputs and known results."""
    n_outs = sum(pe.known_outs)
    counts: dict[Type, int] = {}
    found: list[Slot | None] = []
    for source in pe.residuals:
        if isinstance(source, FromInput) or source.index < n_outs:
            found.append(None)
            continue
        type_ = pe.known.outs[source.index].type
        number = counts[type_] = counts.get(type_, -1) + 1
        found.append((type_, number))
    return found


def _known_branch(pe: PartialEval, shared: _Shared) -> Jaxpr:
    """Return the known branch: its known results, then a value in each slot."""
    b = Builder(pe.known.in_types)
    outs = b.inline_jaxpr(pe.known, b.binders)
    computed = {
        slot: outs[source.index]
        for source, slot in zip(pe.residuals, _slots(pe), strict=True)
        if slot is not None
    }
    filled = [computed.get(slot) or zeros(b, slot[0]) for slot in shared.slots]
    return b.finish([*outs[: sum(pe.known_outs)], *filled])


def _unknown_branch(pe: PartialEval, shared: _Shared, unknown_args: Sequence[int]) -> Jaxpr:
    """Return the unknown branch on ``(slots, known results, operands at unknown_args)``."""
    known_outs = pe.known.out_types
    inputs = _in_types(pe)
    b = Builder([type_ for type_, _ in shared.slots])
    slots = dict(zip(shared.slots, b.binders, strict=True))
    results = {j: b.bind(known_outs[j]) for j in shared.results}
    operands = {i - 1: b.bind(inputs[i - 1]) for i in unknown_args}
    ins: list[Atom] = []
    for source, slot in zip(pe.residuals, _slots(pe), strict=True):
        if isinstance(source, FromInput):
            ins.append(operands[source.index])
        else:
            ins.append(results[source.index] if slot is None else slots[slot])
    ins += [operands[i] for i, has in enumerate(pe.known_ins) if not has]
    return b.finish(b.inline_jaxpr(pe.unknown, ins))


def _in_types(pe: PartialEval) -> list[Type]:
    """Return the types of all inputs of the branch."""
    known = iter(pe.known.in_types)
    unknown = iter(pe.unknown.in_types[len(pe.residuals) :])
    return [next(known) if has else next(unknown) for has in pe.known_ins]
