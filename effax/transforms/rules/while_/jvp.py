"""Forward mode of ``while``: one loop over primals and tangents, with the primal condition.

The layout is ``(consts, d consts) (carry, d carry) -> (carry, d carry)``. The predicate has no
tangent; the condition is differentiated only if it changes a reference that has a tangent.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.effects import Accum, Write
from effax.ir.build import Builder
from effax.ir.edit.renumber import rearranged
from effax.ir.prims import While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import JvpOut, RuleBuilder, RuleSet
from effax.transforms.jvp import close_tangents, jvp, regrouped, with_tangents


def while_jvp(
    b: RuleBuilder, prim: While, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    closed = close_tangents(b, prim, primals, tangents)
    mask = tuple([t is not None for t in closed])
    d_carry = mask[prim.n_consts :]
    body = jvp.cached(prim.body, mask, d_carry, b.rules)

    ins = regrouped(mask, (0, prim.n_consts, len(mask)))
    both = While(
        rearranged(_condition(prim.cond, mask, b.rules), ins, (0,)),
        rearranged(body.jaxpr, ins, range(len(body.jaxpr.outs))),
        prim.n_consts + sum(mask[: prim.n_consts]),
    )
    args = [*primals, *[t for t in closed if t is not None]]
    return with_tangents(b.emit(both, [args[i] for i in ins]), d_carry)


def _condition(cond: Jaxpr, mask: Mask, rules: RuleSet) -> Jaxpr:
    """Return the condition over ``(*primals, *nonzero tangents)``."""
    if any(isinstance(e, Write | Accum) and mask[e.ref] for e in cond.effects):
        return jvp.cached(cond, mask, False, rules).jaxpr
    b = Builder(cond.in_types)
    primals = tuple(b.binders)
    for type_, has in zip(cond.in_types, mask, strict=True):
        if has:
            b.bind(tangent_type(type_))
    return b.finish(b.inline_jaxpr(cond, primals))
