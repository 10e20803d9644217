"""Batching of calls with custom rules.

The call is batched by its own batching rule, or else as its jaxpr. Rules for derivatives become
rules whose jaxprs are batched when they are asked for, so that batching commutes with
differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.effects import Accum, Write
from effax.ir.build import Builder
from effax.ir.dtypes import BOOL
from effax.ir.errors import TransformError
from effax.ir.prims import (
    BatchedProgram,
    CustomJvp,
    CustomLinear,
    CustomVjp,
    CustomVmap,
    Slice,
    Squeeze,
    VmapRule,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import array_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.arrays import to_front
from effax.transforms.rules.custom.batched_rules import (
    BatchedBackward,
    BatchedForward,
    BatchedReverse,
    Batching,
)
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import vmap


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
    batching = _batching(b, size)
    made = replace(
        prim,
        call=_batched_call(prim, batching, batched),
        rule=BatchedForward(prim.rule, batching, tuple(batched), prim.n_consts, prim.label),
        n_consts=prim.n_consts + batching.masked,
        vmap_rule=None,
    )
    return _emitted(b, prim, made, ins, tuple(batched), size)


def _emitted(
    b: BatchBuilder,
    prim: CustomJvp | CustomVjp,
    made: CustomJvp | CustomVjp,
    ins: Sequence[Atom],
    batched: Mask,
    size: int,
) -> BatchOut:
    """Emit a batched call; results that are equal for all batch elements are unbatched."""
    outs = b.emit(made, [*b.mask_operands(), *ins])
    n = len(outs)
    if not prim.call.free_axes or prim.vmap_rule is not None or b.mask is not None:
        return BatchOut(outs, [True] * n)
    # Such as the results of collectives: the call returns them once for each batch element.
    flags = vmap.cached(
        prim.call, batched, size, b.rules, b.unbatched_refs, False, (False,) * n, b.axis
    ).out_batched
    return BatchOut([x if has else _first(b, x) for x, has in zip(outs, flags, strict=True)], flags)


def _first(b: Builder, x: Atom) -> Atom:
    shape = x.type.shape
    return b(Squeeze((0,)), b(Slice((0,) * len(shape), (1, *shape[1:])), x))


def custom_vjp_batch(
    b: BatchBuilder, prim: CustomVjp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch the function and its rules."""
    batching, flags, n = _batching(b, size), tuple(batched), prim.n_consts
    forward = prim.forward
    made = replace(
        prim,
        call=_batched_call(prim, batching, batched),
        rule=BatchedReverse(prim.rule, batching, flags, n, len(prim.call.outs), prim.label),
        n_consts=n + batching.masked,
        forward=None
        if forward is None
        else BatchedForward(forward, batching, flags, n, prim.label),
        vmap_rule=None,
    )
    return _emitted(b, prim, made, ins, flags, size)


def _batching(b: BatchBuilder, size: int) -> Batching:
    return Batching(size, b.unbatched_refs, b.mask is not None, b.rules, b.axis)


def custom_linear_batch(
    b: BatchBuilder, prim: CustomLinear, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch both jaxprs, with all linear arguments batched."""
    n, n_linear = prim.n_fixed, len(ins) - prim.n_fixed
    batching = _batching(b, size)
    own = zip(ins[n:], batched[n:], strict=True)
    args = [*ins[:n], *[to_front(b, x, has, size) for x, has in own]]
    fixed, forward, bwd = tuple(batched[:n]), prim.forward, prim.bwd
    if isinstance(bwd, Jaxpr):
        bwd = batching.program(bwd, [*fixed, *[True] * len(prim.out_types)])
    else:
        bwd = BatchedBackward(bwd, batching, fixed, n, 0, (), (True,) * n_linear, prim.label)
    if forward is not None:
        forward = batching.program(forward, [*fixed, *[True] * n_linear])
    out_types = tuple([batched_type(t, size) for t in prim.out_types])
    made = replace(prim, bwd=bwd, n_fixed=n + batching.masked, out_types=out_types, forward=forward)
    return BatchOut(b.emit(made, [*b.mask_operands(), *args]), [True] * len(out_types))
