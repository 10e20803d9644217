"""Batching of calls that bring rules of their own.

The call runs over lanes as its own rule says, or as its program does. Rules for derivatives are
programs, and run over lanes as such: whether one differentiates before or after makes no
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from effax.effects import Accum, Write
from effax.ir.build import Builder, lit
from effax.ir.dtypes import BOOL
from effax.ir.errors import TransformError
from effax.ir.prims import (
    BatchedProgram,
    BroadcastInDim,
    CustomJvp,
    CustomLinear,
    CustomVjp,
    CustomVmap,
    VmapRule,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, array_type, is_inexact
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.arrays import to_front
from effax.transforms.rules.custom.batched_rules import (
    OverLanes,
    ZerosBackwardOverLanes,
    ZerosJvpOverLanes,
    ZerosVjpOverLanes,
    summed_where_unbatched,
)
from effax.transforms.rules.custom.recursive_calls import (
    has_recursive_rules,
    recurs_on_own_types,
    unbound_call_error,
)
from effax.transforms.vmap.common import batched_type


def _ruled(
    prim: CustomJvp | CustomVjp | CustomVmap,
    rule: VmapRule,
    flags: Sequence[bool],
    size: int,
    masked: bool,
) -> BatchedProgram:
    """What the call's own rule gives. Raises TransformError where it cannot be asked."""
    if any(flags[: prim.n_consts]):
        raise TransformError(
            f"{prim.label}, which has a batching rule, closes over a batched value",
            remedy="pass the value as an argument",
        )
    lanes = rule(size, tuple(flags))
    if masked and any(isinstance(e, Write | Accum) for e in lanes.jaxpr.effects):
        raise TransformError(
            f"the batching rule of {prim.label} changes a reference, where some lanes do not run",
            remedy="do not call it in a loop or a choice that differs between lanes, or return "
            "what is to be written",
        )
    return lanes


def _call_over_lanes(prim: CustomJvp | CustomVjp, lanes: OverLanes, flags: Sequence[bool]) -> Jaxpr:
    """The function over the batch, all results batched."""
    if prim.vmap_rule is None:
        return lanes.program(prim.call, flags)
    found = _ruled(prim, prim.vmap_rule, flags, lanes.size, lanes.masked)
    b = Builder([array_type((lanes.size,), BOOL)] if lanes.masked else [])
    args = [b.bind(t) for t in found.jaxpr.in_types]
    outs = b.inline_jaxpr(found.jaxpr, args)
    full = [to_front(b, x, has, lanes.size) for x, has in zip(outs, found.batched, strict=True)]
    return b.finish(full, prim.n_consts + lanes.masked)


