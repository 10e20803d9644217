"""Batching of calls with custom rules.

The call is batched by its own batching rule, or else as its jaxpr. Rules for derivatives are
batched as jaxprs, so that batching commutes with differentiation.
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
    BatchedZerosBackward,
    BatchedZerosJvp,
    BatchedZerosVjp,
    Batching,
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
    """Apply the call's own batching rule. Raises TransformError if it is not applicable."""
    if any(flags[: prim.n_consts]):
        raise TransformError(
            f"{prim.label}, which has a batching rule, closes over a batched value",
            remedy="pass the value as an argument",
        )
    program = rule(size, tuple(flags))
    if masked and any(isinstance(e, Write | Accum) for e in program.jaxpr.effects):
        raise TransformError(
            f"the batching rule of {prim.label} changes a reference, but some batch elements are "
            "inactive",
            remedy="do not call it under a batched condition (`cond`, `while_loop`), or return the "
            "value that is to be written",
        )
    return program


def _batched_call(prim: CustomJvp | CustomVjp, batching: Batching, flags: Sequence[bool]) -> Jaxpr:
    """Return the batched function, all results batched."""
    if prim.vmap_rule is None:
        return batching.program(prim.call, flags)
    size, masked = batching.size, batching.masked
    found = _ruled(prim, prim.vmap_rule, flags, size, masked)
    b = Builder([array_type((size,), BOOL)] if masked else [])
    args = [b.bind(t) for t in found.jaxpr.in_types]
    outs = b.inline_jaxpr(found.jaxpr, args)
    full = [to_front(b, x, has, size) for x, has in zip(outs, found.batched, strict=True)]
    return b.finish(full, prim.n_consts + masked)


def custom_vmap_batch(
    b: BatchBuilder, prim: CustomVmap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    found = _ruled(prim, prim.vmap_rule, batched, size, b.mask is not None)
    return BatchOut(b.inline_jaxpr(found.jaxpr, ins), found.batched)


def custom_jvp_batch(
    b: BatchBuilder, prim: CustomJvp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch the function and its forward rule."""

    def over_batch(flags: Sequence[bool], masked: bool) -> CustomJvp:
        batching = Batching(size, b.unbatched_refs, masked, b.rules, b.axis)
        call, rule = _batched_call(prim, batching, flags), prim.rule
        if isinstance(rule, Jaxpr):
            rest = zip(prim.call.binders[prim.n_consts :], flags[prim.n_consts :], strict=True)
            dots = [has for v, has in rest if is_inexact(v.type)]
            rule = batching.program(rule, [*flags, *dots])
        elif not isinstance(rule, int):
            rule = BatchedZerosJvp(rule, batching, tuple(flags), prim.n_consts, prim.label)
        return CustomJvp(call, rule, prim.n_consts + masked, prim.label)

    return _custom_batch(b, prim, ins, batched, size, over_batch)


def custom_vjp_batch(
    b: BatchBuilder, prim: CustomVjp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch the function and its rules; cotangents of unbatched arguments are summed."""

    def over_batch(flags: Sequence[bool], masked: bool) -> CustomVjp:
        batching = Batching(size, b.unbatched_refs, masked, b.rules, b.axis)
        made = replace(prim, call=_batched_call(prim, batching, flags), vmap_rule=None)
        rest = list(zip(prim.call.binders, flags, strict=True))[prim.n_consts :]
        if isinstance(prim.fwd, Jaxpr) and isinstance(prim.bwd, Jaxpr):
            n_residuals = len(prim.fwd.outs) - len(prim.call.outs)
            consts = flags[: prim.n_consts]
            bwd = batching.backward(prim.bwd, consts, n_residuals, prim.refs, flags)
            kept = [has for (_, has), wanted in zip(rest, prim.wanted, strict=True) if wanted]
            fwd = batching.program(prim.fwd, flags)
            made = replace(made, fwd=fwd, bwd=summed_where_unbatched(bwd, kept))
        elif not isinstance(prim.fwd, Jaxpr | int):
            types, n_outs = prim.call.in_types, len(prim.call.outs)
            rules = BatchedZerosVjp(
                prim.fwd, batching, tuple(flags), types, prim.n_consts, n_outs, prim.label
            )
            made = replace(made, fwd=rules)
        if prim.forward is not None:
            dots = [has for v, has in rest if is_inexact(v.type)]
            made = replace(made, forward=batching.program(prim.forward, [*flags, *dots]))
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
    """Return the batched call.

    If its rules have recursive calls, all arguments are batched, and it takes a mask if any
    recursive call does: so recursive calls have the types of the call.
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
    """Batch both jaxprs, with all linear arguments batched."""
    n, n_linear = prim.n_fixed, len(ins) - prim.n_fixed
    masked = b.mask is not None
    batching = Batching(size, b.unbatched_refs, masked, b.rules, b.axis)
    own = zip(ins[n:], batched[n:], strict=True)
    args = [*ins[:n], *[to_front(b, x, has, size) for x, has in own]]
    fixed, forward, bwd = tuple(batched[:n]), prim.forward, prim.bwd
    if isinstance(bwd, Jaxpr):
        bwd = batching.program(bwd, [*fixed, *[True] * len(prim.out_types)])
    else:
        bwd = BatchedZerosBackward(bwd, batching, fixed, n, 0, (), (True,) * n_linear, prim.label)
    if forward is not None:
        forward = batching.program(forward, [*fixed, *[True] * n_linear])
    out_types = tuple([batched_type(t, size) for t in prim.out_types])
    made = CustomLinear(bwd, n + masked, out_types, prim.label, forward, prim.paired)
    return BatchOut(b.emit(made, [*b.mask_operands(), *args]), [True] * len(out_types))
