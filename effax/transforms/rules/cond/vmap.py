"""Batching of ``cond``.

With an unbatched index it stays a ``cond``. With a batched index all branches run, each masked to
the batch elements that take it, and results are selected::

    cond(p, f, g)(x)    =    select(p, g(x), f(x))

The elements that do not take a branch run it on safe operands (``common/safe_operands.py``).
A result that all branches only pass through is that operand, batched only if the operand is.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.analysis.passing import passed_results
from effax.ir.build import lit
from effax.ir.prims import And, Clamp, Cond, Eq, Not, SelectN
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.arrays import mask_like
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr
from effax.transforms.rules.common.safe_operands import safe_operands
from effax.transforms.vmap.common import check_uniform
from effax.transforms.vmap.engine import closed_batch, runs_under_mask
from effax.transforms.vmap.singular import singular_inputs


def cond_batch(
    b: BatchBuilder, prim: Cond, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    closed, given = closed_batch(b, prim, batched, size)
    if batched[0]:
        return _select_branches(b, prim, ins, closed, size, given)
    branches = [_branch(b, branch, closed[1:], size, None, given) for branch in prim.branches]
    outs = b.emit(Cond(tuple(branches)), [ins[0], *b.mask_operands(), *ins[1:]])
    return BatchOut(outs, given)


def _branch(
    b: BatchBuilder, branch: Jaxpr, batched: Mask, size: int, masked: bool | None, out_batched: Mask
) -> Jaxpr:
    # Operand i + 1 of the cond is input i of its branches.
    return batched_subjaxpr(b, branch, batched, size, out_batched, masked, first=1).jaxpr


def _select_branches(
    b: BatchBuilder, prim: Cond, ins: Sequence[Atom], batched: Mask, size: int, given: Mask
) -> BatchOut:
    check_uniform(b, prim, "a branch under a batched predicate")
    n = len(prim.branches)
    index, operands = ins[0], ins[1:]
    if index.type.dtype.kind != "b":
        index = b(Clamp(), lit(0, index.type), index, lit(n - 1, index.type))
    passed = passed_results(prim)
    selected = tuple([source is None for source in passed])
    results: list[list[Atom]] = []
    for i, branch in enumerate(prim.branches):
        masked = runs_under_mask(branch, b.rules)
        made = _branch(b, branch, batched[1:], size, masked, selected)
        if masked or True in singular_inputs(branch, b.rules):
            taken = _taken(b, index, i)
            safe = safe_operands(b, branch, taken, operands, batched[1:], size)
            results.append(b.inline_jaxpr(made, [taken, *safe] if masked else safe))
        else:
            results.append(b.inline_jaxpr(made, operands))
    outs: list[Atom] = []
    for source, *cases in zip(passed, *results, strict=True):
        constant = source if isinstance(source, Lit) else None
        same = ins[source] if isinstance(source, int) else constant
        outs.append(_selected(b, index, cases) if same is None else same)
    return BatchOut(outs, given)


def _taken(b: BatchBuilder, index: Atom, branch: int) -> Atom:
    """Return the mask of the active batch elements that take this branch."""
    if index.type.dtype.kind == "b":
        taken: Atom = index if branch else b(Not(), index)
    else:
        taken = b(Eq(), index, lit(branch, index.type))
    return taken if b.mask is None else b(And(), b.mask, taken)


def _selected(b: BatchBuilder, index: Atom, cases: Sequence[Atom]) -> Atom:
    return b(SelectN(), mask_like(b, index, cases[0]), *cases)
