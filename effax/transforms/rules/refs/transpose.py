"""Transposition of reference primitives: reads become accumulations, and the reverse.

The cotangent of a reference is a reference. Invariant: at each point of the backward program it
contains the cotangent of the contents at that point of the forward program.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import typing_of
from effax.ir.prims import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.syntax import Atom, Var
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.linear_operands import at, fixed
from effax.transforms.rules.common.pointwise import const, where
from effax.transforms.rules.index.scatter import winners


def new_ref_transpose(
    b: RuleBuilder, prim: NewRef, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # r = new(x):  x' = freeze(r'), the cotangent of the initial contents
    (ref,) = cts
    return [None if ref is None else b(Freeze(), ref)]


def empty_ref_transpose(
    b: RuleBuilder, prim: EmptyRef, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return []


def get_transpose(
    b: RuleBuilder, prim: Get, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = r[i]:  r'[i] += y'
    (ct,) = cts
    ref = cotangent_ref(ins[0])
    if ct is not None and ref is not None:
        b.emit(AddUpdate(prim.indexer), [ref, ct, *fixed(prim, ins, 1)])
    return [None] * len(ins)


def swap_transpose(
    b: RuleBuilder, prim: Swap, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # old = r[i], r[i] = v:  v' = r'[i], r'[i] = old'
    ref, operands = cotangent_ref(ins[0]), fixed(prim, ins, 2)
    if ref is None:
        return [None] * len(ins)
    (old,) = cts
    part = typing_of(prim, tuple([x.type for x in ins])).outs[0]
    # If picks can repeat a position, only its last value stays, but each old value was read:
    # then v' is masked, and old' is added.
    last = winners(b, prim.indexer, ref.type.shape, operands, part.shape)
    first = zeros(b, part) if old is None or last is not None else old
    ct: Atom = b(Swap(prim.indexer), ref, first, *operands)
    if last is not None:
        ct = where(b, last, ct, const(0, ct))
        if old is not None:
            b.emit(AddUpdate(prim.indexer), [ref, old, *operands])
    return at(1, ct, ins) if isinstance(ins[1], Linear) else [None] * len(ins)


def add_update_transpose(
    b: RuleBuilder, prim: AddUpdate, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # r[i] += v:  v' = r'[i]
    ref = cotangent_ref(ins[0])
    if ref is None or not isinstance(ins[1], Linear):
        return [None] * len(ins)
    return at(1, b(Get(prim.indexer), ref, *fixed(prim, ins, 2)), ins)


def freeze_transpose(
    b: RuleBuilder, prim: Freeze, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = freeze(r):  r' = y'
    return cts


def free_ref_transpose(
    b: RuleBuilder, prim: FreeRef, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [None]


def cotangent_ref(operand: Atom | Linear) -> Var | None:
    """Return the reference of a linear operand's cotangent; None if it is fixed or not wanted."""
    return operand.ref if isinstance(operand, Linear) else None
