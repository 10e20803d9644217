"""Batching of ``cond``.

Where all lanes take one branch it stays a ``cond``. Where each takes its own, every branch runs,
for the lanes that take it, and results are selected::

    cond(p, f, g)(x)    =    select(p, g(x), f(x))
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import lit
from effax.ir.prims import And, BroadcastInDim, Clamp, Cond, Eq, Not, SelectN
from effax.ir.syntax import Atom, Jaxpr
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.vmap.common import at_arguments, check_uniform
from effax.transforms.vmap.engine import closed_batch, runs_under_mask, vmap


def cond_batch(
    b: BatchBuilder, prim: Cond, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    closed, given = closed_batch(b, prim, batched, size)
    if batched[0]:
        return _each_its_own(b, prim, ins, closed, size)
    masked = b.mask is not None
    branches = [_branch(b, branch, closed[1:], size, masked, given) for branch in prim.branches]
    outs = b.emit(Cond(tuple(branches)), [ins[0], *b.mask_operands(), *ins[1:]])
    return BatchOut(outs, given)


def _branch(
    b: BatchBuilder, branch: Jaxpr, batched: Mask, size: int, masked: bool, wanted: Mask
) -> Jaxpr:
    shared = frozenset(i - 1 for i in b.unbatched_refs)
    with at_arguments(range(1, 1 + len(batched))):
        return vmap.cached(branch, batched, size, b.rules, shared, masked, wanted, b.axis).jaxpr


def _each_its_own(
    b: BatchBuilder, prim: Cond, ins: Sequence[Atom], batched: Mask, size: int
) -> BatchOut:
    check_uniform(b, prim, "a branch that each lane takes or not")
    n = len(prim.branches)
    index, operands = ins[0], ins[1:]
    if index.type.dtype.kind != "b":
        index = b(Clamp(), lit(0, index.type), index, lit(n - 1, index.type))
    every = (True,) * len(prim.branches[0].outs)
    results: list[list[Atom]] = []
    for i, branch in enumerate(prim.branches):
        masked = runs_under_mask(branch)
        made = _branch(b, branch, batched[1:], size, masked, every)
        here = [_taken(b, index, i)] if masked else []
        results.append(b.inline_jaxpr(made, [*here, *operands]))
    outs = [_selected(b, index, cases) for cases in zip(*results, strict=True)]
    return BatchOut(outs, every)


def _taken(b: BatchBuilder, index: Atom, branch: int) -> Atom:
    """The lanes that are here and take this branch."""
    if index.type.dtype.kind == "b":
        taken: Atom = index if branch else b(Not(), index)
    else:
        taken = b(Eq(), index, lit(branch, index.type))
    return taken if b.mask is None else b(And(), b.mask, taken)


def _selected(b: BatchBuilder, index: Atom, cases: Sequence[Atom]) -> Atom:
    shape = cases[0].type.shape
    which = index if len(shape) == 1 else b(BroadcastInDim(shape, (0,)), index)
    return b(SelectN(), which, *cases)
