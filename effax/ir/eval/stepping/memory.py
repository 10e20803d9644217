"""The contents of references over time: any earlier version can be read, and continued.

A reference is its buffer, which equations write in place. A version is a point in time. The buffers
have the contents of one version, the current one; each other version has the writes that lead to
it from its neighbour. So a write costs as much as the part that it changes, and a step back undoes
it (Baker, "Shallow binding makes functional arrays fast", 1991).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effax.effects import Accum, Read, Write
from effax.ir import indexing
from effax.ir.indexing import Indexer
from effax.ir.primitive import Value
from effax.ir.syntax import Eqn


class RefPart(NamedTuple):
    """A part of a reference.

    Attributes:
        buffer: the buffer that an equation accesses, which may be an element of another.
        indexer: the indexer; None for the whole buffer.
        operands: the operands of the indexer.
    """

    buffer: Value
    indexer: Indexer | None = None
    operands: tuple[Value, ...] = ()

    def read(self) -> Value:
        """Return a copy of the present contents."""
        if self.indexer is None:
            return np.array(self.buffer)
        return indexing.read(self.indexer, self.buffer, self.operands)

    def put(self, value: Value) -> None:
        """Replace the contents."""
        if self.indexer is None:
            self.buffer[...] = value
        else:
            indexing.write(self.indexer, self.buffer, value, self.operands)

    def mask(self) -> np.ndarray:
        """Return a boolean array of the shape of the whole reference: true in the part."""
        root, buffer = root_of(self.buffer), self.buffer
        whole = np.zeros(root.shape, bool)
        offset = buffer.ctypes.data - root.ctypes.data
        strides = [s // buffer.itemsize for s in buffer.strides]
        own = np.ndarray(buffer.shape, bool, whole, offset // buffer.itemsize, strides)
        RefPart(own, self.indexer, self.operands).put(np.ones((), bool))
        return whole


class RefChange(NamedTuple):
    """The contents of a part before and after an equation."""

    part: RefPart
    before: Value
    after: Value


class Version:
    """The contents of all buffers at one time; see the module."""

    __slots__ = ("_changes", "_forward", "_next")

    def __init__(self) -> None:
        self._next: Version | None = None
        self._changes: tuple[RefChange, ...] = ()
        self._forward = False

    def restore(self) -> None:
        """Make this the current version: all buffers get its contents."""
        path: list[Version] = []
        version = self
        while version._next is not None:
            path.append(version)
            version = version._next
        for version in reversed(path):
            version._become_current()

    def _become_current(self) -> None:
        neighbour, changes, forward = self._next, self._changes, self._forward
        assert neighbour is not None
        for change in changes if forward else reversed(changes):
            change.part.put(change.after if forward else change.before)
        neighbour._next, neighbour._changes, neighbour._forward = self, changes, not forward
        self._next, self._changes = None, ()

    def changed(self, changes: tuple[RefChange, ...]) -> Version:
        """Return the version after changes that were made to the current one, which this is."""
        if not changes:
            return self
        after = Version()
        self._next, self._changes, self._forward = after, changes, False
        return after


def root_of(buffer: Value) -> Value:
    """Return the whole buffer of a reference, of which ``buffer`` may be a part."""
    base = buffer.base
    return base if isinstance(base, np.ndarray) else buffer


class Recording:
    """The contents before an equation that changes references."""

    def __init__(self, eqn: Eqn, operands: Sequence[Value]) -> None:
        self._parts = [_part(eqn, i, operands) for i in changed_by(eqn)]
        self._before = [part.read() for part in self._parts]

    def changes(self) -> tuple[RefChange, ...]:
        """Return the changes, after the equation."""
        both = zip(self._parts, self._before, strict=True)
        return tuple([RefChange(part, before, part.read()) for part, before in both])

    def undo(self) -> None:
        """Restore the contents, after the equation failed."""
        for part, before in zip(self._parts, self._before, strict=True):
            part.put(before)


def changed_by(eqn: Eqn) -> list[int]:
    """Return the positions of the operands that an equation changes."""
    if not eqn.effects.effects:
        return []
    return sorted({e.ref for e in eqn.effects if isinstance(e, Write | Accum)})


def read_by(eqn: Eqn, operands: Sequence[Value]) -> list[RefPart]:
    """Return the parts of references that an equation reads; for a store, none.

    The previous contents that a store returns are part of its change.
    """
    changed = changed_by(eqn)
    reads = sorted({e.ref for e in eqn.effects if isinstance(e, Read)})
    return [_part(eqn, i, operands) for i in reads if i not in changed]


def _part(eqn: Eqn, position: int, operands: Sequence[Value]) -> RefPart:
    indexer = indexer_of(eqn)
    if indexer is None or position != 0:
        return RefPart(operands[position])
    # The operands of the indexer come last.
    first = len(operands) - indexer.n_operands
    return RefPart(operands[0], indexer, tuple(operands[first:]))


def indexer_of(eqn: Eqn) -> Indexer | None:
    """Return the indexer of an equation, which selects a part of its first operand."""
    found = getattr(eqn.prim, "indexer", None)
    return found if isinstance(found, Indexer) else None
