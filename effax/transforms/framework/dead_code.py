"""Removal of dead code from the programs that passes build."""

from __future__ import annotations

from effax.ir.syntax import Jaxpr, Var
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.dce import dce


def used_variables(jaxpr: Jaxpr) -> frozenset[int]:
    """Return the numbers of the variables that an equation or a result uses."""
    used = {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
    used.update(a.id for a in jaxpr.outs if isinstance(a, Var))
    return frozenset(used)


def without_dead(jaxpr: Jaxpr, rules: RuleSet) -> Jaxpr:
    """Return the program without dead code, with all of its inputs."""
    every_in, every_out = (True,) * len(jaxpr.binders), (True,) * len(jaxpr.outs)
    return dce.uncached(jaxpr, every_out, every_in, every_in, rules).jaxpr
