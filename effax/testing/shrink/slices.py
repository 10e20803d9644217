"""Cut the equations that a pass changes out of programs, as programs of their own.

In a large program, special values seldom reach an equation that the pass changes: its operands are
computed. In a slice they are inputs. A pass has to be right on the slice as on any program; if it
needs the rest of the program, it does not change the slice, and wider slices have more of it::

    { lambda ; a:f32[]. let b:f32[] = exp a; c:f32[] = neg b; d:f32[] = neg c in (d,) }
    { lambda ; a:f32[]. let b:f32[] = neg a; c:f32[] = neg b in (c,) }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from returns.result import Success

from effax.ir.analysis.check import check
from effax.ir.analysis.diff import Diff, diff
from effax.ir.analysis.queries import size
from effax.ir.build import Builder, lit
from effax.ir.dtypes import family
from effax.ir.edit.alpha import renumbered
from effax.ir.errors import EffaxError
from effax.ir.indexing import Indexer, Pick, Span, indexed_shape, whole
from effax.ir.prims import AddUpdate, Cond, Get, Scan, Swap
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from effax.testing.generate.special_values import special
from effax.testing.laws.rules import MANY

MOST: Final = 80
"""The number of slices that are kept."""

ALIKE: Final = 2
"""The number of slices of the same primitives."""

WIDTHS: Final = range(3)
"""How far slices reach from changed equations, to those that define their operands."""

LONGEST: Final = 12
"""The number of equations of a slice."""

LARGEST: Final = 60
"""The number of equations of a slice, those of subjaxprs included."""

PAIRS: Final = 60
"""The number of changed programs that are cut, the smallest ones."""


def slices_of(pairs: Iterable[tuple[Jaxpr, Jaxpr]]) -> list[Jaxpr]:
    """Return slices of programs around the equations that differ, at every depth; the least first.

    Args:
        pairs: programs before and after a pass.
    """
    found: dict[Jaxpr, None] = {}
    alike: Counter[tuple[str, ...]] = Counter()
    for before, after in sorted(pairs, key=lambda pair: len(pair[0].eqns))[:PAIRS]:
        for part in _cut(diff(before, after), before):
            families = [family(t.dtype) for t in part.in_types[:1]]
            names = (*families, *[eqn.prim.name for eqn in part.eqns])
            if alike[names] >= ALIKE:
                continue
            made = renumbered(part)
            if made in found or size(made) > LARGEST:
                continue
            if made.free_axes or not isinstance(check(made), Success):
                continue
            alike[names] += 1
            found[made] = None
    return sorted(found, key=lambda jaxpr: len(jaxpr.eqns))[:MOST]


def _cut(found: Diff, jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield slices of the program of a difference, and its changed subjaxprs with their slices.

    They are not renumbered.
    """
    changed: set[int] = set()
    at = -1
    for change in found.changes:
        at += change.old is not None
        if change.kind == "added":
            changed.add(max(0, at))
        elif change.kind != "same":
            changed.add(at)
        if change.kind == "changed" and change.inside:
            for inner, program in zip(change.inside, jaxpr.eqns[at].prim.subjaxprs(), strict=False):
                if inner:
                    yield program
                    yield from _cut(inner, program)
    defined = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outs}
    old, new = (text.split(", ") for text in found.results)
    for a, x, y in zip(jaxpr.outs, old, new, strict=False):
        if x != y and isinstance(a, Var) and a in defined:
            changed.add(defined[a])
    changed = {i for i in changed if i < len(jaxpr.eqns)}
    uses = _uses(jaxpr)
    for places in dict.fromkeys(map(frozenset, _around(jaxpr, changed, uses))):
        yield _part(jaxpr, places, uses)


Uses = dict[Var, list[int]]
"""The equations that use each variable; those of results have the number after the last."""


def _uses(jaxpr: Jaxpr) -> Uses:
    found: Uses = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for a in eqn.ins:
            if isinstance(a, Var):
                found.setdefault(a, []).append(i)
    for a in jaxpr.outs:
        if isinstance(a, Var):
            found.setdefault(a, []).append(len(jaxpr.eqns))
    return found


