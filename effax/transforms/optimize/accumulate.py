"""Accumulations: rewrite ``r[i] = r[i] + v`` to an add-update, and fuse those at one position.

Before::

    { lambda ; a:Ref{f32[3]} b:f32[] c:i32[]. let
        d:f32[] <- a[c]
        e:f32[] = add d b
        a[c] <- e
        a[0] += b
        a[c] += 2.0:f32[]
      in () }

After ``accumulate``::

    { lambda ; a:Ref{f32[3]} b:f32[] c:i32[]. let
        a[c] += b
        a[0] += b
        a[c] += 2.0:f32[]
      in () }

After ``fuse_accumulations``, since accumulations commute::

    { lambda ; a:Ref{f32[3]} b:f32[] c:i32[]. let
        a[0] += b
        d:f32[] = add b 2.0:f32[]
        a[c] += d
      in () }

An accumulation does not read the reference: it commutes with others, across iterations of a loop
too, and its transpose is a read. Fusion adds the values before the update, so it rounds in another
order.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from effax.effects import Accum, Read, SideEffect, VarId, commutes
from effax.ir import prims as p
from effax.ir.analysis.queries import effects_on_variables
from effax.ir.edit.rewriter import Rewriter
from effax.ir.indexing import Mode
from effax.ir.prims import AddUpdate, BroadcastInDim, Get, Swap
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.transforms.framework.rewriter import Transform, at_every_depth
from effax.transforms.optimize.forward_stores import Position, position_of


class _Found(NamedTuple):
    """A store that is an accumulation: the positions of its load and sum, and the added value."""

    load: int
    sum: int
    value: Atom
    negated: bool


def _accumulate(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a load, a sum and a store at one position to an add-update, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  {read r, write r}  =>  {accum r}
    Laws:     tests/laws/test_simplify.py
    """
    found = _accumulations(jaxpr)
    if not found:
        return jaxpr
    removed = {i for f in found.values() for i in (f.load, f.sum)}
    made = Rewriter(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        if i in removed:
            continue
        if i not in found:
            made.keep(eqn, made.operands(eqn))
            continue
        ref, stored, *operands = made.operands(eqn._replace(ins=_without_value(eqn, found[i])))
        value = _in_shape(made, eqn, stored, found[i].negated)
        assert isinstance(eqn.prim, Swap)
        made.emit(eqn, AddUpdate(eqn.prim.indexer), [ref, value, *operands])
    return made.finish()


accumulate: Final[Transform] = at_every_depth(_accumulate)


def _without_value(eqn: Eqn, found: _Found) -> tuple[Atom, ...]:
    """Return the operands of the store, with the added value in place of the sum."""
    return (eqn.ins[0], found.value, *eqn.ins[2:])


def _in_shape(made: Rewriter, eqn: Eqn, value: Atom, negated: bool) -> Atom:
    """Append the added value in the shape of the part, negated for a difference."""
    if negated:
        (value,) = made.emit(eqn, p.Neg(), [value])
    shape = eqn.outs[0].type.shape
    if value.type.shape != shape:
        (value,) = made.emit(eqn, BroadcastInDim(shape, ()), [value])
    return value


def _accumulations(jaxpr: Jaxpr) -> dict[int, _Found]:
    """Return the stores that are accumulations, by position."""
    uses = Counter(a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var))
    uses.update(a.id for a in jaxpr.outs if isinstance(a, Var))
    born = {v.id: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outs}
    last_change: dict[int, int] = {}
    found: dict[int, _Found] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        if not eqn.effects:
            continue
        if isinstance(eqn.prim, Swap) and not uses[eqn.outs[0].id]:
            match = _match(jaxpr, eqn, uses, born)
            ref = eqn.ins[0]
            # No equation between the load and the store may change the loaded value.
            if match and isinstance(ref, Var) and last_change.get(ref.id, -1) < match.load:
                found[i] = match
        last_change.update(dict.fromkeys(_not_commuting(Read, eqn), i))
    return found


def _not_commuting(kind: type[Read[VarId]] | type[Accum[VarId]], eqn: Eqn) -> list[VarId]:
    """Return the references on which the equation does not commute with this kind of effect."""
    return [
        effect.ref
        for effect in effects_on_variables(eqn)
        if not isinstance(effect, SideEffect) and not commutes(effect, kind(effect.ref))
    ]


def _match(jaxpr: Jaxpr, store: Eqn, uses: Counter[int], born: dict[int, int]) -> _Found | None:
    """Match ``x = r[i]; y = x + v; r[i] = y``, without other uses of ``x`` and ``y``."""
    place = position_of(store, store.ins)
    total = store.ins[1]
    if place is None or any(a.type.shape for a in place.operands) or not _once(total, uses):
        return None
    at = born.get(total.id) if isinstance(total, Var) else None
    if at is None or not isinstance(jaxpr.eqns[at].prim, p.Add | p.Sub):
        return None
    first, second = jaxpr.eqns[at].ins
    negated = isinstance(jaxpr.eqns[at].prim, p.Sub)
    for x, v in ((first, second),) if negated else ((first, second), (second, first)):
        if not isinstance(x, Var) or not _once(x, uses) or x.id not in born:
            continue
        load = jaxpr.eqns[born[x.id]]
        found = position_of(load, load.ins) if isinstance(load.prim, Get) else None
        if found is not None and load.ins[0] == store.ins[0] and _is_stored(found, place):
            return _Found(born[x.id], at, v, negated)
    return None


def _is_stored(load: Position, store: Position) -> bool:
    """Return whether the store writes to the loaded elements.

    A store out of bounds is dropped, so its load does not matter, and an add-update is dropped too.
    """
    if store.indexer.mode is Mode.DROP:
        load = Position(store.indexer._replace(dims=load.indexer.dims), load.operands)
    return load == store


def _once(atom: Atom, uses: Counter[int]) -> bool:
    return isinstance(atom, Var) and uses[atom.id] == 1


def _fuse_accumulations(jaxpr: Jaxpr) -> Jaxpr:
    """Add the values accumulated at one position before the update, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     tests/laws/test_simplify.py; equal up to rounding.
    """
    later = _fused(jaxpr)
    if not later:
        return jaxpr
    made = Rewriter(jaxpr)
    sums: dict[int, Atom] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        ins = made.operands(eqn)
        if i in sums:
            (total,) = made.emit(eqn, p.Add(), [sums[i], ins[1]])
            ins = (ins[0], total, *ins[2:])
        if i in later:
            sums[later[i]] = ins[1]
        else:
            made.keep(eqn, ins)
    return made.finish()


fuse_accumulations: Final[Transform] = at_every_depth(_fuse_accumulations)


def _fused(jaxpr: Jaxpr) -> dict[int, int]:
    """Map each accumulation that can move to a later one at the same position, to that one."""
    waiting: dict[int, dict[Position, int]] = {}
    later: dict[int, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        if not eqn.effects:
            continue
        for ref_id in _not_commuting(Accum, eqn):
            waiting.pop(ref_id, None)
        ref = eqn.ins[0] if eqn.ins else None
        if isinstance(eqn.prim, AddUpdate) and isinstance(ref, Var):
            place = position_of(eqn, eqn.ins)
            assert place is not None
            here = waiting.setdefault(ref.id, {})
            before = here.get(place)
            if before is not None and jaxpr.eqns[before].ins[1].type is eqn.ins[1].type:
                later[before] = i
            here[place] = i
    return later
