"""The rules of primitives that the derivative does not serve: products, quotients and regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final, cast

from effax.ir.analysis.dataflow import close_regions
from effax.ir.build import Builder
from effax.ir.edit.renumber import rearranged
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    Cond,
    ConvGeneralDilated,
    Div,
    DotGeneral,
    Jit,
    Mul,
    Neg,
    Remat,
    Scan,
    While,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.jet.series import Rule, Series, Taylor
from effax.transforms.jvp import HasTangent
from effax.transforms.rules.common.arrays import zeros


def _product(t: Taylor, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
    # (x·y)_k = Σ x_i·y_(k-i)
    x, y = ins
    terms = [[(x[i], y[k - i]) for i in range(k + 1)] for k in range(order + 1)]
    return [
        tuple(
            t.total([t.one(prim, a, b) for a, b in row if a is not None and b is not None])
            for row in terms
        )
    ]


def _quotient(t: Taylor, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
    # z·y = x:  z_k = (x_k - Σ y_j·z_(k-j))/y_0 over j ≥ 1
    x, y = ins
    found: list[Atom | None] = []
    for k in range(order + 1):
        pairs = [(y[j], found[k - j]) for j in range(1, k + 1)]
        known = [t.one(Mul(), a, b) for a, b in pairs if a is not None and b is not None]
        rest = t.total([x[k], *[t.one(Neg(), term) for term in known]])
        first = y[0]
        assert first is not None
        found.append(None if rest is None else t.one(prim, rest, first))
    return [tuple(found)]


def _call(t: Taylor, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
    return t.run(cast("Jit | Remat", prim).jaxpr, ins, order)


def _grouped(mask: Mask, cuts: Sequence[int], order: int) -> list[int]:
    """Return the order in which each group of primals is followed by its coefficients."""
    slot, at = {}, len(mask)
    for i, has in enumerate(mask):
        if has:
            slot[i] = range(at, at + order)
            at += order
    places: list[int] = []
    for low, high in pairwise(cuts):
        places += range(low, high)
        places += [place for i in range(low, high) if i in slot for place in slot[i]]
    return places


def _closed(t: Taylor, prim: Primitive, ins: Sequence[Series]) -> tuple[Mask, Mask]:
    """Return which operands, and which results, have series; carries that get one included."""
    mask = tuple([any(c is not None for c in x[1:]) for x in ins])
    grown, outs = close_regions(HasTangent(t.rules), prim, mask)
    return tuple(grown), tuple(outs)


def _flat(t: Taylor, ins: Sequence[Series], mask: Mask) -> list[Atom]:
    """Return the primals, and the coefficients of the operands with series."""
    primals = [cast(Atom, x[0]) for x in ins]
    coefficients = [
        zeros(t.b, tangent_type(primal.type))
        if c is None
        else t.typed(c, tangent_type(primal.type))
        for x, primal, has in zip(ins, primals, mask, strict=True)
        if has
        for c in x[1:]
    ]
    return [*primals, *coefficients]


def _series(results: Sequence[Atom], mask: Mask, order: int) -> list[Series]:
    n, rest = len(mask), iter(results[len(mask) :])
    return [
        (y, *[next(rest) if has else None for _ in range(order)])
        for y, has in zip(results[:n], mask, strict=True)
    ]


def _scan(t: Taylor, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
    loop = cast(Scan, prim)
    mask, out_mask = _closed(t, prim, ins)
    inner = _body(t, loop.jaxpr, mask, order, out_mask)
    first_x, n_outs = loop.n_consts + loop.n_carry, len(loop.jaxpr.outs)
    places = _grouped(mask, (0, loop.n_consts, first_x, len(mask)), order)
    outs = _grouped(out_mask, (0, loop.n_carry, n_outs), order)
    both = replace(
        loop,
        jaxpr=rearranged(inner, places, outs),
        n_consts=loop.n_consts + order * sum(mask[: loop.n_consts]),
        n_carry=loop.n_carry + order * sum(mask[loop.n_consts : first_x]),
    )
    args = _flat(t, ins, mask)
    results = t.emit(both, [args[i] for i in places])
    by_position = dict(zip(outs, results, strict=True))
    return _series([by_position[i] for i in range(len(outs))], out_mask, order)


def _while(t: Taylor, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
    loop = cast(While, prim)
    mask, _ = _closed(t, prim, ins)
    carried = mask[loop.n_consts :]
    body = _body(t, loop.body, mask, order, carried)
    places = _grouped(mask, (0, loop.n_consts, len(mask)), order)
    both = While(
        rearranged(_condition(loop.cond, mask, order), places, (0,)),
        rearranged(body, places, range(len(body.outs))),
        loop.n_consts + order * sum(mask[: loop.n_consts]),
    )
    args = _flat(t, ins, mask)
    return _series(t.emit(both, [args[i] for i in places]), carried, order)


def _condition(cond: Jaxpr, mask: Mask, order: int) -> Jaxpr:
    """Return the condition on the primals, which takes the coefficients too."""
    b = Builder(cond.in_types)
    primals = tuple(b.binders)
    for type_, has in zip(cond.in_types, mask, strict=True):
        for _ in range(order * has):
            b.bind(tangent_type(type_))
    return b.finish(b.inline_jaxpr(cond, primals))


def _cond(t: Taylor, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
    mask, out_mask = _closed(t, prim, ins)
    branches = [_body(t, x, mask[1:], order, out_mask) for x in cast(Cond, prim).branches]
    return _series(t.emit(Cond(tuple(branches)), _flat(t, ins, mask)), out_mask, order)


def _body(t: Taylor, jaxpr: Jaxpr, mask: Mask, order: int, outs: Mask) -> Jaxpr:
    return t.nested(jaxpr, mask, order, outs, t.rules)


RULES: Final[Mapping[type[Primitive], Rule]] = MappingProxyType(
    {
        Mul: _product,
        DotGeneral: _product,
        ConvGeneralDilated: _product,
        Div: _quotient,
        Jit: _call,
        Remat: _call,
        Scan: _scan,
        While: _while,
        Cond: _cond,
    }
)