def _around(jaxpr: Jaxpr, changed: set[int], uses: Uses) -> Iterator[set[int]]:
    """Yield the places of slices."""
    defined = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outs}

    def widened(places: set[int]) -> set[int]:
        operands = [a for i in places for a in jaxpr.eqns[i].ins if isinstance(a, Var)]
        return places | {defined[a] for a in operands if a in defined}

    for i in sorted(changed):
        places = {i}
        for _ in WIDTHS:
            if len(places) <= LONGEST:
                yield places
            places = widened(places)
        for a in jaxpr.eqns[i].ins:
            # A pass may look at the other accesses to a reference.
            if isinstance(a.type, RefType) and isinstance(a, Var):
                near = [j for j in uses[a] if abs(j - i) < LONGEST and j < len(jaxpr.eqns)]
                if 1 < len(near) <= LONGEST:
                    yield {*near}
    for run in _runs(sorted(changed)):
        # What is between two changed equations may access the same references.
        between = set(range(run[0], run[-1] + 1))
        for places in ({*run}, between, widened(between)):
            if 1 < len(places) <= LONGEST:
                yield places


GAP: Final = 4
"""The distance between changed equations that are cut out together."""


def _runs(places: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for i in places:
        if run and (i - run[-1] > GAP or len(run) >= LONGEST):
            yield run
            run = []
        run.append(i)
    if run:
        yield run


def cut_out(jaxpr: Jaxpr, places: Iterable[int]) -> Jaxpr:
    """Return the program of some equations, with an input for each operand that they do not define.

    A value that only these equations use is not a result.
    """
    return renumbered(_part(jaxpr, places, _uses(jaxpr)))


def _part(jaxpr: Jaxpr, places: Iterable[int], uses: Uses) -> Jaxpr:
    """Return the program of some equations, with the variables of the whole program."""
    chosen = {*places}
    eqns = [jaxpr.eqns[i] for i in sorted(chosen)]
    made = {v for eqn in eqns for v in eqn.outs}
    operands = [a for eqn in eqns for a in eqn.ins if isinstance(a, Var)]
    outs = [
        v
        for eqn in eqns
        for v in eqn.outs
        if isinstance(v.type, ArrayType) and not (v in uses and chosen.issuperset(uses[v]))
    ]
    return Jaxpr(list(dict.fromkeys([a for a in operands if a not in made])), eqns, outs)


def lifted(jaxpr: Jaxpr) -> Jaxpr | None:
    """Return the program on long arrays in place of scalars or small arrays; None: impossible.

    Long arrays have all combinations of special values.
    """
    types = jaxpr.in_types
    if not types or any(not _may_lift(t, types[0]) for t in types):
        return None
    b = Builder([array_type((MANY,), t.dtype) for t in types])
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=True))
    try:
        for eqn in jaxpr.eqns:
            if eqn.prim.subjaxprs() or eqn.effects:
                return None
            outs = b.emit(eqn.prim, [env.get(a, a) for a in eqn.ins])
            env.update(zip(eqn.outs, outs, strict=True))
        return b.finish([env.get(a, a) for a in jaxpr.outs])
    except EffaxError:
        return None


LENGTHS: Final = (0, 1, 2)
"""The lengths of loops that are tried in slices."""


def with_length(jaxpr: Jaxpr, length: int) -> Jaxpr | None:
    """Return the program with scans of another length, over inputs; None: impossible."""
    scans = [eqn for eqn in jaxpr.eqns if isinstance(eqn.prim, Scan)]
    if all(isinstance(eqn.prim, Scan) and eqn.prim.length == length for eqn in scans):
        return None
    scanned = {
        a
        for eqn in scans
        if isinstance(eqn.prim, Scan)
        for a in eqn.ins[eqn.prim.n_consts + eqn.prim.n_carry :]
    }
    b = Builder([_of_length(v.type, length) if v in scanned else v.type for v in jaxpr.binders])
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=True))
    try:
        for eqn in jaxpr.eqns:
            prim = eqn.prim
            changed = replace(prim, length=length) if isinstance(prim, Scan) else prim
            outs = b.emit(changed, [env.get(a, a) for a in eqn.ins])
            env.update(zip(eqn.outs, outs, strict=True))
        return b.finish([env.get(a, a) for a in jaxpr.outs])
    except EffaxError:
        return None


