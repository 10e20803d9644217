"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.refs import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.syntax import Atom
from effax.transforms.rulebook import DischargeOut, RuleBuilder


def new_ref_discharge(b: RuleBuilder, prim: NewRef, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")


def empty_ref_discharge(b: RuleBuilder, prim: EmptyRef, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")


def get_discharge(b: RuleBuilder, prim: Get, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")


def swap_discharge(b: RuleBuilder, prim: Swap, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")


def add_update_discharge(b: RuleBuilder, prim: AddUpdate, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")


def freeze_discharge(b: RuleBuilder, prim: Freeze, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")


def free_ref_discharge(b: RuleBuilder, prim: FreeRef, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")
