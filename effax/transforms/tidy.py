"""What passes need to leave nothing dead behind in the programs that rules build."""

from __future__ import annotations

from effax.ir.syntax import Jaxpr, Var


def used_variables(jaxpr: Jaxpr) -> frozenset[int]:
    """The numbers of the variables that an equation or a result uses."""
    used = {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
    used.update(a.id for a in jaxpr.outs if isinstance(a, Var))
    return frozenset(used)


def without_dead(jaxpr: Jaxpr) -> Jaxpr:
    """The program without equations that change no state and whose results nobody uses.

    One sweep, from the end: for templates, in which a reference is never made for nothing.
    """
    live = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects.changes_state or any(v.id in live for v in eqn.outs):
            kept.append(eqn)
            live.update(a.id for a in eqn.ins if isinstance(a, Var))
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    return jaxpr.replace(eqns=reversed(kept))
