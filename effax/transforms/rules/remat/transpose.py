"""Transposition of ``remat`` and ``optimization_barrier``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.cotangents import present
from effax.transforms.rules.jit.transpose import call_transpose


def remat_transpose(
    b: RuleBuilder, prim: Remat, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """Transpose as a call: its fixed part is recomputed inside, before the linear part."""
    return call_transpose(b, replace(prim, differentiated=True), ins, cts)


def barrier_transpose(
    b: RuleBuilder,
    prim: OptimizationBarrier,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    given = present(cts)
    results = iter(b.emit(prim, given) if given else [])
    return [None if ct is None else next(results) for ct in cts]
