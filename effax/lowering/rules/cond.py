"""Lowering of ``cond``: a case with one region for each branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import INT32, family
from effax.ir.syntax import Jaxpr, Var
from effax.ir.types import ArrayType, Type
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def cond(w: Writer, prim: p.Cond, ins: Sequence[Val]) -> Sequence[Val]:
    index, *operands = ins
    if len(prim.branches) == 1:
        return w.call(prim.branches[0], operands, "branch")
    two = len(prim.branches) == 2
    regions = [
        w.region([], lambda branch=branch: _branch(w, branch, operands, two), captures=True)
        for branch in prim.branches
    ]
    types = [_array(t) for t in prim.branches[0].out_types]
    if family(index.type.dtype) == "bool":
        # Not StableHLO's `if`: XLA copies the operands that its branches return unchanged.
        inside = ops.convert(w, index, INT32)
    else:
        # An index out of range is clamped; StableHLO's case would take the last branch.
        inside = ops.clamped(w, index, 0, len(regions) - 1)
    text = ", ".join(regions)
    return w.op(f'"stablehlo.case"({inside}) ({text}) : {ops.signature([inside], *types)}', *types)


def _branch(w: Writer, branch: Jaxpr, operands: Sequence[Val], of_two: bool) -> Sequence[Val]:
    """Write a branch as a call.

    The identity, as one of two branches, is not a call: XLA would copy the operands.
    """
    given = {v.id: x for v, x in zip(branch.binders, operands, strict=True)}
    passed = [given[a.id] for a in branch.outs if isinstance(a, Var) and a.id in given]
    if of_two and len(passed) == len(branch.outs):
        return passed
    return w.call(branch, operands, "branch")


def _array(type_: Type) -> ArrayType:
    assert isinstance(type_, ArrayType)
    return type_


RULES: Final[LoweringRules] = NO_RULES.extend(p.Cond, cond)