def _of_length(type_: Type, length: int) -> Type:
    if isinstance(type_, RefType):
        shape = (length, *type_.inner.shape[1:])
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=(length, *type_.shape[1:]))


MOST_LOOPED: Final = 12
"""The number of slices that are tried in loops over special values."""

LOOPED: Final = 128
"""The number of iterations of these."""


def in_loop(jaxpr: Jaxpr) -> Jaxpr | None:
    """Return a loop of the program, of scalars, over arrays; None: impossible.

    It serves passes that change scalars only, at combinations of special values.
    """
    types = jaxpr.in_types
    if len(types) > FEW_INPUTS or len(jaxpr.eqns) > FEW_INPUTS or not _is_simple(jaxpr):
        return None
    if any(not isinstance(t, ArrayType) or t.shape for t in types):
        return None
    b = Builder([array_type((LOOPED,), t.dtype) for t in types])
    try:
        return b.finish(b.emit(Scan(jaxpr, LOOPED, False, 0, 0), b.binders))
    except EffaxError:
        return None


FEW_INPUTS: Final = 4
"""The number of inputs and equations of a program that is tried in a loop."""


def in_branch(jaxpr: Jaxpr) -> Jaxpr | None:
    """Return the program in both branches of a conditional; None: impossible."""
    b = Builder([array_type((), "bool"), *jaxpr.in_types])
    try:
        return b.finish(b.emit(Cond((jaxpr, jaxpr)), b.binders))
    except EffaxError:
        return None


def without_literals(jaxpr: Jaxpr) -> Jaxpr | None:
    """Return the program with an input for each literal operand; None: it has none.

    Literals restrict a program to values at which a pass may be right: bounds that are in order,
    numbers that are not negative.
    """
    literals = [a for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Lit)]
    if not literals or not _is_simple(jaxpr):
        return None
    b = Builder([*jaxpr.in_types, *[a.type for a in literals]])
    inputs = iter(b.binders[len(jaxpr.binders) :])
    return _replayed(jaxpr, b, lambda _: next(inputs))


