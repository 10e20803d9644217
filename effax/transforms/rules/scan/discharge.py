"""Discharge of ``scan``.

The contents of a closed-over reference that the body changes become a carry. The contents of a
scanned reference that it changes become a carry as a whole, with a counter by which each iteration
updates its element in place: this needs one buffer, while stacked results would need a second one.
References that are only read remain constants and scanned inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir import indexing
from effax.ir.build import lit
from effax.ir.prims import Add, Gather, Scan, Scatter
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import COUNTER, array_type
from effax.transforms.discharge import Discharged, discharge
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.common.arrays import placed


def scan_discharge(
    b: RuleBuilder, prim: Scan, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    inner = discharge.cached(prim.jaxpr, b.rules)
    if not inner.changed:
        return DischargeOut(b.emit(replace(prim, jaxpr=inner.jaxpr), ins), [None] * len(ins))
    first_x = prim.n_consts + prim.n_carry
    kept = [i for i in range(len(ins)) if i not in inner.changed]
    consts = [i for i in kept if i < prim.n_consts]
    carry = [i for i in kept if prim.n_consts <= i < first_x]
    xs = [i for i in kept if i >= first_x]
    counted = inner.changed[-1] >= first_x
    start = lit(prim.length - 1 if prim.reverse else 0, COUNTER)
    args = [
        *[ins[i] for i in (*consts, *inner.changed)],
        *[start] * counted,
        *[ins[i] for i in (*carry, *xs)],
    ]
    made = Scan(
        _body(b, prim, inner, (consts, carry, xs), [a.type.shape for a in ins]),
        prim.length,
        prim.reverse,
        len(consts),
        len(inner.changed) + counted + len(carry),
        prim.unroll,
    )
    results = b.emit(made, args)
    new = results[: len(inner.changed)]
    return DischargeOut(
        results[len(inner.changed) + counted :], placed(inner.changed, new, len(ins))
    )


def _body(
    b: RuleBuilder,
    prim: Scan,
    inner: Discharged,
    kept: tuple[Sequence[int], Sequence[int], Sequence[int]],
    shapes: Sequence[tuple[int, ...]],
) -> Jaxpr:
    """Return ``(consts, contents, counter, carry, xs) -> (contents, counter, carry, ys)``."""
    consts, carry, xs = kept
    first_x = prim.n_consts + prim.n_carry
    types = inner.jaxpr.in_types
    body = RuleBuilder(b.rules)
    args: dict[int, Atom] = {i: body.bind(types[i]) for i in consts}
    contents = [
        body.bind(array_type(shapes[i], types[i].dtype) if i >= first_x else types[i])
        for i in inner.changed
    ]
    scanned = [i >= first_x for i in inner.changed]
    counter = body.bind(COUNTER) if any(scanned) else None
    args.update((i, body.bind(types[i])) for i in (*carry, *xs))
    for i, whole in zip(inner.changed, contents, strict=True):
        at = indexing.row(shapes[i]) if i >= first_x else None
        args[i] = body(Gather(at), whole, counter) if at and counter else whole
    outs = body.inline_jaxpr(inner.jaxpr, [args[i] for i in range(len(types))])
    new = list(outs[inner.n_outs :])
    for k, (i, whole) in enumerate(zip(inner.changed, contents, strict=True)):
        if i >= first_x and counter:
            new[k] = body(Scatter(indexing.row(shapes[i])), whole, new[k], counter)
    counted = []
    if counter:
        counted.append(body(Add(), counter, lit(-1 if prim.reverse else 1, COUNTER)))
    # Dce removes the gather of an element that is overwritten without being read.
    return without_dead(body.finish([*new, *counted, *outs[: inner.n_outs]]), b.rules)
