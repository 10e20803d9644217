"""The runs of the regions of an application, in sequence, as its primitive declares them.

A primitive that calls its one subjaxpr, selects one by an argument, repeats one a number of times
or repeats one while another holds is run a region at a time. Any other, such as a solver or
``shard_map``, is evaluated as one equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from effax.ir.primitive import Primitive, Region, Value
from effax.ir.prims.scan import element_type, element_view
from effax.ir.recursion import may_have_subjaxprs
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.types import Type


class Kind(Enum):
    """The ways in which regions are run."""

    CALL = "call"
    BRANCH = "branch"
    COUNTED = "counted loop"
    WHILE = "while loop"


class RunPlan(NamedTuple):
    """The way in which the regions of an equation are run.

    Attributes:
        kind: the way.
        regions: the regions; of a while loop, the predicate and the body.
        trips: the number of iterations of a counted loop.
        reverse: whether a counted loop takes the last part first.
        selector: the position of the operand that selects a branch.
        outs: the results of the equation.
    """

    kind: Kind
    regions: tuple[Region, ...]
    trips: int
    reverse: bool
    selector: int
    outs: tuple[Var, ...]

    @property
    def is_loop(self) -> bool:
        """True if the regions may run more than once."""
        return self.kind in (Kind.COUNTED, Kind.WHILE)


Stack = tuple["Stack", Sequence[Value]] | None
"""The results of earlier iterations, the last one first: a list that shares its tail."""


class RegionRun(NamedTuple):
    """One run of a region of an application.

    Attributes:
        plan: the way in which the regions are run.
        region: the number of the region.
        iteration: the number of iterations before this one.
        operands: the operands of the application, with the present values of carries.
        stacked: the results of the earlier iterations of a counted loop.
    """

    plan: RunPlan
    region: int
    iteration: int
    operands: tuple[Value, ...]
    stacked: Stack = None

    @property
    def jaxpr(self) -> Jaxpr:
        """The program that runs."""
        return self.plan.regions[self.region].jaxpr

    @property
    def element(self) -> int:
        """The position of the parts that this iteration of a counted loop takes."""
        plan = self.plan
        return plan.trips - 1 - self.iteration if plan.reverse else self.iteration

    @property
    def label(self) -> str:
        """The name of the run, in the path of an equation: ``branch 1``, ``iteration 3``."""
        match self.plan.kind:
            case Kind.CALL:
                return ""
            case Kind.BRANCH:
                return f"branch {self.region}"
            case Kind.WHILE:
                part = "predicate, " if self.region == 0 else ""
                return f"{part}iteration {self.iteration}"
            case Kind.COUNTED:
                at = f" on element {self.element}" if self.plan.reverse else ""
                return f"iteration {self.iteration}{at}"

    def arguments(self) -> list[Value]:
        """Return the values of the binders."""
        region, operands = self.plan.regions[self.region], self.operands
        if not region.parts:
            return [operands[a] for a in region.args]
        i = self.element
        return [
            element_view(operands[a], i) if k in region.parts else operands[a]
            for k, a in enumerate(region.args)
        ]


def begin(eqn: Eqn, operands: Sequence[Value]) -> RegionRun | list[Value] | None:
    """Return the first run of an application, or its results if there is none.

    None: the primitive is evaluated as one equation.
    """
    plan = plan_of(eqn)
    if plan is None:
        return None
    region = 0
    if plan.kind is Kind.BRANCH:
        region = min(max(int(operands[plan.selector]), 0), len(plan.regions) - 1)
    run = RegionRun(plan, region, 0, tuple(operands))
    return _counted_results(run) if plan.kind is Kind.COUNTED and plan.trips == 0 else run


def resume(run: RegionRun, outs: Sequence[Value]) -> RegionRun | list[Value]:
    """Return the run after ``run``, whose results are ``outs``, or the results of all."""
    plan = run.plan
    match plan.kind:
        case Kind.CALL | Kind.BRANCH:
            return _placed(plan, plan.regions[run.region], outs)
        case Kind.WHILE if run.region == 0:
            if outs[0]:
                return run._replace(region=1)
            body = plan.regions[1]
            return _placed(plan, body, [run.operands[c] for c in body.carry_to if c is not None])
        case Kind.WHILE:
            carried = _carried(run, outs)
            return RegionRun(plan, 0, run.iteration + 1, carried)
        case Kind.COUNTED:
            after = RegionRun(plan, 0, run.iteration + 1, _carried(run, outs), (run.stacked, outs))
            return after if after.iteration < plan.trips else _counted_results(after)


def _carried(run: RegionRun, outs: Sequence[Value]) -> tuple[Value, ...]:
    operands = list(run.operands)
    for c, value in zip(run.plan.regions[run.region].carry_to, outs, strict=True):
        if c is not None:
            operands[c] = value
    return tuple(operands)


def _placed(plan: RunPlan, region: Region, outs: Sequence[Value]) -> list[Value]:
    """Return the results of the equation, from those of a region."""
    found = dict(zip(region.results, outs, strict=True))
    return [found[j] for j in range(len(plan.outs))]


def _counted_results(run: RegionRun) -> list[Value]:
    """Return the carries and the stacked results of a counted loop."""
    (region,) = run.plan.regions
    rows: list[Sequence[Value]] = []
    rest = run.stacked
    while rest is not None:
        rest, outs = rest
        rows.append(outs)
    if not run.plan.reverse:
        rows.reverse()
    found: list[Value] = []
    for j, carry in enumerate(region.carry_to):
        if carry is not None:
            found.append(run.operands[carry])
            continue
        place = region.results[j]
        type_ = run.plan.outs[j if place is None else place].type
        stacked = np.empty(type_.shape, type_.dtype)
        for i, outs in enumerate(rows):
            stacked[i] = outs[j]
        found.append(stacked)
    return _placed(run.plan, region, found)


def plan_of(eqn: Eqn) -> RunPlan | None:
    """Return the way in which the regions of an equation are run, as its primitive declares it.

    None: it has no subjaxprs, or the declaration does not determine the runs.
    """
    prim = eqn.prim
    if not may_have_subjaxprs(prim):
        return None
    regions = prim.regions()
    kind = _kind(prim, regions)
    if kind is None or prim.bound_axes() or not all(_fits(r, eqn) for r in regions):
        return None
    first = regions[0]
    return RunPlan(
        kind, regions, first.trip_count or 0, first.reverse, prim.selector() or 0, eqn.outs
    )


def _kind(prim: Primitive, regions: Sequence[Region]) -> Kind | None:
    """Return the kind of runs that regions declare."""
    if not regions or len(regions) != len(prim.subjaxprs()):
        return None
    plain = not any(r.repeats or r.is_predicate or r.parts for r in regions)
    once = plain and all(r.trip_count == 1 for r in regions)
    if once and prim.selector() is not None:
        return Kind.BRANCH
    if len(regions) == 1 and not regions[0].is_predicate:
        counted = regions[0].repeats and regions[0].trip_count is not None
        return Kind.CALL if once else Kind.COUNTED if counted else None
    if [r.is_predicate for r in regions] == [True, False] and not any(r.parts for r in regions):
        return Kind.WHILE if None not in regions[1].carry_to else None
    return None


def _fits(region: Region, eqn: Eqn) -> bool:
    """Return whether a region takes the operands, and returns all results or none."""
    for k, (a, v) in enumerate(zip(region.args, region.jaxpr.binders, strict=True)):
        if not _same(v.type, eqn.ins[a].type, k in region.parts):
            return False
    if region.is_predicate:
        return True
    if sorted([j for j in region.results if j is not None]) != [*range(len(eqn.outs))]:
        return False
    stacked = [region.repeats and c is None for c in region.carry_to]
    return all(
        j is None or _same(a.type, eqn.outs[j].type, part)
        for a, j, part in zip(region.jaxpr.outs, region.results, stacked, strict=True)
    )


def _same(inner: Type, outer: Type, part: bool) -> bool:
    whole = element_type(outer) if part and outer.shape else outer
    return (inner.shape, inner.dtype) == (whole.shape, whole.dtype)
