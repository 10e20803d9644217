"""The accumulator of the backward sweeps: sums of cotangents, as values or in references."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from effax.effects import NO_EFFECTS
from effax.ir.build import Builder, Where
from effax.ir.indexing import whole
from effax.ir.prims import Add, AddUpdate, ConvertElementType, Freeze, NewRef
from effax.ir.syntax import Atom, Var
from effax.ir.types import RefType, Type
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.transpose.template import cotangent_ref_type

ADD: Final = Add()


def added(b: Builder, first: Atom, second: Atom, source: Where) -> Atom:
    """Append the sum of two cotangents of one value."""
    type_ = first.type
    if type_ is not second.type:
        return b.emit(ADD, (first, second), source)[0]
    return b.emit_typed(ADD, (first, second), (type_,), NO_EFFECTS, source)[0]


class Sums:
    """The sums of cotangents, by variable number: values, or the contents of references.

    An array whose parts have cotangents is summed in place: each part is added at its index, where
    a sum of values would add arrays of zeros. Additions into one reference commute, so the order
    of the backward sweep does not matter.

    Attributes:
        values: the sums that are values.
        refs: the references: those of linear references, and of arrays used in part.
    """

    __slots__ = ("accumulated", "b", "refs", "values")

    def __init__(self, b: Builder, size: int, accumulated: Container[int] = ()) -> None:
        """Start without cotangents.

        Args:
            b: the builder to which sums are appended.
            size: one more than the greatest variable number.
            accumulated: the numbers of the arrays whose sum is in a reference from the start.
        """
        self.b: Builder = b
        self.values: list[Atom | None] = [None] * size
        self.refs: dict[int, Var] = {}
        self.accumulated: Container[int] = accumulated

    def add(self, v: Var, part: Atom, source: Where) -> None:
        """Add to the cotangent of a value, in place if it has a reference."""
        k, type_ = v
        ref = self.refs.get(k)
        if ref is not None:
            add_in_place(self.b, ref, part, source)
        elif type(type_) is RefType or (self.accumulated and k in self.accumulated):
            self.refs[k] = _new_ref(self.b, type_, part, source)
        else:
            values = self.values
            old = values[k]
            values[k] = part if old is None else added(self.b, old, part, source)

    def place(self, v: Var, source: Where) -> Var:
        """Return the reference of a sum, which is allocated with the sum so far, or zeros."""
        ref = self.refs.get(v.id)
        if ref is None:
            first = self.values[v.id] or zeros(self.b, cotangent_ref_type(v.type).inner)
            ref = self.refs[v.id] = _new_ref(self.b, v.type, first, source)
        return ref

    def take(self, v: Var, source: Where) -> Atom | None:
        """Return the complete cotangent of a value, after its last use; None for zero.

        The cotangent of a reference is a reference.
        """
        k, type_ = v
        if not self.refs or k not in self.refs:  # most sums are values: look at nothing else
            return self.values[k]
        if type(type_) is RefType:
            return self.refs[k]
        return self.b.emit(Freeze(), (self.refs.pop(k),), source)[0]


def add_in_place(b: Builder, ref: Var, part: Atom, source: Where) -> None:
    """Add a whole cotangent to a reference, whose dtype may be wider."""
    if part.type.dtype != ref.type.dtype:
        part = b.emit(ConvertElementType(ref.type.dtype), (part,), source)[0]
    b.emit(AddUpdate(whole(ref.type.shape)), (ref, part), source)


def _new_ref(b: Builder, type_: Type, first: Atom, source: Where) -> Var:
    return b.emit(NewRef(cotangent_ref_type(type_).kind), (first,), source)[0]
