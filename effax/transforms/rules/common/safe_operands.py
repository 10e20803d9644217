"""Operands of inactive batch elements: values at which derivatives add no nan to cotangents.

Under a batched predicate every batch element runs the subjaxpr. The cotangents of inactive elements
are zero, but ``0·inf`` is nan where their operands are singular, as for ``sqrt`` at 0. So

- a batched operand has no cotangent in inactive elements: ``select(mask, x, stop_gradient(x))``,
  which compiles to ``x``;
- if an unbatched operand is differentiated as well, its cotangent is a sum over all elements. Then
  inactive elements take the values of the first active element ``k``, ``select(mask, x,
  stop_gradient(x[k]))``: they add zero times what that element multiplies by;
- if no element is active, the unbatched operand has no cotangent.

Operands that only pass through additions, selections and other equations with constant derivatives
stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.build import Builder
from effax.ir.indexing import row
from effax.ir.prims import Argmax, Gather, ReduceOr, StopGradient
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, is_inexact
from effax.transforms.framework.dead_code import used_variables
from effax.transforms.framework.rules import BatchBuilder
from effax.transforms.rules.common.arrays import mask_like, to_front
from effax.transforms.rules.common.pointwise import in_shape, where
from effax.transforms.vmap.singular import singular_inputs


def safe_operands(
    b: BatchBuilder,
    jaxpr: Jaxpr,
    mask: Atom,
    args: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    some_active: bool = False,
) -> list[Atom]:
    """Return the operands with which the batch elements run a subjaxpr.

    Args:
        b: the builder of the application.
        jaxpr: the subjaxpr.
        mask: the active batch elements.
        args: the operands.
        batched: which operands are batched.
        size: the number of batch elements.
        some_active: whether the subjaxpr runs only if an element is active.
    """
    singular = singular_inputs(jaxpr, b.rules)
    if True not in singular or not size:
        return list(args)
    safe = Safe(b, mask, size)
    if not any(s and not has for s, has in zip(singular, batched, strict=True)):
        return [
            safe.without_cotangent(x) if s and not isinstance(x.type, RefType) else x
            for x, s in zip(args, singular, strict=True)
        ]
    used = used_variables(jaxpr)
    made: list[Atom] = []
    for v, x, has, s in zip(jaxpr.binders, args, batched, singular, strict=True):
        if isinstance(x.type, RefType) or v.id not in used:
            made.append(x)
        elif has:
            made.append(safe.of_active(x))
        else:
            made.append(safe.if_any(x) if s and not some_active else x)
    return made


class Safe:
    """The replacement of values of inactive batch elements. There is at least one element."""

    def __init__(self, b: Builder, mask: Atom, size: int) -> None:
        self.b = b
        self.mask = mask
        self.size = size
        self._first: Atom | None = None

    def without_cotangent(self, x: Atom) -> Atom:
        """Return a batched value that has no cotangent in inactive elements."""
        return where(self.b, mask_like(self.b, self.mask, x), x, self.b(StopGradient(), x))

    def of_active(self, x: Atom) -> Atom:
        """Return a batched value, with that of the first active element in inactive ones."""
        b = self.b
        if self._first is None:
            self._first = b(Argmax(0, np.dtype(np.int32)), self.mask)
        one = b(Gather(row(x.type.shape)), x, self._first)
        one = b(StopGradient(), one) if is_inexact(x.type) else one
        return where(b, mask_like(b, self.mask, x), x, to_front(b, one, False, self.size))

    def if_any(self, x: Atom) -> Atom:
        """Return an unbatched value that has no cotangent if no element is active."""
        b = self.b
        active = b(ReduceOr((0,)), self.mask)
        return where(b, in_shape(b, active, x), x, b(StopGradient(), x))
