"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import Jit
from effax.ir.syntax import Atom
from effax.transforms.rulebook import BatchOut, RuleBuilder


def jit_batch(b: RuleBuilder, prim: Jit, ins: Sequence[Atom], batched: Sequence[bool], size: int) -> BatchOut:
    raise NotApplicable("not there")
