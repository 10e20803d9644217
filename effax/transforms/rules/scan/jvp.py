"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import Scan
from effax.ir.syntax import Atom
from effax.transforms.rulebook import JvpOut, RuleBuilder


def scan_jvp(b: RuleBuilder, prim: Scan, primals: Sequence[Atom], tangents: Sequence[Atom | None]) -> JvpOut:
    raise NotApplicable("not there")
