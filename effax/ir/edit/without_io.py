"""Removal of side effects without results, for computing values a second time.

A side effect with results (an ``io_callback``) cannot be removed.
"""

from __future__ import annotations

from effax.ir.build import typing_of
from effax.ir.memo import memoize
from effax.ir.syntax import Eqn, Jaxpr


@memoize(maxsize=1024)
def silent(jaxpr: Jaxpr) -> Jaxpr | None:
    """Return the program without its side effects, or None if it has results.

    Results and effects on references are preserved.
    """
    if not jaxpr.effects.side_effects:
        return jaxpr
    kept: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if not eqn.effects.side_effects or eqn.prim.subjaxprs():
            made = without_io(eqn)
            if made is None:
                return None
            kept.append(made)
        elif eqn.outs or eqn.effects.refs:
            return None
    return jaxpr.replace(eqns=kept)


def without_io(eqn: Eqn) -> Eqn | None:
    """Return the equation without side effects, or None if it has results."""
    if not eqn.effects.side_effects:
        return eqn
    inner = [silent(jaxpr) for jaxpr in eqn.prim.subjaxprs()]
    quiet = [jaxpr for jaxpr in inner if jaxpr is not None]
    if not inner or len(quiet) < len(inner):
        return None
    prim = eqn.prim.with_subjaxprs(quiet)
    effects = typing_of(prim, tuple([a.type for a in eqn.ins])).effects
    return eqn._replace(prim=prim, effects=effects)
