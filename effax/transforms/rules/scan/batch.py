"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import Scan
from effax.ir.syntax import Atom
from effax.transforms.rulebook import BatchOut, RuleBuilder


def scan_batch(b: RuleBuilder, prim: Scan, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")
