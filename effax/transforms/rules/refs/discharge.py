"""Discharge of reference primitives: each reference is replaced by its contents.

A reference's indexer indexes its contents, so an indexed read becomes a gather and a write a
scatter. An indexer of the whole reference reads or replaces the contents.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.prims import (
    Add,
    AddUpdate,
    ConvertElementType,
    EmptyRef,
    FreeRef,
    Freeze,
    Gather,
    Get,
    NewRef,
    Scatter,
    ScatterAdd,
    Swap,
)
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.common.arrays import array_of, zeros


def strong(b: RuleBuilder, x: Atom) -> Atom:
    """Return a value with a strong type, as in a reference, whose type is never weak."""
    return b(ConvertElementType(x.type.dtype), x) if array_of(x).weak else x


def new_ref_discharge(
    b: RuleBuilder, prim: NewRef, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    return DischargeOut([strong(b, ins[0])], [None])


def empty_ref_discharge(
    b: RuleBuilder, prim: EmptyRef, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    return DischargeOut([zeros(b, prim.inner)], [])


def get_discharge(
    b: RuleBuilder, prim: Get, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    part = ins[0] if prim.indexer.is_whole(ins[0].type.shape) else b(Gather(prim.indexer), *ins)
    return DischargeOut([part], [None] * len(ins))


def swap_discharge(
    b: RuleBuilder, prim: Swap, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    x, value, *operands = ins
    rest = [None] * (len(ins) - 1)
    if prim.indexer.is_whole(x.type.shape):
        return DischargeOut([x], [strong(b, value), *rest])
    # The old part is a separate equation, so that dce removes it if it is unused.
    old = b(Gather(prim.indexer), x, *operands)
    return DischargeOut([old], [b(Scatter(prim.indexer), *ins), *rest])


def add_update_discharge(
    b: RuleBuilder, prim: AddUpdate, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    new = (
        b(Add(), *ins)
        if prim.indexer.is_whole(ins[0].type.shape)
        else b(ScatterAdd(prim.indexer), *ins)
    )
    return DischargeOut([], [new, *[None] * (len(ins) - 1)])


def freeze_discharge(
    b: RuleBuilder, prim: Freeze, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    return DischargeOut(ins, [None])


def free_ref_discharge(
    b: RuleBuilder, prim: FreeRef, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    return DischargeOut([], [None])
