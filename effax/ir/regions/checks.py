"""Checks of declared regions, and the types of results that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate
from typing import Final

from effax.effects import Rule
from effax.ir.errors import BadRule, IllTyped, RefError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region, Typing
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.ir.regions.forms import region_effects
from effax.ir.syntax import Jaxpr
from effax.ir.types import PREDICATE, ArrayType, RefType, Type, array_type, ref_type

_SELECTORS: Final = ("bool", "int32")


@memoize(maxsize=1 << 12)
def typing_by_regions(prim: Primitive, types: tuple[Type, ...], others: bool = False) -> Typing:
    """Return the typing of an application that follows from the regions of a primitive.

    A carry has the type of its operand in the region; a result of each run of a loop is stacked; a
    result of branches is weak if it is in all of them. The effects are those of the regions.

    Args:
        prim: the primitive.
        types: the types of its operands.
        others: whether it may take arrays that no region binds.

    Raises:
        BadRule: the regions are not well formed, whatever the operands.
        IllTyped: the operands do not fit, or a carry changes its type.
        RefError: a region returns a reference.
    """
    check_declaration(prim)
    for region in prim.regions():
        check_region(prim, region, types)
    _check_selector(prim, types)
    bound = {a for region in prim.regions() for a in region.args}
    free = set(range(len(types))) - bound - {prim.selector()}
    if free and (not others or any(isinstance(types[i], RefType) for i in free)):
        raise IllTyped(
            f"{prim.name} has the wrong number of operands",
            expected=str(len(types) - len(free)),
            found=str(len(types)),
        )
    return Typing(_out_types(prim), region_effects(prim))


def check_declaration(prim: Primitive) -> None:
    """Raise BadRule unless the regions of a primitive are well formed, whatever the operands."""
    regions, nested = prim.regions(), prim.subjaxprs()
    if len(regions) != len(nested) or any(
        region.jaxpr is not jaxpr for region, jaxpr in zip(regions, nested, strict=True)
    ):
        raise BadRule(
            f"the regions of {prim.name} are not its subjaxprs",
            expected="one region for each program among the fields, in the order of the fields",
            found=f"{len(regions)} regions, {len(nested)} programs",
            remedy="reorder the fields or the regions, or override `subjaxprs` and "
            "`with_subjaxprs`",
        )
    for region in regions:
        for fault, expected, found in _faults(region):
            raise BadRule(f"{_named(prim, region)} {fault}", expected=expected, found=found)
    _check_results(prim)


def _named(prim: Primitive, region: Region) -> str:
    return f"{prim.name}: {region.name or 'a region'}"


def _faults(region: Region) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with a region by itself: the fault, what is expected, what is found."""
    jaxpr, n = region.jaxpr, region.trip_count
    if len(region.args) != len(jaxpr.binders):
        yield "binds another number of operands", f"{len(jaxpr.binders)}", f"{len(region.args)}"
    if not len(region.results) == len(region.carry_to) == len(jaxpr.outs):
        found = f"{len(region.results)} and {len(region.carry_to)}"
        yield "has not one entry a result", f"{len(jaxpr.outs)} results and carries", found
    if any(i < 0 for i in (*region.args, *region.carries)):
        yield "names a negative position", "positions of operands", f"{region.args}"
    bound = set(region.args)
    if not region.carries <= bound:
        found = f"{sorted(region.carries - bound)}"
        yield "carries to an operand that it does not bind", f"one of {sorted(bound)}", found
    carried = [c for c in region.carry_to if c is not None]
    if len(set(carried)) < len(carried):
        yield "carries two results to one operand", "a result for each carry", f"{carried}"
    if isinstance(n, int) and n < 0:
        yield "has a negative trip count", "at least 0", f"{n}"
    if not region.repeats and (carried or n not in (None, 1)):
        found = f"trip count {n}, {len(carried)} carries"
        yield "runs once and has carries or a trip count", "a loop that repeats", found
    refs = [a for a, v in zip(region.args, jaxpr.binders, strict=False) if _is_ref(v.type)]
    if len(set(refs)) < len(refs):
        yield "binds a reference twice", "different references", f"operands {refs}"
    if any(a in region.carries for a in refs):
        yield "carries a reference", "arrays; a reference keeps its place", f"operands {refs}"
    if region.is_predicate and [fits(t, PREDICATE) for t in jaxpr.out_types] != [True]:
        yield "does not return a predicate", str(PREDICATE), _listed(jaxpr.out_types)


def _is_ref(type_: Type) -> bool:
    return isinstance(type_, RefType)


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "no results"


def _check_results(prim: Primitive) -> None:
    """Raise BadRule unless regions return all results, branches each of them."""
    regions = prim.regions()
    found = [[r for r in region.results if r is not None] for region in regions]
    every = set[int]().union(*found)
    if every != set(range(len(every))):
        raise BadRule(
            f"the regions of {prim.name} do not return all results",
            expected=f"results 0 to {max(every)}",
            found=f"{sorted(every)}",
        )
    for region, own in zip(regions, found, strict=True):
        if len(set(own)) < len(own):
            raise BadRule(
                f"{_named(prim, region)} returns a result twice", "different results", f"{own}"
            )
        if prim.selector() is not None and len(own) < len(every):
            raise BadRule(
                f"{_named(prim, region)} does not return all results",
                expected=f"{len(every)} results of each branch",
                found=f"{sorted(own)}",
            )
        stacks = [
            j
            for j, (r, c) in enumerate(zip(region.results, region.carry_to, strict=True))
            if r is not None and c is None
        ]
        if stacks and region.repeats and region.trip_count is None:
            raise BadRule(
                f"{_named(prim, region)} returns a result of each of an unknown number of runs",
                expected="carries, or a trip count",
                found=f"result {stacks[0]} is not a carry",
                remedy="`repeats=False` declares a program that runs once, with a result that is "
                "not stacked",
            )


