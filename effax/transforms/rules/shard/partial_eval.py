"""Partial evaluation of ``shard_map``: one of the known half, and one of the unknown half.

A residual that may differ between devices is stacked: it leaves with a new dimension in front,
divided over the axes along which it differs, and comes back without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.analysis.variance import variance
from effax.ir.build import Builder
from effax.ir.partition import Spec, names_in
from effax.ir.prims import Reshape, ShardMap
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.partial_eval.partial_eval import (
    FromInput,
    FromOutput,
    PartialEval,
    frees_refs,
    partial_eval,
)


def shard_map_split(
    rules: RuleSet, prim: ShardMap, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    none = (False,) * len(prim.jaxpr.outs)
    pe = partial_eval.cached(prim.jaxpr, known, policy, none, rules)
    parts = _Parts(prim, pe)
    forwarded = {r.index for r in pe.residuals if isinstance(r, FromInput)}
    gained = any(pe.known_outs) or parts.computed or pe.known.effects
    if not gained and not frees_refs(in_types, known, forwarded):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    outs = list(b.emit(parts.early(), b.binders))
    n_known = sum(pe.known_outs)

    unknown_args = [i for i, has in enumerate(known) if i in forwarded or not has]
    types = [a.type for a in outs[n_known:]]
    late = Builder([*types, *[in_types[i] for i in unknown_args]])
    given = iter(late.binders[: len(types)])
    args = dict(zip(unknown_args, late.binders[len(types) :], strict=True))
    ins: list[Atom] = [
        args[r.index] if isinstance(r, FromInput) else next(given) for r in pe.residuals
    ]
    ins += [args[i] for i, has in enumerate(known) if not has]
    return PartialEvalOut(
        b.finish(outs),
        late.finish(late.emit(parts.late(), ins)),
        pe.known_outs,
        len(types),
        tuple(unknown_args),
    )


class _Computed(NamedTuple):
    """A residual that the known half computes: a result of its program, and where it differs."""

    result: int
    axes: tuple[str, ...]

    @property
    def spec(self) -> Spec:
        return (self.axes,) if self.axes else ()


class _Parts:
    """The two halves, as applications over the same mesh."""

    def __init__(self, prim: ShardMap, pe: PartialEval) -> None:
        self.prim = prim
        self.pe = pe
        self.in_specs = [s for s, has in zip(prim.in_specs, pe.known_ins, strict=True) if has]
        names = tuple([frozenset(names_in(spec)) for spec in self.in_specs])
        refs = [i for i, v in enumerate(pe.known.binders) if isinstance(v.type, RefType)]
        found = variance(pe.known, names, frozenset(refs)).outs
        self.computed = [
            _Computed(r.index, tuple([a.name for a in prim.mesh if a.name in found[r.index]]))
            for r in pe.residuals
            if isinstance(r, FromOutput)
        ]

    def early(self) -> ShardMap:
        """The known results, then the residuals that are computed, stacked."""
        prim, pe = self.prim, self.pe
        n_known = sum(pe.known_outs)
        b = Builder(pe.known.in_types)
        outs = b.inline_jaxpr(pe.known, b.binders)
        made = [
            b(Reshape((1, *outs[c.result].type.shape)), outs[c.result])
            if c.axes
            else outs[c.result]
            for c in self.computed
        ]
        body = b.finish([*outs[:n_known], *made], pe.known.n_consts, pe.known.names)
        specs = [s for s, has in zip(prim.out_specs, pe.known_outs, strict=True) if has]
        specs += [c.spec for c in self.computed]
        return ShardMap(body, prim.mesh, tuple(self.in_specs), tuple(specs), prim.check_vma)

    def late(self) -> ShardMap:
        """The unknown results, from residuals and unknown arguments."""
        prim, pe = self.prim, self.pe
        specs: list[Spec] = []
        computed = iter(self.computed)
        b = Builder()
        args: list[Atom] = []
        for r, v in zip(pe.residuals, pe.unknown.binders, strict=False):
            if isinstance(r, FromInput):
                specs.append(prim.in_specs[r.index])
                args.append(b.bind(v.type))
                continue
            part = next(computed)
            specs.append(part.spec)
            args.append(_unstacked(b, v.type) if part.axes else b.bind(v.type))
        rest = pe.unknown.binders[len(pe.residuals) :]
        args += [b.bind(v.type) for v in rest]
        specs += [s for s, has in zip(prim.in_specs, pe.known_ins, strict=True) if not has]
        body = _finished(b, pe.unknown, args)
        out_specs = [s for s, has in zip(prim.out_specs, pe.known_outs, strict=True) if not has]
        return ShardMap(body, prim.mesh, tuple(specs), tuple(out_specs), prim.check_vma)


def _unstacked(b: Builder, type_: Type) -> Atom:
    """An input that is one of a stack of this type, taken out of it."""
    assert not isinstance(type_, RefType), "a residual is an array"
    return b(Reshape(type_.shape), b.bind(type_.update(shape=(1, *type_.shape))))


def _finished(b: Builder, jaxpr: Jaxpr, args: Sequence[Atom]) -> Jaxpr:
    outs = b.inline_jaxpr(jaxpr, args)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names)
