"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import While
from effax.ir.syntax import Atom
from effax.transforms.rulebook import Linear, RuleBuilder


def loop_transpose(b: RuleBuilder, prim: While, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> Sequence[Atom | None]:
    raise NotApplicable("not there")
