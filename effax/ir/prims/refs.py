"""References: allocation, reads, writes, accumulation, consumption.

At run time a reference is its buffer, a writable NumPy array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from effax.effects import Accum, Alloc, ArgIndex, Effect, Free, Read, Row, Rule, Write
from effax.ir import indexing
from effax.ir.errors import IllTyped, RefError
from effax.ir.indexing import Indexer, indexed_shape
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.operands import (
    NUMBERS,
    Nullary,
    arrays,
    as_array,
    check_count,
    check_dtype,
    check_least,
)
from effax.ir.prims.index import check_update
from effax.ir.types import ArrayType, RefKind, RefType, Type, ref_type
from effax.ir.work import NO_WORK, Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "AddUpdate",
    "EmptyRef",
    "FreeRef",
    "Freeze",
    "Get",
    "NewRef",
    "Swap",
]

REF = ArgIndex(0)


def _row(*effects: Effect[ArgIndex]) -> Row[ArgIndex]:
    return Row(effects)


ALLOCATES = _row(Alloc(REF))
READS = _row(Read(REF))
SWAPS = _row(Read(REF), Write(REF))
ADDS = _row(Accum(REF))
CONSUMES = _row(Read(REF), Free(REF))
FREES = _row(Free(REF))


def as_ref(prim: Primitive, ins: Sequence[Type]) -> RefType:
    """Return the type of the first operand, which must be a reference. Raises IllTyped."""
    if ins and isinstance(ins[0], RefType):
        return ins[0]
    raise IllTyped(
        f"{prim.name} takes a reference first",
        expected="a reference",
        found=str(ins[0]) if ins else "nothing",
        remedy="create one with `new_ref`",
    )


def only_ref(prim: Primitive, ins: Sequence[Type]) -> RefType:
    """Return the type of the one operand, which must be a reference. Raises IllTyped."""
    check_count(prim, ins, 1)
    return as_ref(prim, ins)


@dataclass(frozen=True, slots=True)
class NewRef(Primitive):
    """A new reference to a copy of the operand."""

    kind: RefKind = RefKind.ARRAY
    name: ClassVar[str] = "new_ref"
    updates_first: ClassVar[bool] = True
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        if any(isinstance(t, RefType) for t in ins):
            found = ", ".join(map(str, ins))
            rule = Rule.REF_TO_REF
            raise RefError.against(rule, rule.forbids, "an array", found)
        (x,) = arrays(self, ins, 1)
        return Typing((ref_type(x, self.kind),), ALLOCATES)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.array(np.asarray(ins[0]), order="C"),)


@dataclass(frozen=True, slots=True)
class EmptyRef(Primitive):
    """A new reference whose contents are undefined until they are written.

    The evaluator fills it with zeros, one of the possible contents.
    """

    inner: ArrayType
    name: ClassVar[str] = "empty_ref"

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, 0)
        return Typing((ref_type(self.inner),), ALLOCATES)

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return NO_WORK

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.zeros(self.inner.shape, self.inner.dtype),)


@dataclass(frozen=True, slots=True)
class Get(Primitive):
    """``get(ref, *operands)``: a copy of ``ref[indexer]``."""

    indexer: Indexer
    name: ClassVar[str] = "get"
    flops_per_element: ClassVar[int] = 0

    def typing(self, *ins: Type) -> Typing:
        ref = as_ref(self, ins)
        operands = [as_array(self, i, t) for i, t in enumerate(ins[1:], 1)]
        shape = indexed_shape(self.indexer, ref.shape, operands)
        return Typing((ref.inner.update(shape=shape),), READS)

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved([*outs, *ins[1:]], outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (indexing.read(self.indexer, ins[0], ins[1:]),)


@dataclass(frozen=True, slots=True)
class Swap(Primitive):
    """``swap(ref, value, *operands)``: ``ref[indexer] = value``; returns the old contents."""

    indexer: Indexer
    name: ClassVar[str] = "swap"

    def typing(self, *ins: Type) -> Typing:
        ref = as_ref(self, ins)
        check_least(self, ins, 2)
        value, *operands = (as_array(self, i, t) for i, t in enumerate(ins[1:], 1))
        shape = indexed_shape(self.indexer, ref.shape, operands)
        check_update(self, shape, ref.dtype, value)
        return Typing((ref.inner.update(shape=shape),), SWAPS)

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved([*outs, *ins[1:]], [ins[1], *outs])

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        old = indexing.read(self.indexer, ins[0], ins[2:])
        indexing.write(self.indexer, ins[0], ins[1], ins[2:])
        return (old,)


@dataclass(frozen=True, slots=True)
class AddUpdate(Primitive):
    """``addupdate(ref, value, *operands)``: ``ref[indexer] += value``; duplicates all count."""

    indexer: Indexer
    name: ClassVar[str] = "addupdate"

    def typing(self, *ins: Type) -> Typing:
        ref = as_ref(self, ins)
        check_least(self, ins, 2)
        value, *operands = (as_array(self, i, t) for i, t in enumerate(ins[1:], 1))
        check_dtype(self, ref.inner, NUMBERS)
        shape = indexed_shape(self.indexer, ref.shape, operands)
        check_update(self, shape, ref.dtype, value)
        return Typing((), ADDS)

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved([ins[1], *ins[1:]], [ins[1]], flops=elements([ins[1]]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        indexing.write(self.indexer, ins[0], ins[1], ins[2:], np.add)
        return ()


class Freeze(Nullary):
    """``freeze(ref)``: consumes the reference and returns its final contents."""

    name = "freeze"
    is_view = True

    def typing(self, *ins: Type) -> Typing:
        return Typing((only_ref(self, ins).inner,), CONSUMES)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.array(ins[0]),)


class FreeRef(Nullary):
    """``free_ref(ref)``: consumes the reference."""

    name = "free_ref"

    def typing(self, *ins: Type) -> Typing:
        only_ref(self, ins)
        return Typing((), FREES)

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return NO_WORK

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return ()
