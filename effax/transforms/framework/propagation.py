"""How a property of values spreads through a program: to results, and into references.

Three passes ask the same question. Which values have a tangent (jvp), which are batched (vmap),
which are unknown (partial evaluation)? Each follows data through equations and, what is special
here, into references: a reference that takes a marked value is marked, and so is all that is
read from it, also before, in a loop. The answer is the least fixpoint, found per program and
kept, so that nesting costs no more than size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from effax.effects import Accum, Write
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import EmptyRef, NewRef
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type

Mask = tuple[bool, ...]

NONE: frozenset[int] = frozenset()

REF_MAKERS: Final = (NewRef, EmptyRef)
"""The primitives that make a reference. To ask for the type is faster than ``isinstance``."""


def mentions_refs(jaxpr: Jaxpr) -> bool:
    """Whether an input of the program is a reference, or one is made in it."""
    return any(isinstance(v.type, RefType) for v in jaxpr.binders) or any(
        type(eqn[0]) in REF_MAKERS for eqn in jaxpr.eqns
    )


@dataclass(frozen=True)
class Property:
    """The property: how an equation that holds no programs passes it on.

    Attributes:
        outs: which results of a primitive are marked, for marked arguments.
        may_track: whether values of this type can be marked at all.
        control: whether a marked predicate marks everything that it decides.
        axis: a named axis along which marks begin: what uses it may give marked results also
            where no argument is marked.
        from_outside: whether what comes from the outside world is marked, whatever went there.
        by_rules: whether rules that a primitive holds decide, as they do where these will be put
            in its place, or the program that it holds.
    """

    outs: Callable[[Primitive, tuple[Type, ...], Mask], Mask]
    may_track: Callable[[Type], bool]
    control: bool
    axis: str | None = None
    from_outside: bool = False
    by_rules: bool = True


class Propagated(NamedTuple):
    """The least marking of a program that contains the given one.

    Attributes:
        ins: the inputs, with each reference that takes a marked value added.
        outs: the results.
        variables: the numbers of all marked variables.
    """

    ins: Mask
    outs: Mask
    variables: frozenset[int]


@memoize(maxsize=4096)
def propagate(
    jaxpr: Jaxpr, ins: Mask, property_: Property, fixed: frozenset[int] = NONE
) -> Propagated:
    """Follow marked inputs through ``jaxpr`` to the fixpoint.

    Args:
        jaxpr: the program.
        ins: which inputs are marked.
        property_: how marks spread.
        fixed: positions of references among the inputs that stay unmarked, whatever they take.
    """
    tracked = [False] * jaxpr.size
    for v, flag in zip(jaxpr.binders, ins, strict=True):
        tracked[v.id] = flag
    held = frozenset(jaxpr.binders[i].id for i in fixed)
    while _sweep(jaxpr, tracked, property_, held):
        pass
    variables = frozenset(i for i, flag in enumerate(tracked) if flag)
    grown = tuple(tracked[v.id] for v in jaxpr.binders)
    outs = tuple(isinstance(a, Var) and tracked[a.id] for a in jaxpr.outs)
    return Propagated(grown, outs, variables)


def _sweep(jaxpr: Jaxpr, tracked: list[bool], property_: Property, held: frozenset[int]) -> bool:
    """One pass over the equations. True if a reference was marked: earlier reads may change."""
    again = False
    for eqn in jaxpr.eqns:
        mask = tuple([type(a) is not Lit and tracked[a.id] for a in eqn.ins])
        begins = property_.axis and uses_axis(eqn.prim, property_.axis)
        if True not in mask and not begins and not (property_.from_outside and eqn.effects.host):
            continue
        fixed = positions_of(held, eqn) if held and eqn.effects else NONE
        grown, outs = propagate_eqn(eqn, mask, property_, fixed)
        for a, before, after in zip(eqn.ins, mask, grown, strict=True):
            # What a loop feeds back joins its argument inside of the loop only.
            if after and not before and isinstance(a.type, RefType) and not tracked[_id(a)]:
                tracked[_id(a)] = again = True
        for v, flag in zip(eqn.outs, outs, strict=True):
            if flag:
                tracked[v.id] = True
    return again


def uses_axis(prim: Primitive, name: str) -> bool:
    """Whether an application needs the axis of this name."""
    return any(axis.name == name for axis in prim.free_axes())


def _id(ref: Atom) -> int:
    assert isinstance(ref, Var), "a reference is a variable"
    return ref.id


def positions_of(variables: frozenset[int], eqn: Eqn) -> frozenset[int]:
    """The positions of these variables among the equation's arguments."""
    return frozenset(i for i, a in enumerate(eqn.ins) if isinstance(a, Var) and a.id in variables)


