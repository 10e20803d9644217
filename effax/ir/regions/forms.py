"""Regions: the common forms, and the effects that an application of a primitive has by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from effax.effects import NO_EFFECTS, ArgIndex, Row
from effax.ir.errors import BadRule
from effax.ir.primitive import Primitive, Region
from effax.ir.syntax import Jaxpr


def call_region(jaxpr: Jaxpr, name: str = "body") -> Region:
    """Return the region of a call: all operands, all results, once.

    ::

        >>> from effax.ir import call_region, parse
        >>> call_region(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b, a) }")).results
        (0, 1)
    """
    outs = tuple(range(len(jaxpr.outs)))
    args = tuple(range(len(jaxpr.binders)))
    return Region(jaxpr, args, outs, (None,) * len(outs), repeats=False, trip_count=1, name=name)


def loop_region(
    body: Jaxpr,
    trip_count: int | None,
    n_consts: int | None = None,
    n_carry: int | None = None,
    reverse: bool = False,
) -> Region:
    """Return the region of a loop, ``(*consts, *carry, *xs) -> (*carry, *ys)``.

    The operands are constants of all runs, carries, and arrays or references of which each run
    takes one element along the leading axis. The results are the carries, then stacks of what each
    run returns::

        >>> from effax.ir import loop_region, parse
        >>> body = parse("{ lambda ; k:f32[] c:f32[]. let d:f32[] = mul k c in (d,) }")
        >>> region = loop_region(body, 3)
        >>> sorted(region.carries), sorted(region.invariant)
        ([1], [0])

    Args:
        body: the program of one run.
        trip_count: the number of runs; None if values decide it.
        n_consts: the number of constants; None if there are no ``xs``.
        n_carry: the number of carries; None if all results are carries.
        reverse: whether the first run takes the last elements.
    """
    args, outs = range(len(body.binders)), range(len(body.outs))
    carried = len(outs) if n_carry is None else n_carry
    first = len(args) - carried if n_consts is None else n_consts
    carry_to = (*range(first, first + carried), *[None] * (len(outs) - carried))
    parts = frozenset(args[max(0, first + carried) :])
    once = (tuple(args), tuple(outs), carry_to)
    return Region(body, *once, False, True, parts, trip_count, "body", reverse)


def while_regions(cond: Jaxpr, body: Jaxpr) -> tuple[Region, Region]:
    """Return the regions of a loop on a predicate, ``(*consts, *carry) -> carry``.

    Both programs take constants and carries. The body runs as long as the result of ``cond`` is
    true, and returns the carries of the next run.
    """
    args = tuple(range(len(cond.binders)))
    test = Region(cond, args, (None,), (None,), is_predicate=True, name="cond")
    return test, loop_region(body, None)


def branch_regions(branches: Sequence[Jaxpr]) -> tuple[Region, ...]:
    """Return the regions of a selection, ``(index, *operands) -> results of branch index``.

    Operand 0 is the selector; all branches take the others.
    """
    return tuple(
        Region(
            branch,
            tuple(range(1, 1 + len(branch.binders))),
            tuple(range(len(branch.outs))),
            (None,) * len(branch.outs),
            repeats=False,
            trip_count=1,
            name=f"branch {i}",
        )
        for i, branch in enumerate(branches)
    )


def region_names(prim: Primitive) -> tuple[str, ...]:
    """Return a name for each subjaxpr: that of its region, or its number."""
    regions, n = prim.regions(), len(prim.subjaxprs())
    names = [r.name for r in regions] if len(regions) == n else [""] * n
    return tuple([name or f"program {i}" for i, name in enumerate(names)])


def check_fields(prim: Primitive) -> None:
    """Raise BadRule if a program with effects is a field of a primitive, and none of its subjaxprs.

    Passes would not see it, and its effects would be no effects of an application.
    """
    owner: object = prim
    if prim.defers_effects or not is_dataclass(owner):
        return
    for field in fields(owner):
        value: object = getattr(prim, field.name)
        for x in value if isinstance(value, tuple) else (value,):
            if not isinstance(x, Jaxpr) or not x.effects.effects:
                continue
            if not any(x is jaxpr for jaxpr in prim.subjaxprs()):
                raise BadRule(
                    f"{prim.name} has a program with effects that is none of its subjaxprs",
                    expected=f"`{field.name}` among `subjaxprs`, with a region",
                    found=f"a program with {x.effects}",
                    remedy="derive the class from `effax.extend.RegionPrimitive`",
                )


def region_effects(prim: Primitive) -> Row[ArgIndex]:
    """Return the effects of the subjaxprs of a primitive, over its arguments.

    Raises:
        BadRule: a subjaxpr has effects, and no region declares on which arguments.
    """
    nested = prim.subjaxprs()
    if not any(jaxpr.effects.effects for jaxpr in nested):
        return NO_EFFECTS
    found: Row[ArgIndex] = NO_EFFECTS
    regions = prim.regions()
    for region in regions:
        own = region.effects
        found = found if own == found else found.join(own) if found.effects else own
    for jaxpr in nested if not prim.defers_effects else ():
        if jaxpr.effects.effects and not any(region.jaxpr is jaxpr for region in regions):
            raise BadRule(
                f"{prim.name} runs a subjaxpr with effects that no region declares",
                expected="`regions`, which bind its references to arguments",
                found=f"a subjaxpr with {jaxpr.effects}",
                remedy="derive the class from `effax.extend.RegionPrimitive`",
            )
    return found