def check_region(prim: Primitive, region: Region, types: Sequence[Type]) -> None:
    """Raise IllTyped unless operands of these types fit a region, and its carries keep theirs."""
    jaxpr = region.jaxpr
    if region.args and max(region.args) >= len(types):
        raise IllTyped(
            f"{_named(prim, region)} takes more operands than there are",
            expected=f"at least {1 + max(region.args)}",
            found=str(len(types)),
        )
    for i, (a, v) in enumerate(zip(region.args, jaxpr.binders, strict=True)):
        part = i in region.parts
        wanted = stacked(v.type, region.trip_count, types[a].shape) if part else v.type
        if not fits(types[a], wanted):
            raise IllTyped(
                f"{_named(prim, region)}: operand {a} does not fit {jaxpr.name_of(i)}",
                expected=str(wanted),
                found=str(types[a]),
            )
    for j, type_ in enumerate(jaxpr.out_types):
        if isinstance(type_, RefType):
            what = f"{_named(prim, region)}: result {j} is a reference"
            raise RefError.against(Rule.ESCAPE, what, "an array", str(type_))
        carry = region.carry_to[j]
        first = None if carry is None else jaxpr.binders[region.args.index(carry)].type
        if first is not None and not fits(type_, first):
            raise IllTyped(
                f"{_named(prim, region)}: the carry of operand {carry} changes its type",
                expected=str(first),
                found=str(type_),
                remedy="convert the result, or the initial carry",
            )


def stacked(type_: Type, trip_count: int | None, shape: Sequence[int] = ()) -> Type:
    """Return the type whose elements along the leading axis are of ``type_``, one for each run.

    ``shape`` has the length of the axis if the trip count is unknown.
    """
    n = trip_count if trip_count is not None else (*shape, 0)[0]
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=(n, *type_.shape)), type_.kind)
    return array_type((n, *type_.shape), type_.dtype, type_.weak)


def _check_selector(prim: Primitive, types: Sequence[Type]) -> None:
    selector = prim.selector()
    if selector is None:
        return
    type_ = types[selector] if 0 <= selector < len(types) else None
    if not isinstance(type_, ArrayType) or type_.shape or type_.dtype.name not in _SELECTORS:
        raise IllTyped(
            f"{prim.name} takes a scalar selector", expected="bool[] or i32[]", found=str(type_)
        )
    n = len(prim.regions())
    if not n or (type_.dtype.name == "bool" and n != 2):
        raise IllTyped(f"{prim.name} has the wrong number of branches", found=str(n))


def _out_types(prim: Primitive) -> tuple[Type, ...]:
    found: dict[int, list[Type]] = {}
    for region in prim.regions():
        for j, result in enumerate(region.results):
            if result is not None:
                found.setdefault(result, []).append(_result_type(region, j))
    return tuple([reduce(_joined, found[r]) for r in sorted(found)])


def _result_type(region: Region, j: int) -> Type:
    carry, type_ = region.carry_to[j], region.jaxpr.out_types[j]
    if carry is not None:
        return region.jaxpr.binders[region.args.index(carry)].type
    return stacked(type_, region.trip_count) if region.repeats else type_


def _joined(first: Type, second: Type) -> Type:
    """Return the type of a result of one of two regions. Raise IllTyped if they differ."""
    if not fits(first, second):
        raise IllTyped("regions return results of different types", str(first), str(second))
    return first if first is second or not isinstance(first, ArrayType) else first.strong()


def operand_types(prim: Primitive) -> dict[int, Type]:
    """Return the types of the operands that regions bind, by position."""
    return {
        a: stacked(v.type, region.trip_count) if i in region.parts else v.type
        for region in prim.regions()
        for i, (a, v) in enumerate(zip(region.args, region.jaxpr.binders, strict=True))
    }


def restricted(region: Region, jaxpr: Jaxpr, ins: Sequence[bool], outs: Sequence[bool]) -> Region:
    """Return a region of a primitive with fewer operands and results.

    Args:
        region: the region.
        jaxpr: its program, on the binders and results that are kept; results of which nothing
            becomes are kept only if all are.
        ins: whether each operand of the primitive is kept.
        outs: whether each result of the primitive is kept.
    """
    at = _positions(ins)
    to = _positions(outs)
    binders = [i for i, a in enumerate(region.args) if ins[a]]
    every = len(jaxpr.outs) == len(region.results)
    kept = [
        (to[r] if r is not None and outs[r] else None, at[c] if c is not None and ins[c] else None)
        for r, c in zip(region.results, region.carry_to, strict=True)
        if every or (r is not None and outs[r]) or (c is not None and ins[c]) or region.is_predicate
    ]
    return region._replace(
        jaxpr=jaxpr,
        args=tuple([at[region.args[i]] for i in binders]),
        results=tuple([r for r, _ in kept]),
        carry_to=tuple([c for _, c in kept]),
        parts=frozenset([k for k, i in enumerate(binders) if i in region.parts]),
    )


def _positions(kept: Sequence[bool]) -> list[int]:
    return [0, *accumulate(kept)]


def with_more_operands(region: Region, jaxpr: Jaxpr, n: int, at: int) -> Region:
    """Return a region that takes ``n`` more operands whole, as its first inputs.

    ``at`` is their first position among the operands of the primitive.
    """
    return region._replace(
        jaxpr=jaxpr,
        args=(*range(at, at + n), *[a + n if a >= at else a for a in region.args]),
        carry_to=tuple([c if c is None or c < at else c + n for c in region.carry_to]),
        parts=frozenset([i + n for i in region.parts]),
    )
