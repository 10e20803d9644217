"""Many small residuals of a call as few: one array for all of a dtype.

A call gives what its late half needs as results, and so do the calls around it. Where each level
of nesting adds some, or calls what is inside twice, the lists would grow with the depth, or double
with each level. Before, with more than ``MANY`` of them::

    early: x -> (y, r1:f32[], r2:f32[3], ...)
    late:  (r1, r2, ..., dx) -> dy

After, where ``p`` is ``r1`` and ``r2`` one after the other::

    early: x -> (y, p:f32[4])
    late:  (p, dx) -> dy

So a program has at most ``MANY`` results more than it had, and one for each ``LARGE`` numbers
that it has to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from effax.ir.build import Builder
from effax.ir.prims import Concatenate, Reshape, Slice
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Type
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.partial_eval.partial_eval import FromOutput, PartialEval, Residual

MANY: Final = 64
"""How many results of its own a known half may give for the unknown one."""

LARGE: Final = 4096
"""An array of more elements than this is handed over by itself: it is not copied."""


STEEP: Final = 16
"""An array with more axes than this is handed over without its shape: NumPy has 64 at most."""


def packed(rules: RuleSet, pe: PartialEval, apart: Sequence[bool] | None = None) -> PartialEval:
    """The halves with small residuals put together, where there are many.

    Args:
        rules: the rules, by which residuals that are not used are found.
        pe: the halves.
        apart: one entry a residual: those that are marked are not put together with the others.
    """
    marks = [False] * len(pe.residuals) if apart is None else apart
    n = sum(pe.known_outs)
    computed = [i for i, r in enumerate(pe.residuals) if isinstance(r, FromOutput) and r.index >= n]
    types = pe.unknown.in_types
    steep = [i for i in computed if len(types[i].shape) > STEEP]
    if len(computed) <= MANY and not steep:
        return pe
    used = _used(pe, rules)
    groups: dict[object, list[int]] = {}
    for i in computed:
        type_ = types[i]
        if len(computed) > MANY and used[i] and prod(type_.shape) <= LARGE:
            weak = isinstance(type_, ArrayType) and type_.weak
            groups.setdefault((type_.dtype, weak, marks[i]), []).append(i)
    packs = [group for group in groups.values() if len(group) > 1]
    together = {i for group in packs for i in group}
    packs += [[i] for i in steep if used[i] and i not in together]
    inside = {i for group in packs for i in group}
    single = [i for i in range(len(pe.residuals)) if used[i] and i not in inside]
    return _repacked(pe, single, packs, rules)


def _used(pe: PartialEval, rules: RuleSet) -> Sequence[bool]:
    """Which residuals the unknown half needs."""
    every, nothing = (True,) * len(pe.unknown.outs), (False,) * len(pe.unknown.binders)
    return dce.cached(pe.unknown, every, (True,) * len(nothing), nothing, rules).used_ins


def _repacked(
    pe: PartialEval, single: Sequence[int], packs: Sequence[Sequence[int]], rules: RuleSet
) -> PartialEval:
    """The halves that hand over the residuals ``single`` as they are, then ``packs``."""
    early = Builder(pe.known.in_types)
    outs = early.inline_jaxpr(pe.known, early.binders)
    given = outs[: sum(pe.known_outs)]
    sources: list[Residual] = []
    for i in single:
        source = pe.residuals[i]
        if isinstance(source, FromOutput) and source.index >= len(given):
            given.append(outs[source.index])
            source = FromOutput(len(given) - 1)
        sources.append(source)
    for pack in packs:
        given.append(_pack(early, [outs[pe.residuals[i].index] for i in pack]))
        sources.append(FromOutput(len(given) - 1))

    types = pe.unknown.in_types
    n = len(pe.residuals)
    late = Builder([types[i] for i in single])
    values: dict[int, Atom] = dict(zip(single, late.binders, strict=True))
    wholes = [late.bind(out.type) for out in given[len(given) - len(packs) :]]
    rest = [late.bind(type_) for type_ in types[n:]]
    for pack, whole in zip(packs, wholes, strict=True):
        values.update(zip(pack, _unpack(late, whole, [types[i] for i in pack]), strict=True))
    unused = [i for i in range(n) if i not in values]
    body = pe.unknown if not unused else _without(pe, unused, rules)
    ins = [values[i] for i in range(n) if i in values]
    late_outs = late.inline_jaxpr(body, [*ins, *rest])
    more = len(sources) - n
    names = [""] * len(sources) + list(pe.unknown.names[n:])
    return pe._replace(
        known=early.finish(given, pe.known.n_consts, pe.known.names),
        unknown=late.finish(late_outs, pe.unknown.n_consts + more, names if any(names) else ()),
        residuals=tuple(sources),
    )


def _without(pe: PartialEval, unused: Sequence[int], rules: RuleSet) -> Jaxpr:
    """The unknown half without the residuals that it does not need."""
    n = len(pe.unknown.binders)
    every, left = (True,) * len(pe.unknown.outs), set(unused)
    keep = tuple([i not in left for i in range(n)])
    return dce.cached(pe.unknown, every, (True,) * n, keep, rules).jaxpr


def _pack(b: Builder, parts: Sequence[Atom]) -> Atom:
    flat = [_reshaped(b, x, (prod(x.type.shape),)) for x in parts]
    return flat[0] if len(flat) == 1 else b(Concatenate(0), *flat)


def _unpack(b: Builder, whole: Atom, types: Sequence[Type]) -> list[Atom]:
    parts: list[Atom] = []
    start = 0
    for type_ in types:
        end = start + prod(type_.shape)
        part = whole if len(types) == 1 else b(Slice((start,), (end,)), whole)
        parts.append(_reshaped(b, part, type_.shape))
        start = end
    return parts


def _reshaped(b: Builder, x: Atom, shape: tuple[int, ...]) -> Atom:
    return x if x.type.shape == shape else b(Reshape(shape), x)
