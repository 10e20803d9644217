"""Partial evaluation of ``shard_map``: one of the known jaxpr, and one of the unknown jaxpr.

A residual that may differ between devices is stacked: the known ``shard_map`` adds a leading
dimension, divided over the axes along which it varies, and the unknown one removes it.
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
    partial_eval,
)
from effax.transforms.rules.common.split_subjaxprs import split_into_calls


def shard_map_split(
    rules: RuleSet, prim: ShardMap, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    none = (False,) * len(prim.jaxpr.outs)
    pe = partial_eval.cached(prim.jaxpr, known, policy, none, rules)
    parts = _Parts(prim, pe)
    return split_into_calls(
        pe,
        in_types,
        lambda b, args: b.emit(parts.known(), args),
        lambda b, args: b.emit(parts.unknown(), args),
    )


class _Computed(NamedTuple):
    """A computed residual: a result of the known jaxpr, and the axes along which it varies."""

    result: int
    axes: tuple[str, ...]

    @property
    def spec(self) -> Spec:
        return (self.axes,) if self.axes else ()


class _Parts:
    """The known and the unknown jaxpr as ``shard_map`` primitives over the same mesh."""

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

    def known(self) -> ShardMap:
        """Return the known primitive: known results, then computed residuals, stacked."""
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
        return ShardMap(
            body, prim.mesh, tuple(self.in_specs), tuple(specs), prim.check_vma, prim.grid
        )

    def unknown(self) -> ShardMap:
        """Return the unknown primitive, on residuals and unknown operands."""
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
        return ShardMap(body, prim.mesh, tuple(specs), tuple(out_specs), prim.check_vma, prim.grid)


def _unstacked(b: Builder, type_: Type) -> Atom:
    """Bind a stacked residual of this type, and return it without its leading dimension."""
    assert not isinstance(type_, RefType), "a residual is an array"
    return b(Reshape(type_.shape), b.bind(type_.update(shape=(1, *type_.shape))))


def _finished(b: Builder, jaxpr: Jaxpr, args: Sequence[Atom]) -> Jaxpr:
    outs = b.inline_jaxpr(jaxpr, args)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names)
