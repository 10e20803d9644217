"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import Cond
from effax.ir.syntax import Atom
from effax.transforms.rulebook import JvpOut, RuleBuilder


def cond_jvp(b: RuleBuilder, prim: Cond, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")
