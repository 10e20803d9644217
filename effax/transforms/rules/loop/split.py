"""PLACEHOLDER."""

from __future__ import annotations

from effax.ir.prims.control import While
from effax.ir.types import Type
from effax.transforms.rulebook import RuleBook, SplitOut


def loop_split(
    book: RuleBook, prim: While, in_types: tuple[Type, ...], known: tuple[bool, ...]
) -> SplitOut | None:
    return None
