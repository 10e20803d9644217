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
from effax.ir.memo import remembered
from effax.ir.primitive import Primitive, Region
from effax.ir.prims.refs import EmptyRef, NewRef
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
class Flow:
    """The property: how an equation that holds no programs passes it on.

    Attributes:
        outs: which results of a primitive are marked, for marked arguments.
        may_mark: whether values of this type can be marked at all.
        control: whether a marked predicate marks everything that it decides.
        axis: a named axis along which marks begin: what uses it may give marked results also
            where no argument is marked.
        from_outside: whether what comes from the outside world is marked, whatever went there.
        by_rules: whether rules that a primitive holds decide, as they do where these will be put
            in its place, or the program that it holds.
    """

    outs: Callable[[Primitive, tuple[Type, ...], Mask], Mask]
    may_mark: Callable[[Type], bool]
    control: bool
    axis: str | None = None
    from_outside: bool = False
    by_rules: bool = True


class Spread(NamedTuple):
    """The least marking of a program that contains the given one.

    Attributes:
        ins: the inputs, with each reference that takes a marked value added.
        outs: the results.
        variables: the numbers of all marked variables.
    """

    ins: Mask
    outs: Mask
    variables: frozenset[int]


@remembered(maxsize=4096)
def spread(jaxpr: Jaxpr, ins: Mask, flow: Flow, fixed: frozenset[int] = NONE) -> Spread:
    """Follow marked inputs through ``jaxpr`` to the fixpoint.

    Args:
        jaxpr: the program.
        ins: which inputs are marked.
        flow: how marks spread.
        fixed: positions of references among the inputs that stay unmarked, whatever they take.
    """
    marked = [False] * jaxpr.size
    for v, flag in zip(jaxpr.binders, ins, strict=True):
        marked[v.id] = flag
    held = frozenset(jaxpr.binders[i].id for i in fixed)
    while _sweep(jaxpr, marked, flow, held):
        pass
    variables = frozenset(i for i, flag in enumerate(marked) if flag)
    grown = tuple(marked[v.id] for v in jaxpr.binders)
    outs = tuple(isinstance(a, Var) and marked[a.id] for a in jaxpr.outs)
    return Spread(grown, outs, variables)


def _sweep(jaxpr: Jaxpr, marked: list[bool], flow: Flow, held: frozenset[int]) -> bool:
    """One pass over the equations. True if a reference was marked: earlier reads may change."""
    again = False
    for eqn in jaxpr.eqns:
        mask = tuple([type(a) is not Lit and marked[a.id] for a in eqn.ins])
        begins = flow.axis and uses_axis(eqn.prim, flow.axis)
        if True not in mask and not begins and not (flow.from_outside and eqn.effects.host):
            continue
        fixed = positions_of(held, eqn) if held and eqn.effects else NONE
        grown, outs = spread_eqn(eqn, mask, flow, fixed)
        for a, before, after in zip(eqn.ins, mask, grown, strict=True):
            # What a loop feeds back joins its argument inside of the loop only.
            if after and not before and isinstance(a.type, RefType) and not marked[_id(a)]:
                marked[_id(a)] = again = True
        for v, flag in zip(eqn.outs, outs, strict=True):
            if flag:
                marked[v.id] = True
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


def spread_eqn(eqn: Eqn, mask: Mask, flow: Flow, fixed: frozenset[int] = NONE) -> tuple[Mask, Mask]:
    """The marks of an equation's arguments (references may join) and of its results."""
    types = tuple([a.type for a in eqn.ins])
    if eqn.prim.subjaxprs() and eqn.prim.regions():
        grown, outs = spread_call(eqn.prim, types, mask, flow, fixed)
        ruled = flow.by_rules and eqn.prim.has_own_rules
        return grown, flow.outs(eqn.prim, types, grown) if ruled else outs
    if eqn.effects:
        mask = _with_written(eqn, mask, flow, fixed)
    return mask, flow.outs(eqn.prim, types, mask)


def _with_written(eqn: Eqn, mask: Mask, flow: Flow, fixed: frozenset[int]) -> Mask:
    changed = {e.ref for e in eqn.effects if isinstance(e, Write | Accum)} - fixed
    if not changed:
        return mask
    return tuple(
        has or (i in changed and flow.may_mark(a.type))
        for i, (a, has) in enumerate(zip(eqn.ins, mask, strict=True))
    )


def spread_call(
    prim: Primitive,
    types: tuple[Type, ...],
    mask: Mask,
    flow: Flow,
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
    decided = flow.control and selector is not None and mask[selector]
    while True:
        before = (tuple(ins), tuple(outs))
        for region in regions:
            decided = _enter(region, types, ins, outs, flow, fixed) or decided
        if decided:
            _mark_decided(regions, types, ins, outs, flow, fixed)
        if before == (tuple(ins), tuple(outs)):
            return before


def _n_results(regions: Sequence[Region]) -> int:
    return 1 + max((r for region in regions for r in region.results if r is not None), default=-1)


def _enter(
    region: Region,
    types: tuple[Type, ...],
    ins: list[bool],
    outs: list[bool],
    flow: Flow,
    fixed: frozenset[int],
) -> bool:
    """Follow one region once; whether its marked result decides what runs."""
    held = frozenset(i for i, a in enumerate(region.args) if a in fixed) if fixed else NONE
    inside = spread(region.jaxpr, tuple(ins[a] for a in region.args), flow, held)
    for a, flag in zip(region.args, inside.ins, strict=True):
        if flag and isinstance(types[a], RefType):
            ins[a] = True
    for j, flag in enumerate(inside.outs):
        result, feed = region.results[j], region.feeds[j]
        if flag and result is not None:
            outs[result] = True
        if flag and feed is not None:
            ins[feed] = True
        # A loop without iterations gives back what it was given.
        if result is not None and feed is not None and ins[feed]:
            outs[result] = True
    return flow.control and region.decides and inside.outs[0]


def _mark_decided(
    regions: Sequence[Region],
    types: tuple[Type, ...],
    ins: list[bool],
    outs: list[bool],
    flow: Flow,
    fixed: frozenset[int],
) -> None:
    """A marked predicate marks every result, every fed back value and every written reference."""
    for region in regions:
        for result, feed in zip(region.results, region.feeds, strict=True):
            if result is not None:
                outs[result] = True
            if feed is not None:
                ins[feed] = True
        for effect in region.jaxpr.effects:
            if isinstance(effect, Write | Accum):
                ref = region.args[effect.ref]
                if ref not in fixed and flow.may_mark(types[ref]):
                    ins[ref] = True
