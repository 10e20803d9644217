"""Discharge of ``cond``: each branch returns the contents that any branch changes."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.prims import Cond
from effax.ir.syntax import Atom, Jaxpr
from effax.transforms.discharge import Discharged, discharge
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.common.arrays import placed


def cond_discharge(
    b: RuleBuilder, prim: Cond, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    branches = [discharge.cached(branch, b.rules) for branch in prim.branches]
    changed = tuple(sorted({i for branch in branches for i in branch.changed}))
    made = Cond(tuple(_returning(branch, changed) for branch in branches))
    results = b.emit(made, ins)
    n = branches[0].n_outs
    # Operand i of the branches is argument i + 1 of the cond.
    positions = [i + 1 for i in changed]
    return DischargeOut(results[:n], placed(positions, results[n:], len(ins)))


def _returning(program: Discharged, changed: Sequence[int]) -> Jaxpr:
    """Return the discharged program with the contents of all ``changed`` references as results."""
    jaxpr, n = program.jaxpr, program.n_outs
    new = dict(zip(program.changed, jaxpr.outs[n:], strict=True))
    if program.changed == tuple(changed):
        return jaxpr
    contents = [new.get(i, jaxpr.binders[i]) for i in changed]
    return jaxpr.replace(outs=[*jaxpr.outs[:n], *contents])
