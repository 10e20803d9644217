"""Forward mode of ``cond``: each branch gives the tangents that any of them gives."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.prims import Cond
from effax.ir.syntax import Atom
from effax.transforms.framework.propagation import propagate_call
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import jvp, tangent_property, with_tangents


def cond_jvp(
    b: RuleBuilder, prim: Cond, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    types = tuple([p.type for p in primals])
    mask = tuple([t is not None for t in tangents])
    _, given = propagate_call(prim, types, mask, tangent_property(b.rules))
    branches = [jvp.cached(branch, mask[1:], given, b.rules).jaxpr for branch in prim.branches]
    present = [t for t in tangents if t is not None]
    return with_tangents(b.emit(Cond(tuple(branches)), [*primals, *present]), given)
