"""Elimination of stores that are overwritten before a read.

Before::

    { lambda ; a:Ref{f32[3]} b:f32[] c:f32[3]. let
        a[0] <- b
        a[1] += b
        a[...] <- c
        a[0] <- b
        a[0] <- 2.0:f32[]
      in () }

After::

    { lambda ; a:Ref{f32[3]} b:f32[] c:f32[3]. let
        a[...] <- c
        a[0] <- 2.0:f32[]
      in () }

The pass sweeps backward. A store whose old contents are not used covers its position: an earlier
store there is dead. A read of the reference, in a call too, uncovers its positions. A store that is
never read is left to ``dce``.
"""

from __future__ import annotations

from typing import Final

from effax.effects import Read
from effax.ir.edit.renumber import numbered
from effax.ir.indexing import whole
from effax.ir.prims import AddUpdate, Get, Swap
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.transforms.framework.rewriter import Transform, at_every_depth
from effax.transforms.optimize.forward_stores import MOST, Position, disjoint, position_of

Covered = dict[Position, None]


def _dead_stores(jaxpr: Jaxpr) -> Jaxpr:
    """Remove stores and accumulations that are overwritten before a read, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same kinds at most.
    Laws:     tests/laws/test_simplify.py
    """
    used = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    covered: dict[int, Covered] = {}
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects and _is_dead(eqn, used, covered):
            continue
        kept.append(eqn)
        used.update([a.id for a in eqn.ins if isinstance(a, Var)])
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    kept.reverse()
    return numbered(jaxpr.binders, kept, jaxpr.outs, jaxpr.size, jaxpr.n_consts, jaxpr.names)


dead_stores: Final[Transform] = at_every_depth(_dead_stores)


def _is_dead(eqn: Eqn, used: set[int], covered: dict[int, Covered]) -> bool:
    """Return whether an equation is a dead store; if not, update the covered positions."""
    ref = eqn.ins[0] if eqn.ins else None
    if isinstance(eqn.prim, Swap | AddUpdate) and isinstance(ref, Var):
        place = position_of(eqn, eqn.ins)
        assert place is not None
        here = covered.setdefault(ref.id, {})
        if not any(v.id in used for v in eqn.outs):
            if place in here or Position(whole(ref.type.shape), ()) in here:
                return True
            if isinstance(eqn.prim, Swap):
                _cover(here, place)
            return False
        _uncover(here, place)
        return False
    if isinstance(eqn.prim, Get) and isinstance(ref, Var):
        place = position_of(eqn, eqn.ins)
        assert place is not None
        _uncover(covered.setdefault(ref.id, {}), place)
        return False
    for effect in eqn.effects:
        if isinstance(effect, Read):
            seen = eqn.ins[effect.ref]
            if isinstance(seen, Var):
                covered.pop(seen.id, None)
    return False


def _cover(here: Covered, place: Position) -> None:
    here[place] = None
    if len(here) > MOST:
        del here[next(iter(here))]


def _uncover(here: Covered, place: Position) -> None:
    """Uncover the positions that a read may overlap."""
    for other in [p for p in here if not disjoint(p, place)]:
        del here[other]
