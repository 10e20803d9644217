"""Transposition of ``cond``: the branches are transposed, under the same index.

If an operand's cotangent is nonzero in some branch, the other branches return zeros for it; a
branch does not access the reference of a cotangent that is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.prims import Cond
from effax.ir.syntax import Atom
from effax.ir.types import tangent_type
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.cotangents import call_operands, instantiated, spec_of, values_of
from effax.transforms.transpose.cotangent_spec import GradValue
from effax.transforms.transpose.engine import transpose


def cond_transpose(
    b: RuleBuilder, prim: Cond, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    index, *operands = ins
    if isinstance(index, Linear):
        raise NotApplicable("cond is not linear in the index that selects its branch")
    ct_specs = tuple(map(spec_of, operands))
    has = tuple([ct is not None for ct in cts])
    branches = [transpose.cached(branch, ct_specs, has, b.rules) for branch in prim.branches]
    values = [x for x, w in zip(operands, ct_specs, strict=True) if isinstance(w, GradValue)]
    types = [tangent_type(x.type) for x in values]
    given = tuple(map(any, zip(*[branch.nonzero for branch in branches], strict=True)))
    made = Cond(tuple(instantiated(branch, given, types) for branch in branches))
    results = b.emit(made, [index, *call_operands(operands, cts)])
    return [None, *values_of(ct_specs, given, results)]
