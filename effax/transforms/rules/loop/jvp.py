"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import While
from effax.ir.syntax import Atom
from effax.transforms.rulebook import JvpOut, RuleBuilder


def loop_jvp(b: RuleBuilder, prim: While, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")
