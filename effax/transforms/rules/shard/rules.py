"""The rules of ``shard_map``, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.partition import Spec
from effax.ir.prims import ShardMap
from effax.ir.syntax import Atom
from effax.ir.types import RefType, Type, array_type, ref_type
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
    BatchOut,
    DischargeOut,
    JvpOut,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.jvp import jvp, with_tangents
from effax.transforms.rules.common import placed
from effax.transforms.rules.shard.expand import expanded
from effax.transforms.rules.shard.partial_eval import shard_map_split
from effax.transforms.rules.shard.transpose import shard_map_transpose
from effax.transforms.vmap.common import at_arguments
from effax.transforms.vmap.engine import vmap


def _picked(specs: Sequence[Spec], mask: Sequence[bool]) -> tuple[Spec, ...]:
    return tuple([spec for spec, has in zip(specs, mask, strict=True) if has])


def shard_map_jvp(
    b: RuleBuilder, prim: ShardMap, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """A tangent is divided as its primal is."""
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


def shard_map_batch(
    b: BatchBuilder, prim: ShardMap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Each device has all lanes of its part: the batch axis is not divided."""
    masked = b.active is not None
    with at_arguments(range(len(ins))):
        inner = vmap.cached(
            prim.jaxpr, tuple(batched), size, b.rules, b.shared, masked, None, b.axis
        )
    mask: tuple[Spec, ...] = ((),) if masked else ()
    made = replace(
        prim,
        jaxpr=inner.jaxpr,
        in_specs=(*mask, *_behind(prim.in_specs, batched)),
        out_specs=_behind(prim.out_specs, inner.out_batched),
    )
    return BatchOut(b.emit(made, [*b.mask(), *ins]), inner.out_batched)


def _behind(specs: Sequence[Spec], batched: Sequence[bool]) -> tuple[Spec, ...]:
    """The specs, behind a batch axis where there is one."""
    return tuple([((), *s) if has and s else s for s, has in zip(specs, batched, strict=True)])


def shard_map_discharge(
    b: RuleBuilder, prim: ShardMap, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """References of devices are theirs; with one from outside, all devices become lanes first."""
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


SHARD: Final[RuleSet] = NO_RULES.extend(
    ShardMap,
    Rules(
        shard_map_jvp, shard_map_transpose, shard_map_batch, shard_map_split, shard_map_discharge
    ),
)