def propagate_eqn(
    eqn: Eqn, mask: Mask, property_: Property, fixed: frozenset[int] = NONE
) -> tuple[Mask, Mask]:
    """The marks of an equation's arguments (references may join) and of its results."""
    types = tuple([a.type for a in eqn.ins])
    if eqn.prim.subjaxprs() and eqn.prim.regions():
        grown, outs = propagate_call(eqn.prim, types, mask, property_, fixed)
        ruled = property_.by_rules and eqn.prim.has_own_rules
        return grown, property_.outs(eqn.prim, types, grown) if ruled else outs
    if eqn.effects:
        mask = _with_written(eqn, mask, property_, fixed)
    return mask, property_.outs(eqn.prim, types, mask)


def _with_written(eqn: Eqn, mask: Mask, property_: Property, fixed: frozenset[int]) -> Mask:
    changed = {e.ref for e in eqn.effects if isinstance(e, Write | Accum)} - fixed
    if not changed:
        return mask
    return tuple(
        has or (i in changed and property_.may_track(a.type))
        for i, (a, has) in enumerate(zip(eqn.ins, mask, strict=True))
    )


def propagate_call(
    prim: Primitive,
    types: tuple[Type, ...],
    mask: Mask,
    property_: Property,
    fixed: frozenset[int] = NONE,
) -> tuple[Mask, Mask]:
    """The closed marks of the arguments and results of a primitive that holds programs.

    What a loop feeds back joins the marks of its arguments, so the first part is also the mask
    under which the programs can be transformed. References at the positions ``fixed`` stay
    unmarked.
    """
    regions = prim.regions()
    ins = list(mask)
    outs = [False] * _n_results(regions)
    selector = prim.selector()
    decided = property_.control and selector is not None and mask[selector]
    while True:
        before = (tuple(ins), tuple(outs))
        for region in regions:
            decided = _enter(region, types, ins, outs, property_, fixed) or decided
        if decided:
            _mark_decided(regions, types, ins, outs, property_, fixed)
        if before == (tuple(ins), tuple(outs)):
            return before


def _n_results(regions: Sequence[Region]) -> int:
    return 1 + max((r for region in regions for r in region.results if r is not None), default=-1)


def _enter(
    region: Region,
    types: tuple[Type, ...],
    ins: list[bool],
    outs: list[bool],
    property_: Property,
    fixed: frozenset[int],
) -> bool:
    """Follow one region once; whether its marked result decides what runs."""
    held = frozenset(i for i, a in enumerate(region.args) if a in fixed) if fixed else NONE
    inside = propagate(region.jaxpr, tuple(ins[a] for a in region.args), property_, held)
    for a, flag in zip(region.args, inside.ins, strict=True):
        if flag and isinstance(types[a], RefType):
            ins[a] = True
    for j, flag in enumerate(inside.outs):
        result, feed = region.results[j], region.carry_to[j]
        if flag and result is not None:
            outs[result] = True
        if flag and feed is not None:
            ins[feed] = True
        # A loop without iterations gives back what it was given.
        if result is not None and feed is not None and ins[feed]:
            outs[result] = True
    return property_.control and region.is_predicate and inside.outs[0]


def _mark_decided(
    regions: Sequence[Region],
    types: tuple[Type, ...],
    ins: list[bool],
    outs: list[bool],
    property_: Property,
    fixed: frozenset[int],
) -> None:
    """A marked predicate marks every result, every fed back value and every written reference."""
    for region in regions:
        for result, feed in zip(region.results, region.carry_to, strict=True):
            if result is not None:
                outs[result] = True
            if feed is not None:
                ins[feed] = True
        for effect in region.jaxpr.effects:
            if isinstance(effect, Write | Accum):
                ref = region.args[effect.ref]
                if ref not in fixed and property_.may_track(types[ref]):
                    ins[ref] = True
