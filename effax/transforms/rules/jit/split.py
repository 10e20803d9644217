"""PLACEHOLDER."""

from __future__ import annotations

from effax.ir.prims.control import Jit
from effax.ir.types import Type
from effax.transforms.rulebook import RuleBook, SplitOut


def jit_split(
    book: RuleBook, prim: Jit, in_types: tuple[Type, ...], known: tuple[bool, ...]
) -> SplitOut | None:
    return None
