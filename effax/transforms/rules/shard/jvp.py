"""Forward mode of ``shard_map``: a tangent is divided as its primal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.partition import Spec
from effax.ir.prims import ShardMap
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import jvp, with_tangents


def _picked(specs: Sequence[Spec], mask: Sequence[bool]) -> tuple[Spec, ...]:
    return tuple([spec for spec, has in zip(specs, mask, strict=True) if has])


def shard_map_jvp(
    b: RuleBuilder, prim: ShardMap, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:

    mask = tuple([t is not None for t in tangents])
    inner = jvp.cached(prim.jaxpr, mask, False, b.rules)
    made = replace(
        prim,
        jaxpr=inner.jaxpr,
        in_specs=(*prim.in_specs, *_picked(prim.in_specs, mask)),
        out_specs=(*prim.out_specs, *_picked(prim.out_specs, inner.out_tangents)),
    )
    outs = b.emit(made, [*primals, *[t for t in tangents if t is not None]])
    return with_tangents(outs, inner.out_tangents)
