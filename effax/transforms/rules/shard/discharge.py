"""Discharge of ``shard_map``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import ShardMap
from effax.ir.syntax import Atom
from effax.ir.types import RefType, Type, array_type, ref_type
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.common.arrays import placed
from effax.transforms.rules.shard.expand import expanded


def shard_map_discharge(
    b: RuleBuilder, prim: ShardMap, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Discharge local references inside; for reference operands, expand devices to batch axes."""
    if True not in is_ref:
        made = replace(prim, jaxpr=discharge.cached(prim.jaxpr, b.rules).jaxpr)
        return DischargeOut(b.emit(made, ins), [None] * len(ins))
    types: list[Type] = [
        ref_type(array_type(x.type.shape, x.type.dtype), v.type.kind)
        if isinstance(v.type, RefType)
        else x.type
        for x, v in zip(ins, prim.jaxpr.binders, strict=True)
    ]
    inner = discharge.cached(expanded(prim, tuple(types), b.rules), b.rules)
    results = b.inline_jaxpr(inner.jaxpr, ins)
    new = results[inner.n_outs :]
    return DischargeOut(results[: inner.n_outs], placed(inner.changed, new, len(ins)))
