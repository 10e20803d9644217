"""Store-to-load forwarding: a load is replaced by the value that was stored or loaded before.

Before::

    { lambda ; a:Ref{f32[3]} b:f32[]. let
        a[0] <- b
        d:f32[] <- a[0]
        e:f32[] <- a[1]
        a[1] <- e
        g:f32[] <- a[1]
        h:f32[] = add d g
      in (h,) }

After; a store of the value that is already there is removed too::

    { lambda ; a:Ref{f32[3]} b:f32[]. let
        a[0] <- b
        d:f32[] <- a[1]
        e:f32[] = add b d
      in (e,) }

The pass tracks the known values of each reference by position. A store invalidates the positions
that it may overlap, and any other effect that does not commute with a read all of them.
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
"""The known positions of one reference are at most this many; the oldest are forgotten."""


class Position(NamedTuple):
    """A part of a reference: an indexer and its operands."""

    indexer: Indexer
    operands: tuple[Atom, ...]

    @property
    def is_distinct(self) -> bool:
        """Its elements exist and are distinct, so that a read returns what was written.

        Operands that are arrays of indices may repeat one.
        """
        return self.indexer.mode is Mode.CLIP and not any(a.type.shape for a in self.operands)


def disjoint(first: Position, second: Position) -> bool:
    """Return whether two parts of a reference are disjoint for all values of their operands."""
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
    # Strided ranges may interleave; only short ones are compared element by element.
    return max(len(first), len(second)) <= MOST and not set(first) & set(second)


def position_of(eqn: Eqn, ins: Sequence[Atom]) -> Position | None:
    """Return the part of its first operand that an equation accesses."""
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
    """Replace loads by values that were stored or loaded before, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  at most the same kinds: some loads, and stores of equal values, are removed.
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
    """Forward or keep a load, store, accumulation, or freeze, and update the known values."""
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
        # The store stays; its result, the old value, is known.
        made.replace(eqn, [there])
    _overlap(known, place)
    if place.is_distinct:
        _remember(known, place, ins[1])


def _remember(known: Known, place: Position, atom: Atom) -> None:
    known[place] = atom
    if len(known) > MOST:
        del known[next(iter(known))]


def _overlap(known: Known, place: Position) -> None:
    """Forget the positions that a store may have changed."""
    for other in [p for p in known if not disjoint(p, place)]:
        del known[other]


def _forget(eqn: Eqn, ins: tuple[Atom, ...], memory: dict[int, Known]) -> None:
    """Forget references on which the equation has an effect that does not commute with a read."""
    for effect in eqn.effects:
        if isinstance(effect, SideEffect | Alloc) or commutes(effect, Read(effect.ref)):
            continue
        ref = ins[effect.ref]
        if isinstance(ref, Var):
            memory.pop(ref.id, None)
