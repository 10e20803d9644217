"""Forward mode of ``optimization_barrier``."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.prims import OptimizationBarrier
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import JvpOut, RuleBuilder


def barrier_jvp(
    b: RuleBuilder,
    prim: OptimizationBarrier,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    # Two barriers: primals do not wait for tangents.
    dots = iter(b.emit(prim, [t for t in tangents if t is not None]))
    return JvpOut(b.emit(prim, primals), [None if t is None else next(dots) for t in tangents])
