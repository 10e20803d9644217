"""Forward mode of ``cond``: each branch returns the tangents that are nonzero in any branch."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.analysis.dataflow import close_regions
from effax.ir.prims import Cond
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import HasTangent, jvp, with_tangents


def cond_jvp(
    b: RuleBuilder, prim: Cond, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    mask = tuple([t is not None for t in tangents])
    _, given = close_regions(HasTangent(b.rules), prim, mask)
    branches = [jvp.cached(branch, mask[1:], given, b.rules).jaxpr for branch in prim.branches]
    present = [t for t in tangents if t is not None]
    return with_tangents(b.emit(Cond(tuple(branches)), [*primals, *present]), given)