def custom_vmap_batch(
    b: BatchBuilder, prim: CustomVmap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    found = _ruled(prim, prim.vmap_rule, batched, size, b.mask is not None)
    return BatchOut(b.inline_jaxpr(found.jaxpr, ins), found.batched)


def custom_jvp_batch(
    b: BatchBuilder, prim: CustomJvp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Both programs over the batch."""

    def over_batch(flags: Sequence[bool], masked: bool) -> CustomJvp:
        lanes = OverLanes(size, b.unbatched_refs, masked, b.rules, b.axis)
        call, rule = _call_over_lanes(prim, lanes, flags), prim.rule
        if isinstance(rule, Jaxpr):
            rest = zip(prim.call.binders[prim.n_consts :], flags[prim.n_consts :], strict=True)
            dots = [has for v, has in rest if is_inexact(v.type)]
            rule = lanes.program(rule, [*flags, *dots])
        elif not isinstance(rule, int):
            rule = ZerosJvpOverLanes(rule, lanes, tuple(flags), prim.n_consts, prim.label)
        return CustomJvp(call, rule, prim.n_consts + masked, prim.label)

    return _custom_batch(b, prim, ins, batched, size, over_batch)


def custom_vjp_batch(
    b: BatchBuilder, prim: CustomVjp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """All programs over the batch; the cotangent of what is not batched is summed."""

    def over_batch(flags: Sequence[bool], masked: bool) -> CustomVjp:
        lanes = OverLanes(size, b.unbatched_refs, masked, b.rules, b.axis)
        made = replace(prim, call=_call_over_lanes(prim, lanes, flags), vmap_rule=None)
        rest = list(zip(prim.call.binders, flags, strict=True))[prim.n_consts :]
        if isinstance(prim.fwd, Jaxpr) and isinstance(prim.bwd, Jaxpr):
            n_residuals = len(prim.fwd.outs) - len(prim.call.outs)
            consts = flags[: prim.n_consts]
            bwd = lanes.backward(prim.bwd, consts, n_residuals, prim.refs, flags)
            kept = [has for (_, has), wanted in zip(rest, prim.wanted, strict=True) if wanted]
            fwd = lanes.program(prim.fwd, flags)
            made = replace(made, fwd=fwd, bwd=summed_where_unbatched(bwd, kept))
        elif not isinstance(prim.fwd, Jaxpr | int):
            types, n_outs = prim.call.in_types, len(prim.call.outs)
            rules = ZerosVjpOverLanes(
                prim.fwd, lanes, tuple(flags), types, prim.n_consts, n_outs, prim.label
            )
            made = replace(made, fwd=rules)
        if prim.forward is not None:
            dots = [has for v, has in rest if is_inexact(v.type)]
            made = replace(made, forward=lanes.program(prim.forward, [*flags, *dots]))
        refs = tuple([i + masked for i in prim.refs])
        return replace(made, refs=refs, n_consts=prim.n_consts + masked)

    return _custom_batch(b, prim, ins, batched, size, over_batch)


def _custom_batch(
    b: BatchBuilder,
    prim: CustomJvp | CustomVjp,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    over_batch: Callable[[Sequence[bool], bool], CustomJvp | CustomVjp],
) -> BatchOut:
    """The call over the batch.

    One that its own rules call again has all arguments batched, and a mask where any call inside
    has one: so the calls inside are on the same types.
    """
    mask: tuple[Atom, ...] = b.mask_operands()
    if not has_recursive_rules(prim):
        made = over_batch(batched, bool(mask))
        return BatchOut(b.emit(made, [*mask, *ins]), [True] * len(made.call.outs))
    args, flags = list(ins), list(batched)
    for i, x in enumerate(ins):
        if i >= prim.n_consts and not isinstance(x.type, RefType):
            args[i], flags[i] = to_front(b, x, batched[i], size), True
    made = over_batch(flags, bool(mask))
    if not mask and not recurs_on_own_types(made):
        mask = (b(BroadcastInDim((size,), ()), lit(True, array_type((), BOOL))),)
        made = over_batch(flags, True)
    if not recurs_on_own_types(made):
        raise unbound_call_error(prim)
    return BatchOut(b.emit(made, [*mask, *args]), [True] * len(made.call.outs))


def custom_linear_batch(
    b: BatchBuilder, prim: CustomLinear, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Both programs over the batch; everything that is linear is batched."""
    n, n_linear = prim.n_fixed, len(ins) - prim.n_fixed
    masked = b.mask is not None
    lanes = OverLanes(size, b.unbatched_refs, masked, b.rules, b.axis)
    own = zip(ins[n:], batched[n:], strict=True)
    args = [*ins[:n], *[to_front(b, x, has, size) for x, has in own]]
    fixed, forward, bwd = tuple(batched[:n]), prim.forward, prim.bwd
    if isinstance(bwd, Jaxpr):
        bwd = lanes.program(bwd, [*fixed, *[True] * len(prim.out_types)])
    else:
        bwd = ZerosBackwardOverLanes(bwd, lanes, fixed, n, 0, (), (True,) * n_linear, prim.label)
    if forward is not None:
        forward = lanes.program(forward, [*fixed, *[True] * n_linear])
    out_types = tuple([batched_type(t, size) for t in prim.out_types])
    made = CustomLinear(bwd, n + masked, out_types, prim.label, forward, prim.paired)
    return BatchOut(b.emit(made, [*b.mask_operands(), *args]), [True] * len(out_types))
