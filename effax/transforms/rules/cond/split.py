"""PLACEHOLDER."""

from __future__ import annotations

from effax.ir.prims.control import Cond
from effax.ir.types import Type
from effax.transforms.rulebook import RuleBook, SplitOut


def cond_split(
    book: RuleBook, prim: Cond, in_types: tuple[Type, ...], known: tuple[bool, ...]
) -> SplitOut | None:
    return None
