"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.refs import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.syntax import Atom
from effax.transforms.rulebook import JvpOut, RuleBuilder


def new_ref_jvp(b: RuleBuilder, prim: NewRef, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")


def empty_ref_jvp(b: RuleBuilder, prim: EmptyRef, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")


def get_jvp(b: RuleBuilder, prim: Get, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")


def swap_jvp(b: RuleBuilder, prim: Swap, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")


def add_update_jvp(b: RuleBuilder, prim: AddUpdate, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")


def freeze_jvp(b: RuleBuilder, prim: Freeze, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")


def free_ref_jvp(b: RuleBuilder, prim: FreeRef, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")
