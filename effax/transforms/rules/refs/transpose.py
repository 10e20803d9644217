"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.refs import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.syntax import Atom
from effax.transforms.rulebook import Linear, RuleBuilder


def new_ref_transpose(b: RuleBuilder, prim: NewRef, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")


def empty_ref_transpose(b: RuleBuilder, prim: EmptyRef, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")


def get_transpose(b: RuleBuilder, prim: Get, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")


def swap_transpose(b: RuleBuilder, prim: Swap, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")


def add_update_transpose(b: RuleBuilder, prim: AddUpdate, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")


def freeze_transpose(b: RuleBuilder, prim: Freeze, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")


def free_ref_transpose(b: RuleBuilder, prim: FreeRef, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")
