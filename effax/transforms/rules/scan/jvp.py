"""Forward mode of ``scan``: one loop over primals and tangents.

Each group of operands is followed by its tangents: ``(consts, d consts) (carry, d carry)
(xs, d xs) -> (carry, d carry) (ys, d ys)``. A carry whose tangent is nonzero only after the first
iteration starts with a tangent of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.edit.renumber import rearranged
from effax.ir.prims import Scan
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import close_tangents, jvp, regrouped, with_tangents


def scan_jvp(
    b: RuleBuilder, prim: Scan, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    closed = close_tangents(b, prim, primals, tangents)
    mask = tuple([t is not None for t in closed])
    d_consts, d_carry, _ = (tuple(group) for group in prim.split(mask))
    n_ys = len(prim.jaxpr.outs) - prim.n_carry
    inner = jvp.cached(prim.jaxpr, mask, (*d_carry, *(False,) * n_ys), b.rules)

    first_x = prim.n_consts + prim.n_carry
    ins = regrouped(mask, (0, prim.n_consts, first_x, len(mask)))
    outs = regrouped(inner.out_tangents, (0, prim.n_carry, prim.n_carry + n_ys))
    both = replace(
        prim,
        jaxpr=rearranged(inner.jaxpr, ins, outs),
        n_consts=prim.n_consts + sum(d_consts),
        n_carry=prim.n_carry + sum(d_carry),
    )
    args = [*primals, *[t for t in closed if t is not None]]
    results = b.emit(both, [args[i] for i in ins])
    by_position = dict(zip(outs, results, strict=True))
    return with_tangents([by_position[i] for i in range(len(outs))], inner.out_tangents)
