"""The fixed part of a ``while``, computed again from checkpoints: see ``transpose``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from effax.ir.build import Builder, lit
from effax.ir.indexing import row
from effax.ir.prims import Add, EmptyRef, Eq, Get, Lt, SelectN, ShiftRightLogical, Sub, Swap, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import COUNTER, Type, array_type
from effax.transforms.framework.propagation import Mask

SLOTS: Final = 32
"""Room for checkpoints: one, and one more for each time that 2^31 can be halved."""


class Part(NamedTuple):
    """A program of which inputs that are not used are gone."""

    jaxpr: Jaxpr
    used: Mask

    def call(self, b: Builder, args: Sequence[Atom]) -> list[Atom]:
        """Append it, on all the arguments."""
        taken = [x for x, has in zip(args, self.used, strict=True) if has]
        return b.inline_jaxpr(self.jaxpr, taken)


class Replay(NamedTuple):
    """The fixed part of the body.

    Attributes:
        kept: the carries that it computes and needs.
        types: their types.
        first: their values before the loop.
        part: the program, on fixed constants and all fixed carries.
        fixed: the positions of those.
    """

    kept: Sequence[int]
    types: Sequence[Type]
    first: Sequence[Atom]
    part: Part
    fixed: Sequence[int]

    def arguments(self, consts: Sequence[Atom], carry: Sequence[Atom]) -> list[Atom]:
        """Fixed constants and all fixed carries; what is not kept is not used."""
        values = dict(zip(self.kept, carry, strict=True))
        spare = lit(0, COUNTER)
        return [*consts, *[values.get(j, spare) for j in self.fixed]]

    def next(self, b: Builder, consts: Sequence[Atom], carry: Sequence[Atom]) -> list[Atom]:
        """Append one iteration."""
        return self.part.call(b, self.arguments(consts, carry))

    def program(self, types: Sequence[Type], n_consts: int) -> Jaxpr:
        """One iteration as a program."""
        b = Builder(types)
        return b.finish(self.next(b, b.binders[:n_consts], b.binders[n_consts:]))

    def emit(
        self, b: Builder, consts: Sequence[Atom], stacks: Sequence[Atom], at: Atom, top: Atom
    ) -> tuple[Atom, list[Atom]]:
        """Append the way forward to iteration ``at``; gives the top of the stack and the values."""
        *refs, places = stacks
        values = [b(Get(row(ref.type.shape)), ref, top) for ref in refs]
        place = b(Get(row(places.type.shape)), places, top)
        target = b(Add(), place, _half(b, place, at))
        held = [*consts, at, *stacks]
        types = [*[x.type for x in held], COUNTER, COUNTER, COUNTER, *self.types]
        loop = While(
            _while_before(types, len(consts), len(held)),
            self._forward(types, len(consts)),
            len(held),
        )
        _, _, last, *found = b.emit(loop, [*held, place, target, top, *values])
        return last, list(found)

    def _forward(self, types: Sequence[Type], n_consts: int) -> Jaxpr:
        """``(consts, at, stacks, place, target, top, carry) -> (place + 1, target, top, carry)``.

        Each iteration writes behind the top of the stack; where it is at the target, that is the
        new top.
        """
        b = Builder(types)
        consts, at, rest = b.binders[:n_consts], b.binders[n_consts], b.binders[n_consts + 1 :]
        n = len(self.kept)
        refs, places, (place, target, top, *carry) = rest[:n], rest[n], rest[n + 1 :]
        one = lit(1, COUNTER)
        new = self.next(b, consts, carry)
        place, behind = b(Add(), place, one), b(Add(), top, one)
        for ref, x in zip((*refs, places), (*new, place), strict=True):
            b.emit(Swap(row(ref.type.shape)), [ref, x, behind])
        arrived = b(Eq(), place, target)
        after = b(Add(), place, _half(b, place, at))
        target = b(SelectN(), arrived, target, after)
        return b.finish([place, target, b(SelectN(), arrived, top, behind), *new])


def _half(b: Builder, place: Atom, at: Atom) -> Atom:
    """Half of the way from ``place`` to ``at``, rounded up."""
    way = b(Add(), b(Sub(), at, place), lit(1, COUNTER))
    return b(ShiftRightLogical(), way, lit(1, COUNTER))


def _while_before(types: Sequence[Type], at: int, place: int) -> Jaxpr:
    b = Builder(types)
    return b.finish([b(Lt(), b.binders[place], b.binders[at])])


class Stack:
    """References for checkpoints, with one of the values before the loop in them."""

    def __init__(self, b: Builder, replay: Replay) -> None:
        self.refs: list[Atom] = []
        for type_, x in zip(replay.types, replay.first, strict=True):
            ref = b(EmptyRef(array_type((SLOTS, *type_.shape), type_.dtype)))
            b.emit(Swap(row(ref.type.shape, 0)), [ref, x])
            self.refs.append(ref)
        self.places: Atom = b(EmptyRef(array_type((SLOTS,), COUNTER.dtype)))
        b.emit(Swap(row(self.places.type.shape, 0)), [self.places, lit(0, COUNTER)])
