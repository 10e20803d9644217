"""Derivatives of ``remat``, of names and of barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    JvpOut,
    RuleBuilder,
)
from effax.transforms.jvp import jvp, with_tangents


def remat_jvp(
    b: RuleBuilder, prim: Remat, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    present = [t for t in tangents if t is not None]
    inner = jvp.cached(prim.jaxpr, tuple([t is not None for t in tangents]), False, b.rules)
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*primals, *present])
    return with_tangents(outs, inner.out_tangents)


def name_jvp(
    b: RuleBuilder, prim: Name, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """The value has a name, its tangent has none."""
    return JvpOut(b.emit(prim, primals), tangents)


def barrier_jvp(
    b: RuleBuilder,
    prim: OptimizationBarrier,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    dots = iter(b.emit(prim, [t for t in tangents if t is not None]))
    return JvpOut(b.emit(prim, primals), [None if t is None else next(dots) for t in tangents])
