"""Recomputation of the fixed carries of a ``while`` from checkpoints: see ``transpose``.

Invariant: slots ``0 .. top`` of the stack contain checkpoints ``(iteration, carries)`` in the order
of iterations, none after the iteration to reach; slot ``top + 1`` is scratch space.
"""

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
"""The size of the checkpoint stack: one slot, and one for each halving of 2^31 iterations."""


class Part(NamedTuple):
    """A jaxpr without its unused inputs."""

    jaxpr: Jaxpr
    used: Mask

    def call(self, b: Builder, args: Sequence[Atom]) -> list[Atom]:
        """Inline it on its arguments among all ``args``."""
        taken = [x for x, has in zip(args, self.used, strict=True) if has]
        return b.inline_jaxpr(self.jaxpr, taken)


class Replay(NamedTuple):
    """The part of the body that computes fixed carries.

    Attributes:
        kept: the carries that are recomputed: those needed, closed under their dependencies.
        types: their types.
        first: their values before the loop.
        part: the jaxpr, on fixed constants and all fixed carries.
        fixed: the positions of all fixed carries.
    """

    kept: Sequence[int]
    types: Sequence[Type]
    first: Sequence[Atom]
    part: Part
    fixed: Sequence[int]

    def arguments(self, consts: Sequence[Atom], carry: Sequence[Atom]) -> list[Atom]:
        """Return fixed constants and all fixed carries, a placeholder for those not kept."""
        values = dict(zip(self.kept, carry, strict=True))
        unused = lit(0, COUNTER)
        return [*consts, *[values.get(j, unused) for j in self.fixed]]

    def next(self, b: Builder, consts: Sequence[Atom], carry: Sequence[Atom]) -> list[Atom]:
        """Inline one iteration. Returns the kept carries."""
        return self.part.call(b, self.arguments(consts, carry))

    def program(self, types: Sequence[Type], n_consts: int) -> Jaxpr:
        """Return one iteration as a jaxpr."""
        b = Builder(types)
        return b.finish(self.next(b, b.binders[:n_consts], b.binders[n_consts:]))

    def emit(
        self, b: Builder, consts: Sequence[Atom], stacks: Sequence[Atom], at: Atom, top: Atom
    ) -> tuple[Atom, list[Atom]]:
        """Advance from the top checkpoint to iteration ``at``. Returns the new top and carries."""
        *refs, places = stacks
        values = [b(Get(row(ref.type.shape)), ref, top) for ref in refs]
        place = b(Get(row(places.type.shape)), places, top)
        target = b(Add(), place, _half(b, place, at))
        fixed = [*consts, at, *stacks]
        types = [*[x.type for x in fixed], COUNTER, COUNTER, COUNTER, *self.types]
        loop = While(
            _while_before(types, len(consts), len(fixed)),
            self._forward(types, len(consts)),
            len(fixed),
        )
        _, _, last, *found = b.emit(loop, [*fixed, place, target, top, *values])
        return last, list(found)

    def _forward(self, types: Sequence[Type], n_consts: int) -> Jaxpr:
        """``(consts, at, stacks, place, target, top, carry) -> (place + 1, target, top, carry)``.

        Each iteration writes its carries to slot ``top + 1``, which becomes a checkpoint if the
        iteration is the target; the next target is half way from there to ``at``.
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
    """Return half the distance from ``place`` to ``at``, rounded up."""
    way = b(Add(), b(Sub(), at, place), lit(1, COUNTER))
    return b(ShiftRightLogical(), way, lit(1, COUNTER))


def _while_before(types: Sequence[Type], at: int, place: int) -> Jaxpr:
    b = Builder(types)
    return b.finish([b(Lt(), b.binders[place], b.binders[at])])


class Stack:
    """References for checkpoints; the first checkpoint has the carries before the loop."""

    def __init__(self, b: Builder, replay: Replay) -> None:
        self.refs: list[Atom] = []
        for type_, x in zip(replay.types, replay.first, strict=True):
            ref = b(EmptyRef(array_type((SLOTS, *type_.shape), type_.dtype)))
            b.emit(Swap(row(ref.type.shape, 0)), [ref, x])
            self.refs.append(ref)
        self.places: Atom = b(EmptyRef(array_type((SLOTS,), COUNTER.dtype)))
        b.emit(Swap(row(self.places.type.shape, 0)), [self.places, lit(0, COUNTER)])
