"""Transposition of ``remat``, of names and of barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    Linear,
    RuleBuilder,
)
from effax.transforms.rules.common.cotangents import call_operands, spec_of, values_of
from effax.transforms.transpose.engine import transpose


def remat_transpose(
    b: RuleBuilder, prim: Remat, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """What the linear part needs is computed first, inside, and the linear part backward."""
    ct_specs = tuple(map(spec_of, ins))
    has = tuple([ct is not None for ct in cts])
    inner = transpose.cached(prim.jaxpr, ct_specs, has, b.rules)
    made = replace(prim, jaxpr=inner.jaxpr, differentiated=True)
    return values_of(ct_specs, inner.nonzero, b.emit(made, call_operands(ins, cts)))


def same_transpose(
    b: RuleBuilder, prim: Name, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return cts


def barrier_transpose(
    b: RuleBuilder,
    prim: OptimizationBarrier,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    given = [ct for ct in cts if ct is not None]
    held = iter(b.emit(prim, given) if given else [])
    return [None if ct is None else next(held) for ct in cts]
