"""Unrolling of ``scan``."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.analysis.queries import size
from effax.ir.build import Builder, Where, lit
from effax.ir.indexing import row
from effax.ir.prims import BroadcastInDim, Concatenate, Gather, Scan
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.types import RefType, Type
from effax.transforms.framework.rules import RuleSet


def scan_unroll(rules: RuleSet, eqn: Eqn, ins: Sequence[Atom], growth: int) -> Jaxpr | None:
    scan, source = eqn.prim, eqn.source
    assert isinstance(scan, Scan)
    if not _is_small(scan, ins, growth):
        return None
    b = Builder([a.type for a in ins])
    consts, carry, xs = scan.split(list[Atom](b.binders))
    rows: list[list[Atom]] = []
    for i in range(scan.length - 1, -1, -1) if scan.reverse else range(scan.length):
        elements = [b.emit(Gather(row(x.type.shape, i)), [x], source)[0] for x in xs]
        outs = b.inline_jaxpr(scan.jaxpr, [*consts, *carry, *elements])
        carry, ys = outs[: scan.n_carry], outs[scan.n_carry :]
        rows.append(ys)
    if scan.reverse:
        rows.reverse()
    y_types = scan.jaxpr.out_types[scan.n_carry :]
    stacked = [_stacked(b, source, [ys[k] for ys in rows], t) for k, t in enumerate(y_types)]
    return b.finish([*carry, *stacked])


def _types(atoms: Sequence[Atom]) -> tuple[Type, ...]:
    return tuple([a.type for a in atoms])


def _is_small(scan: Scan, ins: Sequence[Atom], growth: int) -> bool:
    consts, carry, xs = scan.split(ins)
    body, n = scan.jaxpr, scan.length
    n_ys = len(body.outs) - scan.n_carry
    stacking = n_ys * (1 if n < 2 else n + 1)
    if n * (size(body) + len(xs)) + stacking > 1 + size(body) + growth:
        return False
    first = scan.n_consts + scan.n_carry
    return (
        not any(isinstance(x.type, RefType) for x in xs)
        and _types([*consts, *carry]) == body.in_types[:first]
        and _types(carry) == body.out_types[: scan.n_carry]
        and all(
            getattr(x.type, "weak", False) == getattr(t, "weak", False)
            for x, t in zip(xs, body.in_types[first:], strict=True)
        )
    )


def _stacked(b: Builder, source: Where, rows: Sequence[Atom], type_: Type) -> Atom:
    """Append the stack of values along a new leading axis."""
    shape = type_.shape
    axes = tuple(range(1, 1 + len(shape)))
    if not rows:
        zero = lit(0, type_)
        return b.emit(BroadcastInDim((0, *shape), ()), [zero], source)[0]
    parts = [b.emit(BroadcastInDim((1, *shape), axes), [y], source)[0] for y in rows]
    return parts[0] if len(parts) == 1 else b.emit(Concatenate(0), parts, source)[0]
