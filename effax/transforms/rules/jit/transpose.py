"""Transposition of ``jit`` and ``remat``: a call of the transposed jaxpr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Jit, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.cotangents import call_operands, spec_of, values_of
from effax.transforms.transpose.engine import transpose


def call_transpose(
    b: RuleBuilder, prim: Jit | Remat, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    ct_specs = tuple(map(spec_of, ins))
    has = tuple([ct is not None for ct in cts])
    inner = transpose.cached(prim.jaxpr, ct_specs, has, b.rules)
    results = b.emit(replace(prim, jaxpr=inner.jaxpr), call_operands(ins, cts))
    return values_of(ct_specs, inner.nonzero, results)
