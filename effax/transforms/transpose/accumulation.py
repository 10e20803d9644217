"""Sums of cotangents, of whole ones as values, and of parts in references."""

from __future__ import annotations

from typing import Final

from effax.effects import NO_EFFECTS
from effax.ir.build import Builder, Where
from effax.ir.indexing import whole
from effax.ir.prims import Add, AddUpdate, Freeze, NewRef
from effax.ir.syntax import Atom, Eqn, Var
from effax.transforms.rules.common import zeros
from effax.transforms.transpose.template import cotangent_ref_type

ADD: Final = Add()
_new: Final = tuple.__new__


def added(b: Builder, first: Atom, second: Atom, source: Where) -> Atom:
    """The sum of two cotangents of one value; fast where they have one type."""
    type_ = first.type
    if type_ is not second.type:
        return b.emit(ADD, (first, second), source)[0]
    v: Var = _new(Var, (b.next_id, type_))
    b.next_id += 1
    b.eqns.append(_new(Eqn, (ADD, (first, second), (v,), NO_EFFECTS, source)))
    return v


class Sums:
    """Cotangents by number: a sum so far, or a reference in which it grows."""

    def __init__(self, b: Builder, size: int) -> None:
        self.b = b
        self.sums: list[Atom | None] = [None] * size
        self.refs: dict[int, Var] = {}

    def has(self, k: int) -> bool:
        """Whether there is a cotangent."""
        return k in self.refs or self.sums[k] is not None

    def add(self, k: int, part: Atom, source: Where) -> None:
        """Add a whole cotangent."""
        ref, old = self.refs.get(k), self.sums[k]
        if ref is not None:
            self.b.emit(AddUpdate(whole(ref.type.shape)), (ref, part), source)
        else:
            self.sums[k] = part if old is None else added(self.b, old, part, source)

    def place(self, v: Var, source: Where) -> Var:
        """The reference to which a part is added; it begins with the sum so far, or zeros."""
        ref = self.refs.get(v.id)
        if ref is None:
            type_ = cotangent_ref_type(v.type)
            first = self.sums[v.id] or zeros(self.b, type_.inner)
            (ref,) = self.b.emit(NewRef(type_.kind), (first,), source)
            self.refs[v.id] = ref
        return ref

    def whole(self, k: int, source: Where) -> Atom:
        """The whole cotangent of a value that is not used before this point."""
        ref = self.refs.pop(k, None)
        if ref is not None:
            (self.sums[k],) = self.b.emit(Freeze(), (ref,), source)
        found = self.sums[k]
        assert found is not None, "a cotangent flows here"
        return found
