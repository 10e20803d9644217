"""Count the work of a program: bottom up for one run of each subjaxpr, then top down by runs.

Each distinct subjaxpr is visited once, so that the time is linear in the size of the program,
however deep its subjaxprs are nested and shared. A loop multiplies by its trip count; of branches,
the one with the most operations counts (of equal ones, that with the most bytes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from effax.ir.analysis.cost.memory import Memory
from effax.ir.analysis.cost.record import Cost, LoopCost, ProgramCost, WorkTable
from effax.ir.analysis.cost.trips import trip_count
from effax.ir.analysis.queries import PathStep, Place, steps_into
from effax.ir.errors import BadArgument
from effax.ir.primitive import Region
from effax.ir.prims import Swap
from effax.ir.recursion import postorder
from effax.ir.source import SavedSource, Source
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.work import NO_WORK, Work, total_bytes


class Applied(NamedTuple):
    """An equation: its own work, and how often it runs each subjaxpr.

    Attributes:
        work: the work apart from that of subjaxprs.
        runs: subjaxprs with their numbers of runs.
        loop: the work of one iteration, if the trip count is unknown.
    """

    work: Work
    runs: tuple[tuple[Jaxpr, int], ...] = ()
    loop: Work | None = None


class Counts:
    """The work of a program and of its subjaxprs.

    Attributes:
        programs: the program and its subjaxprs, each after those that are nested in it.
        each: the work of one run, by the id of the program.
        applications: its equations, by the id of the program.
        runs: how often it runs in one run of the whole program, by the id of the program.
    """

    def __init__(self, jaxpr: Jaxpr, trips: int | None) -> None:
        self.trips = trips
        self.programs: list[Jaxpr] = postorder(jaxpr)
        self.each: dict[int, Work] = {}
        self.applications: dict[int, list[Applied]] = {}
        for program in self.programs:
            self._count(program)
        self.runs: dict[int, int] = dict.fromkeys(map(id, self.programs), 0)
        self.runs[id(jaxpr)] = 1
        for program in reversed(self.programs):
            for application in self.applications[id(program)]:
                for inner, count in application.runs:
                    self.runs[id(inner)] += count * self.runs[id(program)]

    def _count(self, jaxpr: Jaxpr) -> None:
        used = {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
        used.update([a.id for a in jaxpr.outs if isinstance(a, Var)])
        total, found = NO_WORK, []
        for eqn in jaxpr.eqns:
            application = self._application(eqn, used)
            total += application.work
            for inner, count in application.runs:
                total += self.each[id(inner)] * count
            found.append(application)
        self.each[id(jaxpr)] = total
        self.applications[id(jaxpr)] = found

    def _application(self, eqn: Eqn, used: set[int]) -> Applied:
        work = work_of(eqn, used)
        regions = eqn.prim.regions()
        if not regions:
            return Applied(work, tuple([(inner, 1) for inner in eqn.prim.runs()]))
        if eqn.prim.selector() is not None:
            most = max(regions, key=lambda region: _rank(self.each[id(region.jaxpr)]))
            return Applied(work, ((most.jaxpr, 1),))
        return self._repeated(eqn, regions, work)

    def _repeated(self, eqn: Eqn, regions: Sequence[Region], work: Work) -> Applied:
        """Count the regions of a call or of a loop."""
        fixed = [region.trip_count if region.repeats else 1 for region in regions]
        if None not in fixed:
            runs = [(r.jaxpr, n) for r, n in zip(regions, fixed, strict=True) if n is not None]
            return Applied(work, tuple(runs))
        known = trip_count(eqn)
        trips = self.trips if known is None else known
        # A condition is tested once more than the body runs.
        counted = tuple([(r.jaxpr, (trips or 0) + r.is_predicate) for r in regions])
        if known is not None:
            return Applied(work, counted)
        each = sum([self.each[id(r.jaxpr)] for r in regions], NO_WORK)
        return Applied(work, counted, each)


def work_of_equations(jaxpr: Jaxpr) -> tuple[Work, dict[tuple[int, int], Work]]:
    """Return the work of a program, and that of each equation with its subjaxprs, in all runs.

    The keys are the id of the program that contains the equation, and its position there.

    Raises:
        BadArgument: an argument has a symbolic size.
    """
    _check(jaxpr, None)
    counts = Counts(jaxpr, None)
    found: dict[tuple[int, int], Work] = {}
    for program in counts.programs:
        runs = counts.runs[id(program)]
        for i, application in enumerate(counts.applications[id(program)]):
            inner = [counts.each[id(p)] * n for p, n in application.runs]
            found[id(program), i] = sum(inner, application.work) * runs
    return counts.each[id(jaxpr)], found


def work_of(eqn: Eqn, used: set[int]) -> Work:
    """Return the work of an equation without its subjaxprs, where these variables are used."""
    outs = [v.type for v in eqn.outs]
    if isinstance(eqn.prim, Swap) and eqn.outs[0].id not in used:
        # A store does not read the old contents.
        outs = []
    return eqn.prim.work([a.type for a in eqn.ins], outs)


def _rank(work: Work) -> tuple[int, int]:
    return (work.operations, work.bytes_accessed)


def count_cost(jaxpr: Jaxpr, trips: int | None = None) -> Cost:
    """Return the cost of one run of a program, in time linear in its size.

    Args:
        jaxpr: the program.
        trips: the trip count that is assumed for each loop whose own is unknown; None: such a loop
            counts the first test of its condition, and the cost is a lower bound.

    Raises:
        BadArgument: ``trips`` is negative, or an argument has a symbolic size.
    """
    _check(jaxpr, trips)
    counts = Counts(jaxpr, trips)
    paths = _paths(jaxpr)
    by_primitive, by_line = _tables(counts)
    memory = Memory()
    return Cost(
        counts.each[id(jaxpr)],
        WorkTable(by_primitive),
        WorkTable(by_line),
        tuple([_program(p, counts, path) for p, path in paths if path]),
        tuple([loop for p, path in paths for loop in _loops(p, counts, path)]),
        total_bytes(jaxpr.in_types),
        total_bytes(jaxpr.out_types),
        memory.whole(jaxpr),
        tuple(memory.live_at_peak(jaxpr)),
    )


def _check(jaxpr: Jaxpr, trips: int | None) -> None:
    if trips is not None and trips < 0:
        raise BadArgument("cost: trips is negative", expected="at least 0", found=str(trips))
    for i, type_ in enumerate(jaxpr.in_types):
        if any(map(is_symbolic_dim, type_.shape)):
            raise BadArgument(
                f"cost: {jaxpr.name_of(i)} has a symbolic size",
                expected="sizes that are numbers",
                found=str(type_),
                remedy="pass arguments, or types, of concrete sizes",
            )


Path = tuple[PathStep, ...]


def _paths(jaxpr: Jaxpr) -> list[tuple[Jaxpr, Path]]:
    """Return the distinct programs in program order, each with the path of its first occurrence."""
    found: list[tuple[Jaxpr, Path]] = []
    seen: set[int] = set()
    waiting: list[tuple[Jaxpr, Path]] = [(jaxpr, ())]
    while waiting:
        program, path = waiting.pop()
        if id(program) in seen:
            continue
        seen.add(id(program))
        found.append((program, path))
        inner: list[tuple[Jaxpr, Path]] = []
        for i, eqn in enumerate(program.eqns):
            if nested := eqn.prim.subjaxprs():
                steps = steps_into(Place(path, program, i))
                inner += [(sub, (*path, s)) for sub, s in zip(nested, steps, strict=True)]
        waiting += reversed(inner)
    return found


def _program(jaxpr: Jaxpr, counts: Counts, path: Path) -> ProgramCost:
    lines = Lines()
    line = next(filter(None, [lines.of(eqn.source) for eqn in jaxpr.eqns[:8]]), "")
    name = "/".join(map(str, path))
    return ProgramCost(name, counts.runs[id(jaxpr)], counts.each[id(jaxpr)], line)


def _loops(jaxpr: Jaxpr, counts: Counts, path: Path) -> list[LoopCost]:
    lines = Lines()
    return [
        LoopCost(str(Place(path, jaxpr, i)), a.loop, lines.of(jaxpr.eqns[i].source), counts.trips)
        for i, a in enumerate(counts.applications[id(jaxpr)])
        if a.loop is not None
    ]


class Lines:
    """Source lines as text, each found once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str] = {}

    def of(self, source: Source | SavedSource | None) -> str:
        """Return ``file:line``, or an empty text."""
        if source is None:
            return ""
        if isinstance(source, SavedSource):
            return f"{source.file}:{source.line}"
        # The hash of a code object reads all of its instructions.
        key = (id(source.code), source.instruction)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = f"{source.file}:{source.line}"
        return found


def _tables(counts: Counts) -> tuple[Mapping[str, Work], Mapping[str, Work]]:
    """Return the work of all runs by primitive and by source line."""
    by_primitive: dict[str, Work] = {}
    by_line: dict[str, Work] = {}
    lines = Lines()
    for program in counts.programs:
        runs = counts.runs[id(program)]
        applications = counts.applications[id(program)]
        for eqn, application in zip(program.eqns, applications, strict=True):
            if application.work is NO_WORK or not runs:
                continue
            work = application.work * runs
            name, line = eqn.prim.name, lines.of(eqn.source)
            by_primitive[name] = by_primitive.get(name, NO_WORK) + work
            by_line[line] = by_line.get(line, NO_WORK) + work
    return by_primitive, by_line
