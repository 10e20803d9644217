"""Batching of subjaxprs by the batch rules of their primitives."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.syntax import Jaxpr
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder
from effax.transforms.vmap.common import at_arguments
from effax.transforms.vmap.engine import Vmapped, vmap


def batched_subjaxpr(
    b: BatchBuilder,
    jaxpr: Jaxpr,
    batched: Sequence[bool],
    size: int,
    out_batched: Mask | None = None,
    masked: bool | None = None,
    first: int = 0,
) -> Vmapped:
    """Return a subjaxpr, batched as its application.

    Args:
        b: the builder of the application.
        jaxpr: the subjaxpr, whose inputs are the operands from position ``first`` on.
        batched: which inputs are batched.
        size: the length of the batch axis.
        out_batched: which results are batched; None: the results that depend on batched inputs.
        masked: whether it takes a mask of batch elements as its first input; None: if the
            application has one.
        first: the position of the first operand that the subjaxpr takes.

    Raises UnbatchedRefWrite about an operand of the application.
    """
    unbatched_refs = frozenset(i - first for i in b.unbatched_refs)
    masked = b.mask is not None if masked is None else masked
    with at_arguments(range(first, first + len(batched))):
        return vmap.cached(
            jaxpr, tuple(batched), size, b.rules, unbatched_refs, masked, out_batched, b.axis
        )
