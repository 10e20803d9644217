"""Insertion of ``pvary`` in calls with custom derivatives, and in their rules."""

from __future__ import annotations

from effax.ir.analysis.dataflow import Positions
from effax.ir.analysis.variance import SAME, Names, variance
from effax.ir.axes import Axes
from effax.ir.prims import CustomJvp, CustomVjp
from effax.ir.syntax import Jaxpr
from effax.ir.types import is_inexact
from effax.transforms.framework.rules import PvaryOut, RuleSet
from effax.transforms.spmd.pvary_insertion import insert_pvary, pvary_in_regions

Each = tuple[Names, ...]


def custom_jvp_pvary(
    rules: RuleSet, prim: CustomJvp, ins: Each, outs: Each, axes: Axes, fixed: Positions
) -> PvaryOut:
    made, ins = pvary_in_regions(rules, prim, ins, outs, axes, fixed)
    jaxprs = list(made.subjaxprs())
    if len(jaxprs) > 1:
        # A tangent varies exactly if its primal does.
        rest = prim.call.binders[prim.n_consts :]
        dots = [
            own for v, own in zip(rest, ins[prim.n_consts :], strict=True) if is_inexact(v.type)
        ]
        out_dots = [own for a, own in zip(prim.call.outs, outs, strict=True) if is_inexact(a.type)]
        jaxprs[1] = insert_pvary(jaxprs[1], (*ins, *dots), axes, fixed, (*outs, *out_dots), rules)
    return PvaryOut(made.with_subjaxprs(jaxprs), ins)


def custom_vjp_pvary(
    rules: RuleSet, prim: CustomVjp, ins: Each, outs: Each, axes: Axes, fixed: Positions
) -> PvaryOut:
    return pvary_in_regions(rules, prim, _with_cotangents(prim, ins, outs), outs, axes, fixed)


def _with_cotangents(prim: CustomVjp, ins: Each, outs: Each) -> Each:
    """Return the axes of the operands, joined with those of their cotangents by the rule."""
    if not isinstance(prim.fwd, Jaxpr) or not isinstance(prim.bwd, Jaxpr):
        return (SAME.union(*ins),) * len(ins)
    n = prim.n_consts
    residuals = variance(prim.fwd, ins).outs[len(outs) :]
    cts = [own for a, own in zip(prim.call.outs, outs, strict=True) if is_inexact(a.type)]
    operands = (*ins[:n], *residuals, *[ins[i] for i in prim.refs], *cts)
    found = iter(variance(prim.bwd, operands).outs)
    closed = [
        own | next(found) if wanted else own
        for own, wanted in zip(ins[n:], prim.wanted, strict=True)
    ]
    return (*ins[:n], *closed)
