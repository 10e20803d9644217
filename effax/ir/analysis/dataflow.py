"""Forward dataflow analysis of programs: a lattice of facts, followed to the least fixpoint.

An :class:`Analysis` consists of

- a lattice: :attr:`~Analysis.bottom`, the fact of a value about which nothing is known, and
  :meth:`~Analysis.join`, the least upper bound of two facts;
- a transfer function: :meth:`~Analysis.transfer` maps the facts of an equation's operands to those
  of its results.

:func:`analyze` does the rest. It follows facts through the equations, into references (a reference
has the join of all facts that are written to it, also for reads that come earlier, in a loop), and
through the regions of primitives that run subjaxprs (:func:`close_regions`). Which variables are
derived from which inputs, say::

    class DependsOn(Analysis[frozenset[int]]):
        bottom = frozenset()

        def join(self, first, second):
            return first | second

        def transfer(self, eqn, ins):
            return (frozenset().union(*ins),) * len(eqn.outs)

In ``scan (c, x) -> (c·x, c)`` on a carry ``c`` with the fact ``{0}`` and elements ``x`` with
``{1}``, the carry has ``{0, 1}``, since the first result is bound to it again, and so have both
results.

:func:`walk_facts` yields the facts at every equation, those of subjaxprs included, with the path
and the trip count of each.

Solutions are memoized for each subjaxpr, so that the cost of nesting is linear in the size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Final, Generic, NamedTuple, TypeVar, cast

from effax.effects import Accum, Write
from effax.ir.analysis.passing import Passed, passed_results
from effax.ir.analysis.queries import Path, PathStep, Place, steps_into
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type

L = TypeVar("L")
S = TypeVar("S")

Positions = frozenset[int]

NONE: Final[Positions] = frozenset()


class Analysis(ABC, Generic[L]):
    """A forward analysis. Subclasses are hashable values: equal analyses have equal solutions.

    Attributes:
        bottom: the least fact. It alone is falsy, so that equations without facts are skipped.
        control: whether values that depend on a predicate or a selector have its fact.
    """

    bottom: L
    control: bool = False

    @abstractmethod
    def join(self, first: L, second: L) -> L:
        """Return the least upper bound of two facts."""

    @abstractmethod
    def transfer(self, eqn: Eqn, ins: tuple[L, ...]) -> tuple[L, ...]:
        """Return the facts of the results of an equation, for those of its operands."""

    def call(
        self, eqn: Eqn, ins: tuple[L, ...], fixed: Positions
    ) -> tuple[tuple[L, ...], tuple[L, ...]]:
        """Return the facts of the operands and results of an equation that has regions."""
        return close_regions(self, eqn.prim, ins, fixed)

    def origin(self, eqn: Eqn) -> L:
        """Return the fact that an equation introduces, whatever its operands."""
        return self.bottom

    def literal(self, lit: Lit) -> L:
        """Return the fact of a literal."""
        return self.bottom

    def tracks(self, type_: Type) -> bool:
        """Return whether references of this type take the facts of values written to them."""
        return True


class Facts(NamedTuple, Generic[L]):
    """The least solution of an analysis of a program.

    Attributes:
        ins: the facts of the inputs, those written to references included.
        outs: the facts of the results.
        variables: the facts of all variables, by number.
    """

    ins: tuple[L, ...]
    outs: tuple[L, ...]
    variables: tuple[L, ...]


def analyze(
    analysis: Analysis[L], jaxpr: Jaxpr, ins: tuple[L, ...], fixed: Positions = NONE
) -> Facts[L]:
    """Return the least solution of an analysis for given facts of the inputs.

    Args:
        analysis: the lattice and the transfer function.
        jaxpr: the program.
        ins: one fact per input.
        fixed: positions of input references that keep their facts under writes.
    """
    return cast("Facts[L]", _solve(analysis, jaxpr, ins, fixed))


class Visit(NamedTuple, Generic[L]):
    """An equation, and the facts of its operands and results.

    Attributes:
        place: the equation and the path to it; ``place.trip_count`` is how often it runs.
        ins: the facts of the operands, what the equation writes to references included.
        outs: the facts of the results.
    """

    place: Place
    ins: tuple[L, ...]
    outs: tuple[L, ...]


def walk_facts(
    analysis: Analysis[L], jaxpr: Jaxpr, ins: tuple[L, ...], fixed: Positions = NONE
) -> Iterator[Visit[L]]:
    """Yield all equations with their facts; those of a region follow the one that contains it.

    The facts inside of a region hold in all of its runs. A shared subjaxpr is visited wherever it
    occurs, since its inputs have other facts there. A subjaxpr without a region is not entered.

    Args:
        analysis: the lattice and the transfer function.
        jaxpr: the program.
        ins: one fact per input.
        fixed: positions of input references that keep their facts under writes.
    """
    stack = [_visits(analysis, (), jaxpr, ins, fixed)]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        visit, kept = found
        yield visit
        prim, place = visit.place.eqn.prim, visit.place
        regions = prim.regions() if prim.subjaxprs() else ()
        inside = steps_into(place) if len(regions) == len(prim.subjaxprs()) else ()
        for region, step in reversed([*zip(regions, inside, strict=False)]):
            given = tuple([visit.ins[a] for a in region.args])
            own = frozenset([i for i, a in enumerate(region.args) if a in kept])
            stack.append(_visits(analysis, Path((*place.path, step)), region.jaxpr, given, own))


def _visits(
    analysis: Analysis[L],
    path: tuple[PathStep, ...],
    jaxpr: Jaxpr,
    ins: tuple[L, ...],
    fixed: Positions,
) -> Iterator[tuple[Visit[L], Positions]]:
    """Yield the equations of one program, with the operands that are fixed references."""
    facts = analyze(analysis, jaxpr, ins, fixed).variables
    kept = {v.id for i, v in enumerate(jaxpr.binders) if i in fixed}
    for at, eqn in enumerate(jaxpr.eqns):
        given = tuple([analysis.literal(a) if isinstance(a, Lit) else facts[a.id] for a in eqn.ins])
        own = positions_of(kept, eqn)
        grown, _ = _transfer(analysis, eqn, given, own)
        yield Visit(Place(path, jaxpr, at), grown, tuple([facts[v.id] for v in eqn.outs])), own


@memoize(maxsize=1 << 13)
def _solve(
    analysis: Analysis[object], jaxpr: Jaxpr, ins: tuple[object, ...], fixed: Positions
) -> object:
    solver = Solver(analysis, jaxpr.size)
    for i, (v, fact) in enumerate(zip(jaxpr.binders, ins, strict=True)):
        solver.bind(v, fact, i in fixed)
    while solver.sweep(jaxpr.eqns):
        pass
    facts = solver.facts
    grown = tuple([facts[v.id] for v in jaxpr.binders])
    return Facts(grown, tuple(map(solver.fact, jaxpr.outs)), tuple(facts))


class Solver(Generic[L]):
    """A solution in progress.

    Attributes:
        facts: the facts of all variables, by number.
    """

    __slots__ = ("analysis", "facts", "fixed")

    def __init__(self, analysis: Analysis[L], size: int) -> None:
        self.analysis: Analysis[L] = analysis
        self.facts: list[L] = [analysis.bottom] * size
        self.fixed: set[int] = set()

    def bind(self, v: Var, fact: L, fixed: bool = False) -> None:
        """Set the fact of an input; one that is ``fixed`` keeps it."""
        self.facts[v.id] = fact
        if fixed:
            self.fixed.add(v.id)

    def fact(self, atom: Atom) -> L:
        """Return the fact of an atom so far."""
        return self.analysis.literal(atom) if isinstance(atom, Lit) else self.facts[atom.id]

    def sweep(self, eqns: Iterable[Eqn]) -> bool:
        """Follow equations in order. Return whether a reference's fact grew: sweep again then."""
        facts, literal, origin = self.facts, self.analysis.literal, self.analysis.origin
        again = False
        for eqn in eqns:
            ins = tuple([literal(a) if type(a) is Lit else facts[a.id] for a in eqn.ins])
            if (any(ins) or origin(eqn)) and self._follow(eqn, ins):
                again = True
        return again

    def _follow(self, eqn: Eqn, ins: tuple[L, ...]) -> bool:
        facts, join, again = self.facts, self.analysis.join, False
        fixed = positions_of(self.fixed, eqn) if self.fixed and eqn.effects else NONE
        grown, outs = _transfer(self.analysis, eqn, ins, fixed)
        if grown is not ins:
            for a, before, after in zip(eqn.ins, ins, grown, strict=True):
                # The fact of a carry joins that of its operand inside of the loop only.
                if before != after and isinstance(a, Var) and type(a.type) is RefType:
                    joined = join(facts[a.id], after)
                    again = again or joined != facts[a.id]
                    facts[a.id] = joined
        for v, fact in zip(eqn.outs, outs, strict=True):
            facts[v.id] = join(facts[v.id], fact)
        return again


