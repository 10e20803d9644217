"""Discharge of ``shard_map``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.effects import Accum, ArgIndex, Read, Write
from effax.ir.dtypes import family
from effax.ir.prims import Add, Pmax, Psum, ShardMap
from effax.ir.prims.common.operands import NUMBERS
from effax.ir.syntax import Atom
from effax.ir.types import RefType, Type, array_type, ref_type
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.common.arrays import placed, zeros
from effax.transforms.rules.shard.expand import expanded


def shard_map_discharge(
    b: RuleBuilder, prim: ShardMap, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Discharge references inside; expand devices to batch axes where they share one that changes.

    On several devices, each has its part of a reference, and adds to a shared one at the end.
    """
    refs = [i for i, ref in enumerate(is_ref) if ref]
    if not refs or (prim.grid is not None and all(_is_apart(prim, i) for i in refs)):
        return _discharged_inside(b, prim, ins)
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


def _is_apart(prim: ShardMap, position: int) -> bool:
    """Return whether no device sees what others do to a reference."""
    if not _adds(prim, position) or not prim.unnamed(prim.in_specs[position]):
        return True
    summed = family(prim.jaxpr.binders[position].type.dtype) in NUMBERS
    own = prim.jaxpr.effects.on(ArgIndex(position))
    return summed and not any(isinstance(e, Read | Write) for e in own)


def _adds(prim: ShardMap, position: int) -> bool:
    return any(isinstance(e, Accum) for e in prim.jaxpr.effects.on(ArgIndex(position)))


def _discharged_inside(b: RuleBuilder, prim: ShardMap, ins: Sequence[Atom]) -> DischargeOut:
    inner = discharge.cached(prim.jaxpr, b.rules)
    # Devices add to zeros what they add to a shared reference.
    shared = {i: prim.unnamed(prim.in_specs[i]) for i in inner.changed}
    body = RuleBuilder(b.rules, inner.jaxpr.in_types)
    summed = {i for i, axes in shared.items() if axes and _adds(prim, i)}
    args = [zeros(body, v.type) if i in summed else v for i, v in enumerate(body.binders)]
    outs = body.inline_jaxpr(inner.jaxpr, args)
    for k, i in enumerate(inner.changed, inner.n_outs):
        for axis in shared[i]:
            # The token of side effects alone is written by all; its value is not used.
            outs[k] = body(Psum(axis) if i in summed else Pmax(axis), outs[k])
    made = replace(
        prim,
        jaxpr=body.finish(outs, prim.jaxpr.n_consts, prim.jaxpr.names),
        out_specs=(*prim.out_specs, *[prim.in_specs[i] for i in inner.changed]),
    )
    results = b.emit(made, ins)
    new = [
        b(Add(), ins[i], x) if i in summed else x
        for i, x in zip(inner.changed, results[inner.n_outs :], strict=True)
    ]
    return DischargeOut(results[: inner.n_outs], placed(inner.changed, new, len(ins)))
