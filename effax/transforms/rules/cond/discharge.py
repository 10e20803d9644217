"""PLACEHOLDER."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims.control import Cond
from effax.ir.syntax import Atom
from effax.transforms.rulebook import DischargeOut, RuleBuilder


def cond_discharge(b: RuleBuilder, prim: Cond, ins: Sequence[Atom], is_ref: Sequence[bool]) -> DischargeOut:
    raise NotApplicable("not there")
