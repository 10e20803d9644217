"""Packing of many small residuals of a call into one array for each dtype.

The residuals of a call are residuals of all calls around it. If each level of nesting adds some, or
calls the next level twice, their number grows with the depth, or doubles with each level. Before,
with more than ``MAX_RESIDUALS`` of them::

    known:   x -> (y, r1:f32[], r2:f32[3], ...)
    unknown: (r1, r2, ..., dx) -> dy

After, where ``p`` is the concatenation of ``r1`` and ``r2``::

    known:   x -> (y, p:f32[4])
    unknown: (p, dx) -> dy

So a program has at most ``MAX_RESIDUALS`` more results, and one for each ``MAX_PACKED_SIZE``
numbers of its residuals.
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

MAX_RESIDUALS: Final = 64
"""More residuals than this, inputs and results of the program aside, are packed."""

MAX_PACKED_SIZE: Final = 4096
"""Arrays of more elements are not packed: a copy of them costs more than a result."""

MAX_NDIM: Final = 16
"""Arrays of more axes are flattened: a loop adds an axis, and NumPy supports at most 64."""


def packed(rules: RuleSet, pe: PartialEval, apart: Sequence[bool] | None = None) -> PartialEval:
    """Pack the residuals if there are many.

    Args:
        rules: the rules, for the removal of unused residuals.
        pe: the known and unknown jaxprs.
        apart: one entry a residual: marked ones are not packed with others.
    """
    marks = [False] * len(pe.residuals) if apart is None else apart
    n = sum(pe.known_outs)
    computed = [i for i, r in enumerate(pe.residuals) if isinstance(r, FromOutput) and r.index >= n]
    types = pe.unknown.in_types
    flattened = [i for i in computed if len(types[i].shape) > MAX_NDIM]
    if len(computed) <= MAX_RESIDUALS and not flattened:
        return pe
    used = _used(pe, rules)
    groups: dict[object, list[int]] = {}
    for i in computed:
        type_ = types[i]
        many = len(computed) > MAX_RESIDUALS
        if many and used[i] and prod(type_.shape) <= MAX_PACKED_SIZE:
            weak = isinstance(type_, ArrayType) and type_.weak
            groups.setdefault((type_.dtype, weak, marks[i]), []).append(i)
    packs = [group for group in groups.values() if len(group) > 1]
    together = {i for group in packs for i in group}
    packs += [[i] for i in flattened if used[i] and i not in together]
    inside = {i for group in packs for i in group}
    single = [i for i in range(len(pe.residuals)) if used[i] and i not in inside]
    return _repacked(pe, single, packs, rules)


def _used(pe: PartialEval, rules: RuleSet) -> Sequence[bool]:
    """Return which residuals the unknown jaxpr uses."""
    every, nothing = (True,) * len(pe.unknown.outs), (False,) * len(pe.unknown.binders)
    return dce.cached(pe.unknown, every, (True,) * len(nothing), nothing, rules).used_ins


def _repacked(
    pe: PartialEval, single: Sequence[int], packs: Sequence[Sequence[int]], rules: RuleSet
) -> PartialEval:
    """Return the jaxprs with the residuals ``single``, unchanged, then ``packs``."""
    known = Builder(pe.known.in_types)
    outs = known.inline_jaxpr(pe.known, known.binders)
    results = outs[: sum(pe.known_outs)]
    sources: list[Residual] = []
    for i in single:
        source = pe.residuals[i]
        if isinstance(source, FromOutput) and source.index >= len(results):
            results.append(outs[source.index])
            source = FromOutput(len(results) - 1)
        sources.append(source)
    for pack in packs:
        results.append(_pack(known, [outs[pe.residuals[i].index] for i in pack]))
        sources.append(FromOutput(len(results) - 1))

    types = pe.unknown.in_types
    n = len(pe.residuals)
    unknown = Builder([types[i] for i in single])
    values: dict[int, Atom] = dict(zip(single, unknown.binders, strict=True))
    wholes = [unknown.bind(out.type) for out in results[len(results) - len(packs) :]]
    rest = [unknown.bind(type_) for type_ in types[n:]]
    for pack, whole in zip(packs, wholes, strict=True):
        values.update(zip(pack, _unpack(unknown, whole, [types[i] for i in pack]), strict=True))
    unused = [i for i in range(n) if i not in values]
    body = pe.unknown if not unused else _without(pe, unused, rules)
    ins = [values[i] for i in range(n) if i in values]
    unknown_outs = unknown.inline_jaxpr(body, [*ins, *rest])
    more = len(sources) - n
    names = [""] * len(sources) + list(pe.unknown.names[n:])
    return pe._replace(
        known=known.finish(results, pe.known.n_consts, pe.known.names),
        unknown=unknown.finish(
            unknown_outs, pe.unknown.n_consts + more, names if any(names) else ()
        ),
        residuals=tuple(sources),
    )


def _without(pe: PartialEval, unused: Sequence[int], rules: RuleSet) -> Jaxpr:
    """Return the unknown jaxpr without unused residuals."""
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
