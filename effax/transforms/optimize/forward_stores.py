"""Stores forwarded to loads: what was written to a reference is not read back from it.

Before::

    { lambda ; a:Ref{f32[3]} b:f32[]. let
        a[0] <- b
        d:f32[] <- a[0]
        e:f32[] <- a[1]
        a[1] <- e
        g:f32[] <- a[1]
        h:f32[] = add d g
      in (h,) }

After; what an equal position holds already is not stored again::

    { lambda ; a:Ref{f32[3]} b:f32[]. let
        a[0] <- b
        d:f32[] <- a[1]
        e:f32[] = add b d
      in (e,) }

What is known of a reference is a list of positions and what they hold. An equation whose effects on
the reference do not commute with a read ends what is known; one that stores ends what it may
overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from effax.effects import Alloc, Read, SideEffect, commutes
from effax.ir.edit.rewriter import Rewriter
from effax.ir.indexing import Indexer, Mode, Pick, Span, whole
from effax.ir.prims import AddUpdate, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.prims.refs import FREES
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.transforms.framework.rewriter import Transform, at_every_depth

MOST: Final = 16
"""How many positions of one reference are remembered; the oldest go first."""


class Position(NamedTuple):
    """A part of a reference: an indexer and its operands."""

    indexer: Indexer
    operands: tuple[Atom, ...]

    @property
    def is_distinct(self) -> bool:
        """Whether it is made of elements that exist and are all different.

        Then a read gives what a write has put there. Arrays of positions may repeat one.
        """
        return self.indexer.mode is Mode.CLIP and not any(a.type.shape for a in self.operands)


def disjoint(first: Position, second: Position) -> bool:
    """Whether two parts of one reference have no element in common, whatever the operands are."""
    pairs = zip(first.indexer.dims, second.indexer.dims, strict=True)
    return any(_apart(_static_range(a), _static_range(b)) for a, b in pairs)


def _static_range(dim: Pick | Span) -> range | None:
    first = dim[0]
    if first is None:
        return None
    if isinstance(dim, Pick):
        return range(first, first + 1)
    return range(first, first + dim.size * dim.step, dim.step)


def _apart(first: range | None, second: range | None) -> bool:
    if first is None or second is None:
        return False
    if not first or not second:
        return True
    if max(first) < min(second) or max(second) < min(first):
        return True
    # Steps may pass by each other; long spans are not looked at so closely.
    return max(len(first), len(second)) <= MOST and not set(first) & set(second)


def position_of(eqn: Eqn, ins: Sequence[Atom]) -> Position | None:
    """The part of its first argument that an equation on references is about."""
    prim = eqn.prim
    match prim:
        case Get():
            return Position(prim.indexer, tuple(ins[1:]))
        case Swap() | AddUpdate():
            return Position(prim.indexer, tuple(ins[2:]))
        case Freeze():
            return Position(whole(ins[0].type.shape), ())
        case _:
            return None


Known = dict[Position, Atom]


def _forward_stores(jaxpr: Jaxpr) -> Jaxpr:
    """Use what was stored, or loaded before, in the place of a load, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same kinds at most: loads, and stores of what is there already, get fewer.
    Laws:     tests/laws/test_simplify.py
    """
    made = Rewriter(jaxpr)
    memory: dict[int, Known] = {}
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        if not eqn.effects:
            made.keep(eqn, ins)
        elif isinstance(eqn.prim, Get | Swap | Freeze | AddUpdate) and isinstance(ins[0], Var):
            _access(made, eqn, ins, memory.setdefault(ins[0].id, {}))
        else:
            outs = made.keep(eqn, ins)
            _forget(eqn, ins, memory)
            if isinstance(eqn.prim, NewRef):
                memory[outs[0].id] = {Position(whole(outs[0].type.shape), ()): ins[0]}
    return made.finish()


forward_stores: Final[Transform] = at_every_depth(_forward_stores)


def _access(made: Rewriter, eqn: Eqn, ins: tuple[Atom, ...], known: Known) -> None:
    """A load, a store, an accumulation, or the last load of a reference."""
    place = position_of(eqn, ins)
    assert place is not None
    there = known.get(place)
    if eqn.outs and (there is None or there.type is not eqn.outs[0].type):
        there = None
    match eqn.prim:
        case Get() if there is not None:
            made.replace(eqn, [there])
        case Freeze() if there is not None:
            made.b.emit_typed(FreeRef(), (ins[0],), (), FREES, eqn.source)
            made.replace(eqn, [there])
        case Swap() if there is not None and there == ins[1] and place.is_distinct:
            made.replace(eqn, [there])
        case Swap():
            _store(made, eqn, ins, place, there, known)
        case AddUpdate():
            made.keep(eqn, ins)
            _overlap(known, place)
        case _:
            (out,) = made.keep(eqn, ins)
            _remember(known, place, out)


def _store(
    made: Rewriter,
    eqn: Eqn,
    ins: tuple[Atom, ...],
    place: Position,
    there: Atom | None,
    known: Known,
) -> None:
    made.keep(eqn, ins)
    (out,) = eqn.outs
    if there is not None and made.read(out) != there:
        # The store stays; what was there is known.
        made.replace(eqn, [there])
    _overlap(known, place)
    if place.is_distinct:
        _remember(known, place, ins[1])


def _remember(known: Known, place: Position, atom: Atom) -> None:
    known[place] = atom
    if len(known) > MOST:
        del known[next(iter(known))]


def _overlap(known: Known, place: Position) -> None:
    """Forget what a store at a position may have changed."""
    for other in [p for p in known if not disjoint(p, place)]:
        del known[other]


def _forget(eqn: Eqn, ins: tuple[Atom, ...], memory: dict[int, Known]) -> None:
    """Forget references on which the equation does what does not commute with a read."""
    for effect in eqn.effects:
        if isinstance(effect, SideEffect | Alloc) or commutes(effect, Read(effect.ref)):
            continue
        ref = ins[effect.ref]
        if isinstance(ref, Var):
            memory.pop(ref.id, None)