def positions_of(variables: Set[int], eqn: Eqn) -> Positions:
    """Return the positions of these variables among the operands of an equation."""
    return frozenset([i for i, a in enumerate(eqn.ins) if isinstance(a, Var) and a.id in variables])


def _transfer(
    analysis: Analysis[L], eqn: Eqn, ins: tuple[L, ...], fixed: Positions
) -> tuple[tuple[L, ...], tuple[L, ...]]:
    """Return the facts of an equation's operands (those of references may grow) and results."""
    if eqn.prim.subjaxprs() and eqn.prim.regions():
        return analysis.call(eqn, ins, fixed)
    if eqn.effects:
        ins = written(analysis, eqn, ins, fixed)
    return ins, analysis.transfer(eqn, ins)


def written(analysis: Analysis[L], eqn: Eqn, ins: tuple[L, ...], fixed: Positions) -> tuple[L, ...]:
    """Return the facts of the operands; references join the facts of values written to them."""
    changed = {e.ref for e in eqn.effects if isinstance(e, Write | Accum)} - fixed
    changed = {i for i in changed if analysis.tracks(eqn.ins[i].type)}
    if not changed:
        return ins
    every = analysis.origin(eqn)
    for fact in ins:
        every = analysis.join(every, fact)
    return tuple([analysis.join(own, every) if i in changed else own for i, own in enumerate(ins)])


