"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.refs import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.syntax import Atom
from effax.transforms.rulebook import BatchOut, RuleBuilder


def new_ref_batch(b: RuleBuilder, prim: NewRef, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")


def empty_ref_batch(b: RuleBuilder, prim: EmptyRef, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")


def get_batch(b: RuleBuilder, prim: Get, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")


def swap_batch(b: RuleBuilder, prim: Swap, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")


def add_update_batch(b: RuleBuilder, prim: AddUpdate, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")


def freeze_batch(b: RuleBuilder, prim: Freeze, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")


def free_ref_batch(b: RuleBuilder, prim: FreeRef, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")
