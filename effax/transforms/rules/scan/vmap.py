"""Batching of ``scan``: one loop for all batch elements.

A carry that is batched in any iteration is batched from the start. The scanned axis stays in
front and the batch axis is second; a batched reference that is scanned is copied to a local one
with its axes in that order, and copied back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.effects import ArgIndex, Io
from effax.ir.prims import Scan
from effax.ir.prims.host import DEBUG
from effax.ir.syntax import Atom
from effax.ir.types import RefType
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.arrays import permuted, to_front
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr
from effax.transforms.rules.host import sequential_batch
from effax.transforms.vmap.common import Borrowed, borrow
from effax.transforms.vmap.engine import closed_batch


def scan_batch(
    b: BatchBuilder, prim: Scan, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Return one loop for all batch elements, or a loop for each if it only calls back."""
    step = sequential_batch if _only_calls(prim, ins) else batch_together
    return step(b, prim, ins, batched, size)


def batch_together(
    b: BatchBuilder, prim: Scan, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    closed, given = closed_batch(b, prim, batched, size)
    inner = batched_subjaxpr(b, prim.jaxpr, closed, size, given)
    args: list[Atom] = []
    borrowed: list[Borrowed] = []
    for i, (x, has, now) in enumerate(zip(ins, batched, closed, strict=True)):
        if i < prim.n_consts + prim.n_carry:
            args.append(to_front(b, x, has, size) if now else x)
        elif has and isinstance(x.type, RefType):
            effects = prim.jaxpr.effects.on(ArgIndex(i))
            borrowed.append(borrow(b, x, _swapped(x), effects))
            args.append(borrowed[-1].local)
        else:
            args.append(permuted(b, x, _swapped(x)) if has else x)
    made = replace(prim, jaxpr=inner.jaxpr, n_consts=prim.n_consts + len(b.mask_operands()))
    outs: list[Atom] = list(b.emit(made, [*b.mask_operands(), *args]))
    for j in range(prim.n_carry, len(outs)):
        if given[j]:
            outs[j] = permuted(b, outs[j], _swapped(outs[j]))
    for ref in borrowed:
        ref.write_back(b)
    return BatchOut(outs, given)


def _only_calls(prim: Scan, ins: Sequence[Atom]) -> bool:
    """Return whether the loop does nothing else than call debugging callbacks.

    One loop for all batch elements would make the calls of a step together. In sequence, those of
    the first batch element come first, as for a batched callback, whose loop is such a ``scan``.
    """
    calls = prim.jaxpr.effects.side_effects
    return (
        bool(calls)
        and not (prim.jaxpr.outs or prim.jaxpr.free_axes)
        and all(isinstance(effect, Io) and effect.channel == DEBUG for effect in calls)
        and not any(isinstance(x.type, RefType) for x in ins)
    )


def _swapped(x: Atom) -> list[int]:
    """Return the permutation that swaps the first two axes."""
    return [1, 0, *range(2, len(x.type.shape))]