def close_regions(
    analysis: Analysis[L], prim: Primitive, ins: tuple[L, ...], fixed: Positions = NONE
) -> tuple[tuple[L, ...], tuple[L, ...]]:
    """Return the closed facts of the operands and results of a primitive that has regions.

    A result that is bound to an operand in the next iteration joins that operand's fact: the first
    part is what the inputs of the subjaxprs have in every iteration. A loop of no iterations
    returns its operands, so a carry's result has at least the carry's fact. Where the analysis
    follows control, the facts of the selector and of predicates join everything that these decide:
    all results and carries that the regions do not only pass through, and all references that one
    changes.

    Args:
        analysis: the lattice and the transfer function.
        prim: the primitive.
        ins: one fact per operand.
        fixed: positions of references that keep their facts.
    """
    regions, bottom = prim.regions(), analysis.bottom
    selector = prim.selector() if analysis.control else None
    selected = bottom if selector is None else ins[selector]

    def step(facts: tuple[tuple[L, ...], tuple[L, ...]]) -> tuple[tuple[L, ...], tuple[L, ...]]:
        operands, results = list(facts[0]), list(facts[1])
        decided = selected
        for region in regions:
            predicate = _enter(analysis, region, operands, results, fixed)
            if analysis.control and region.is_predicate:
                decided = analysis.join(decided, predicate)
        if decided:
            passed = passed_results(prim)
            _decide(analysis, regions, passed, operands, results, fixed, decided)
        return tuple(operands), tuple(results)

    return fixpoint(step, (ins, (bottom,) * _n_results(regions)))


def _n_results(regions: Sequence[Region]) -> int:
    return 1 + max((r for region in regions for r in region.results if r is not None), default=-1)


def _enter(
    analysis: Analysis[L], region: Region, ins: list[L], outs: list[L], fixed: Positions
) -> L:
    """Follow one region once. Return the fact of its first result, which may be a predicate."""
    join = analysis.join
    inner = frozenset([i for i, a in enumerate(region.args) if a in fixed]) if fixed else NONE
    inside = analyze(analysis, region.jaxpr, tuple([ins[a] for a in region.args]), inner)
    for v, a, fact in zip(region.jaxpr.binders, region.args, inside.ins, strict=True):
        if type(v.type) is RefType:
            ins[a] = join(ins[a], fact)
    for fact, result, carry in zip(inside.outs, region.results, region.carry_to, strict=True):
        if carry is not None:
            ins[carry] = join(ins[carry], fact)
        if result is not None:
            whole = fact if carry is None else join(fact, ins[carry])
            outs[result] = join(outs[result], whole)
    return inside.outs[0] if inside.outs else analysis.bottom


def _decide(
    analysis: Analysis[L],
    regions: Sequence[Region],
    passed: Sequence[Passed],
    ins: list[L],
    outs: list[L],
    fixed: Positions,
    decided: L,
) -> None:
    """Join the fact of a predicate to all values that it decides: those that are not ``passed``."""
    join = analysis.join
    for region in regions:
        for result, carry in zip(region.results, region.carry_to, strict=True):
            if result is not None and result < len(passed) and passed[result] is not None:
                continue
            if result is not None:
                outs[result] = join(outs[result], decided)
            if carry is not None:
                ins[carry] = join(ins[carry], decided)
        for effect in region.jaxpr.effects:
            if isinstance(effect, Write | Accum):
                ref, type_ = region.args[effect.ref], region.jaxpr.binders[effect.ref].type
                if ref not in fixed and analysis.tracks(type_):
                    ins[ref] = join(ins[ref], decided)


def fixpoint(step: Callable[[S], S], state: S) -> S:
    """Return the least fixpoint of a monotone function above ``state``, by iteration.

    The states must form a lattice without infinite ascending chains, such as masks of one length.
    """
    while (after := step(state)) != state:
        state = after
    return state
