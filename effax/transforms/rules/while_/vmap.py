"""Batching of ``while``.

With an unbatched condition it stays the same loop, with batched carries. With a batched condition
the loop carries the mask of running batch elements; an element whose condition is false keeps its
carries and has no further effects::

    running = mask and cond(x)
    while any(running):
        x = select(running, x, body(x))
        running = running and cond(x)

The elements that have finished run the body on safe operands (``common/safe_operands.py``). A carry
that the body returns as it is stays unbatched. Under a mask with no active element a loop
ends, even if its condition is true.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import Builder
from effax.ir.dtypes import BOOL
from effax.ir.prims import And, BroadcastInDim, ReduceOr, While
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import Type, array_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.arrays import mask_like, to_front
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr
from effax.transforms.rules.common.pointwise import where
from effax.transforms.rules.common.safe_operands import Safe, safe_operands
from effax.transforms.vmap.common import check_uniform
from effax.transforms.vmap.engine import closed_batch


def while_batch(
    b: BatchBuilder, prim: While, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    closed, given = closed_batch(b, prim, batched, size)
    args = [
        to_front(b, x, has, size) if now else x
        for x, has, now in zip(ins, batched, closed, strict=True)
    ]
    cond = batched_subjaxpr(b, prim.cond, closed, size, (False,))
    body = batched_subjaxpr(b, prim.body, closed, size, given)
    if cond.out_batched[0]:
        return _own_conditions(b, prim, args, closed, size, given)
    test = cond.jaxpr if b.mask is None else _while_any(cond.jaxpr)
    made = While(test, body.jaxpr, prim.n_consts + len(b.mask_operands()))
    return BatchOut(b.emit(made, [*b.mask_operands(), *args]), given)


def _while_any(cond: Jaxpr) -> Jaxpr:
    """Return the condition of a loop under a mask, which is its first input."""
    b = Builder(cond.in_types)
    (again,) = b.inline_jaxpr(cond, b.binders)
    return b.finish([b(And(), again, b(ReduceOr((0,)), b.binders[0]))], cond.n_consts, cond.names)


def _own_conditions(
    b: BatchBuilder, prim: While, args: Sequence[Atom], closed: Mask, size: int, given: Mask
) -> BatchOut:
    """Batch a loop with a batched condition as a loop over ``(consts, running, carry)``."""
    check_uniform(b, prim, "a loop with a batched condition")
    n = prim.n_consts
    cond = batched_subjaxpr(b, prim.cond, closed, size, (True,), masked=True).jaxpr
    body = batched_subjaxpr(b, prim.body, closed, size, given, masked=True).jaxpr
    mask = b.mask or b(BroadcastInDim((size,), ()), Lit(True, array_type((), BOOL)))
    (start,) = b.inline_jaxpr(cond, [mask, *args])
    start = b(And(), mask, start)
    types = [*[x.type for x in args[:n]], start.type, *[x.type for x in args[n:]]]
    step = _step(b, prim, types, cond, body, closed, size)
    outs = b.emit(While(_any_runs(types, n), step, n), [*args[:n], start, *args[n:]])
    return BatchOut(_of_active(b, outs[1:], given, size), given)


def _of_active(b: BatchBuilder, outs: Sequence[Atom], batched: Mask, size: int) -> list[Atom]:
    """Return the results; under a mask, inactive elements have those of an active one."""
    if b.mask is None or not size:
        return list(outs)
    safe = Safe(b, b.mask, size)
    return [safe.of_active(x) if has else x for x, has in zip(outs, batched, strict=True)]


def _any_runs(types: Sequence[Type], n_consts: int) -> Jaxpr:
    b = Builder(types)
    return b.finish([b(ReduceOr((0,)), b.binders[n_consts])])


def _step(
    rule: BatchBuilder,
    prim: While,
    types: Sequence[Type],
    cond: Jaxpr,
    body: Jaxpr,
    batched: Mask,
    size: int,
) -> Jaxpr:
    """Return one iteration of the running batch elements; the others keep their carries.

    An unbatched carry is one that the body returns as it is.
    """
    b = BatchBuilder(rule.rules)
    n = prim.n_consts
    ins = [b.bind(t) for t in types]
    consts, running, carry = ins[:n], ins[n], ins[n + 1 :]
    safe = safe_operands(b, prim.body, running, [*consts, *carry], batched, size, some_active=True)
    new = b.inline_jaxpr(body, [running, *safe])
    kept = [
        where(b, mask_like(b, running, x), x, old) if has else old
        for x, old, has in zip(new, carry, batched[n:], strict=True)
    ]
    (again,) = b.inline_jaxpr(cond, [running, *consts, *kept])
    return b.finish([b(And(), running, again), *kept])
