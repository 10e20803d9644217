"""The program that regions of a common form define: a call, a loop or a selection.

A primitive with one region of a static trip count, say, is a ``scan``::

    repeat[jaxpr={ lambda ; k c. ... in (d,) } times=3] k c

    scan[jaxpr={ lambda ; k c. ... in (d,) } length=3 n_consts=1 n_carry=1] k c
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.effects import Read
from effax.ir.build import Builder
from effax.ir.errors import BadRule
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import Cond, Scan, While
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import Type

Place = tuple[int, bool]
"""The position of an operand, and whether each run takes a part of it."""


@memoize(maxsize=1 << 10)
def program_by_regions(prim: Primitive, types: tuple[Type, ...]) -> Jaxpr:
    """Return the program that the regions of a primitive define, on operands of these types.

    - One region that runs once is a call: the program is its jaxpr.
    - One region with a trip count is a ``scan``.
    - A predicate and a region that repeats are a ``while``.
    - Regions with a selector are a ``cond``.

    Raises:
        BadRule: the regions are of another form.
    """
    b = Builder(types)
    ins = b.binders
    regions = prim.regions()
    selector = prim.selector()
    tests = [r for r in regions if r.is_predicate]
    loops = [r for r in regions if r.repeats and not r.is_predicate]
    if selector is not None and not tests and not loops:
        return b.finish(_selected(b, regions, selector, ins))
    if len(regions) == 1 and not regions[0].repeats:
        return b.finish(_called(b, regions[0], ins))
    if len(regions) == 1 and loops and loops[0].trip_count is not None:
        return b.finish(_scanned(b, loops[0], loops[0].trip_count, ins))
    if len(regions) == 2 and len(tests) == len(loops) == 1 and not loops[0].parts:
        return b.finish(_while(b, tests[0], loops[0], ins))
    raise BadRule(
        f"the regions of {prim.name} are no call, no loop and no selection",
        expected="one region with a trip count; a predicate and a body; or branches and a selector",
        found=", ".join([r.name or "a region" for r in regions]),
        remedy="override `function`, which defines the primitive on traced arrays",
    )


@memoize(maxsize=1 << 10)
def results_by_regions(prim: Primitive, types: tuple[Type, ...]) -> tuple[Jaxpr, tuple[int, ...]]:
    """Return the program of the results that one region each defines by itself, and their numbers.

    These are the results of a region that runs once, or as often as its trip count, if no other
    region returns them. There are none if a region changes contents of references, has side
    effects, or decides how often others run.
    """
    b = Builder(types)
    regions = prim.regions()
    declared = [r for region in regions for r in region.results if r is not None]
    found: dict[int, Atom] = {}
    pure = all(isinstance(e, Read) for region in regions for e in region.effects)
    closed = not pure or prim.selector() is not None or any(r.is_predicate for r in regions)
    for region in regions if not closed else ():
        if not region.repeats:
            outs = _called(b, region, b.binders)
        elif region.trip_count is not None:
            outs = _scanned(b, region, region.trip_count, b.binders)
        else:
            continue
        found.update(zip(sorted(r for r in region.results if r is not None), outs, strict=True))
    kept = tuple([r for r in sorted(found) if declared.count(r) == 1])
    return b.finish([found[r] for r in kept]), kept


def _called(b: Builder, region: Region, ins: Sequence[Var]) -> list[Atom]:
    outs = b.inline_jaxpr(region.jaxpr, [ins[a] for a in region.args])
    return _in_order(region, outs)


def _in_order(region: Region, outs: Sequence[Atom]) -> list[Atom]:
    """Return the results of a region in the order of those of the primitive."""
    found = {r: out for r, out in zip(region.results, outs, strict=True) if r is not None}
    return [found[r] for r in sorted(found)]


def _selected(
    b: Builder, regions: Sequence[Region], selector: int, ins: Sequence[Var]
) -> Sequence[Atom]:
    places = [*dict.fromkeys([(a, False) for region in regions for a in region.args])]
    n = 1 + max((r for region in regions for r in region.results if r is not None), default=-1)
    branches = [_on(region, places, ins, region.results, range(n)) for region in regions]
    return b.emit(Cond(tuple(branches)), [ins[selector], *[ins[a] for a, _ in places]])


class _Loop(NamedTuple):
    """The operands of a loop, and the results of its body in the same order."""

    consts: list[Place]
    carry: list[Place]
    xs: list[Place]
    ys: list[int]
    """The positions of results of the body that are stacked."""

    @property
    def places(self) -> list[Place]:
        """All operands in order."""
        return [*self.consts, *self.carry, *self.xs]


def _loop(region: Region, others: Sequence[int] = ()) -> _Loop:
    carries = [c for c in region.carry_to if c is not None]
    places = dict.fromkeys([(a, i in region.parts) for i, a in enumerate(region.args)])
    consts = [(a, False) for a, part in places if not part and a not in carries]
    consts += [(a, False) for a in others if a not in region.args]
    stacks = zip(region.results, region.carry_to, strict=True)
    return _Loop(
        consts,
        [(c, False) for c in carries],
        [place for place in places if place[1]],
        [j for j, (r, c) in enumerate(stacks) if r is not None and c is None],
    )


def _scanned(b: Builder, region: Region, n: int, ins: Sequence[Var]) -> list[Atom]:
    loop = _loop(region)
    order = [*[j for j, c in enumerate(region.carry_to) if c is not None], *loop.ys]
    body = _on(region, loop.places, ins, range(len(region.results)), order)
    prim = Scan(body, n, region.reverse, len(loop.consts), len(loop.carry))
    outs = b.emit(prim, [ins[a] for a, _ in loop.places])
    return _placed(region, order, outs)


def _while(b: Builder, test: Region, region: Region, ins: Sequence[Var]) -> list[Atom]:
    loop = _loop(region, test.args)
    order = [j for j, c in enumerate(region.carry_to) if c is not None]
    cond = _on(test, loop.places, ins, (0,), (0,))
    body = _on(region, loop.places, ins, range(len(region.results)), order)
    outs = b.emit(While(cond, body, len(loop.consts)), [ins[a] for a, _ in loop.places])
    return _placed(region, order, outs)


def _placed(region: Region, order: Sequence[int], outs: Sequence[Atom]) -> list[Atom]:
    """Return the results of a loop that returns the results ``order`` of its region."""
    found = {
        r: out for j, out in zip(order, outs, strict=True) if (r := region.results[j]) is not None
    }
    return [found[r] for r in sorted(found)]


def _on(
    region: Region,
    places: Sequence[Place],
    ins: Sequence[Var],
    labels: Sequence[int | None],
    order: Sequence[int],
) -> Jaxpr:
    """Return the program of a region on other inputs, with its results in another order.

    Args:
        region: the region.
        places: the operands that are the inputs.
        ins: the operands of the primitive.
        labels: the number of each result of the region.
        order: the numbers of the results to return.
    """
    jaxpr = region.jaxpr
    own = [(a, i in region.parts) for i, a in enumerate(region.args)]
    if own == [*places] and [*labels] == [*order]:
        return jaxpr
    inside = {place: v.type for place, v in zip(own, jaxpr.binders, strict=True)}
    b = Builder([inside.get(place, ins[place[0]].type) for place in places])
    env = dict(zip(places, b.binders, strict=True))
    outs = b.inline_jaxpr(jaxpr, [env[place] for place in own])
    found = dict(zip(labels, outs, strict=True))
    return b.finish([found[j] for j in order])
