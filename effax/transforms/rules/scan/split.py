"""PLACEHOLDER."""

from __future__ import annotations

from effax.ir.prims.control import Scan
from effax.ir.types import Type
from effax.transforms.rulebook import RuleBook, SplitOut


def scan_split(
    book: RuleBook, prim: Scan, in_types: tuple[Type, ...], known: tuple[bool, ...]
) -> SplitOut | None:
    return None