def with_other_literals(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the program with special values, and extreme integers, in the place of literals."""
    if not any(isinstance(a, Lit) for eqn in jaxpr.eqns for a in eqn.ins) or not _is_simple(jaxpr):
        return
    for seed in range(OTHER_LITERALS):
        rng = np.random.default_rng(seed)

        def other(a: Lit, rng: np.random.Generator = rng, seed: int = seed) -> Atom:
            values = special(a.type.dtype, extremes=False)
            # The last ones of integers are the ends: sums of two of them overflow.
            integer = family(a.type.dtype) in ("int", "uint")
            own = integer and seed < len(ENDS)
            value = values[ENDS[seed] if own else rng.integers(len(values))]
            return a if np.isnan(value) else lit(value.item(), a.type)

        made = _replayed(jaxpr, Builder(jaxpr.in_types), other)
        if made is not None:
            yield made


ENDS: Final = (-1, -2)
"""The places of the greatest and the least integer among special values."""

OTHER_LITERALS: Final = 5
"""The number of programs with other literals for each slice."""


def _replayed(jaxpr: Jaxpr, b: Builder, value: Callable[[Lit], Atom]) -> Jaxpr | None:
    """Return the program with another atom for each literal operand; None: it is ill-typed."""
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=False))
    try:
        for eqn in jaxpr.eqns:
            ins = [value(a) if isinstance(a, Lit) else env[a] for a in eqn.ins]
            env.update(zip(eqn.outs, b.emit(eqn.prim, ins), strict=True))
        return b.finish([env.get(a, a) for a in jaxpr.outs])
    except EffaxError:
        return None


def _is_simple(jaxpr: Jaxpr) -> bool:
    """Return whether no equation has an effect or a subjaxpr, which may not end."""
    return not any(eqn.effects or eqn.prim.subjaxprs() for eqn in jaxpr.eqns)


def with_other_parts(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the program with another part of a reference in one access: all of it, or a position.

    A pass may look at the reference that equations access, and forget at which index.
    """
    accesses = [
        i for i, eqn in enumerate(jaxpr.eqns) if isinstance(eqn.prim, Get | Swap | AddUpdate)
    ]
    if len(accesses) < 2 or len(jaxpr.eqns) > LONGEST:
        return
    for i in accesses[-MOST_ACCESSES:]:
        shape = jaxpr.eqns[i].ins[0].type.shape
        everything, rest = whole(shape), [Span(0, n) for n in shape[1:]]
        picks = (
            [Indexer((Pick(n), *rest)) for n in (0, shape[0] - 1)]
            if 0 not in (shape or (0,))
            else []
        )
        for indexer in dict.fromkeys([everything, *picks]):
            made = _accessing(jaxpr, i, indexer)
            if made is not None:
                yield made


MOST_ACCESSES: Final = 3
"""The number of accesses whose part is varied, the last ones."""


def _accessing(jaxpr: Jaxpr, place: int, indexer: Indexer) -> Jaxpr | None:
    """Return the program with another index of an access; None: it has that, or is ill-typed.

    The value that is stored is another input; so is what later equations use of its result.
    """
    eqn = jaxpr.eqns[place]
    prim = eqn.prim
    if not isinstance(prim, Get | Swap | AddUpdate) or prim.indexer == indexer:
        return None
    ref = eqn.ins[0].type
    part = ref.inner if isinstance(ref, RefType) else array_type(ref.shape, ref.dtype)
    stored = part.update(shape=indexed_shape(indexer, ref.shape, []))
    b = Builder([*jaxpr.in_types, *[v.type for v in eqn.outs], stored])
    *others, value = b.binders[len(jaxpr.binders) :]
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=False))
    results: list[Var] = []
    try:
        for i, one in enumerate(jaxpr.eqns):
            ins = [env.get(a, a) for a in one.ins]
            if i == place:
                operands = ins[:1] if isinstance(prim, Get) else [ins[0], value]
                results += b.emit(replace(prim, indexer=indexer), operands)
                env.update(zip(one.outs, others, strict=True))
            else:
                env.update(zip(one.outs, b.emit(one.prim, ins), strict=True))
        outs = [a for a in jaxpr.outs if a not in eqn.outs]
        shown = results if len(outs) < len(jaxpr.outs) else []
        return b.finish([*[env.get(a, a) for a in outs], *shown])
    except EffaxError:
        return None


def _may_lift(t: Type, first: Type) -> bool:
    return isinstance(t, ArrayType) and t.shape == first.shape and family(t.dtype) != "void"


def changed_slices(
    step: Callable[[Jaxpr], Jaxpr], pairs: Iterable[tuple[Jaxpr, Jaxpr]], most: int = MOST
) -> Iterator[Jaxpr]:
    """Yield the slices that a pass changes too, on long arrays and in loops of few iterations."""

    def changed(jaxpr: Jaxpr | None) -> list[Jaxpr]:
        return [] if jaxpr is None or step(jaxpr) == jaxpr else [jaxpr]

    looped = 0
    for jaxpr in slices_of(pairs)[:most]:
        yield from changed(jaxpr) or changed(in_branch(jaxpr))
        for other in with_other_parts(jaxpr):
            yield from changed(other) or changed(in_branch(other))
        for n in LENGTHS:
            yield from changed(with_length(jaxpr, n))
        for extreme in with_other_literals(jaxpr):
            yield from changed(extreme)
        for one in (jaxpr, without_literals(jaxpr)):
            if one is None:
                continue
            if one is not jaxpr:
                yield from changed(one)
            long = changed(lifted(one))
            if not long and looped < MOST_LOOPED:
                long = changed(in_loop(one))
                looped += bool(long)
            yield from long
