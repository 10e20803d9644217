"""States of an evaluation, and the steps from one to the next.

A state is a value: a step returns another one, and the first can be stepped again. Values of
variables are in persistent vectors, so that states share what they have in common; the contents of
references have versions (:mod:`effax.ir.eval.stepping.memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pyrsistent import PVector, pvector

from effax.ir.axes import open_program
from effax.ir.errors import EffaxError
from effax.ir.eval.numpy import literal_value
from effax.ir.eval.stepping.memory import (
    Recording,
    RefChange,
    RefPart,
    Version,
    read_by,
)
from effax.ir.eval.stepping.runs import RegionRun, begin, resume
from effax.ir.primitive import Value
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import RefType

EvalEqn = Callable[[Eqn, Sequence[Value]], Sequence[Value]]
"""The evaluation of an equation that is not entered."""


class Site(NamedTuple):
    """The place of a run, without its values.

    Attributes:
        jaxpr: the program that runs.
        caller: the place of the equation that runs it; None for the outermost program.
        at: the position of that equation in its program.
        region: the number of its region.
        iteration: the number of earlier iterations; -1 for any of them.
        label: the name of the run: ``scan, iteration 3``.
    """

    jaxpr: Jaxpr
    caller: Site | None = None
    at: int = 0
    region: int = 0
    iteration: int = 0
    label: str = ""

    @property
    def eqn(self) -> Eqn | None:
        """The equation that runs the program."""
        return None if self.caller is None else self.caller.jaxpr.eqns[self.at]

    def outwards(self) -> Iterator[Site]:
        """Yield the place, and those of the callers."""
        site: Site | None = self
        while site is not None:
            yield site
            site = site.caller

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the runs that lead to the program, outermost first."""
        return tuple([site.label for site in self.outwards()][-2::-1])


class Activation(NamedTuple):
    """A program that is being evaluated.

    Attributes:
        site: its place.
        env: the values by variable number; None for a variable that is not bound yet.
        at: the position of the next equation.
        caller: the frame of the equation that runs the program; None for the outermost one.
        run: the run of that equation's region.
        depth: the number of callers.
    """

    site: Site
    env: PVector[Value | None]
    at: int = 0
    caller: Activation | None = None
    run: RegionRun | None = None
    depth: int = 0

    @property
    def jaxpr(self) -> Jaxpr:
        """The program."""
        return self.site.jaxpr

    @property
    def eqn(self) -> Eqn | None:
        """The next equation; None at the end."""
        eqns = self.site.jaxpr.eqns
        return eqns[self.at] if self.at < len(eqns) else None

    @property
    def path(self) -> tuple[str, ...]:
        """The runs that lead to the program, outermost first: ``scan, iteration 3``."""
        return self.site.path

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iterations of the loops around the program, outermost first."""
        runs = [frame.run for frame in self.outwards() if frame.run is not None]
        return tuple([run.iteration for run in reversed(runs) if run.plan.is_loop])

    def outwards(self) -> Iterator[Activation]:
        """Yield the frame and its callers."""
        frame: Activation | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    def value(self, atom: Atom) -> Value:
        """Return the value of a literal or of a variable that is bound."""
        found = literal_value(atom) if isinstance(atom, Lit) else self.env[atom.id]
        assert found is not None, "a variable is used before it is bound"
        return found

    def operands(self) -> list[Value]:
        """Return the values of the operands of the next equation."""
        env = self.env
        ins = self.site.jaxpr.eqns[self.at].ins
        return [literal_value(a) if type(a) is Lit else env[a.id] for a in ins]  # type: ignore[misc]  # bound before use


class Access(NamedTuple):
    """An access to a reference.

    Attributes:
        site: the place of the run.
        eqn: the equation.
        step: the number of equations that were evaluated before it.
        part: the part that is read or written.
        change: the contents of the part before and after; None for a read.
        earlier: the access before it, to any reference.
    """

    site: Site
    eqn: Eqn
    step: int
    part: RefPart
    change: RefChange | None
    earlier: Access | None

    def __repr__(self) -> str:
        kind = "read" if self.change is None else "write"
        return f"Access({kind}, {self.eqn}, step {self.step})"


class State(NamedTuple):
    """A point of an evaluation.

    Attributes:
        frame: the innermost program.
        memory: the contents of references.
        steps: the number of equations that were evaluated.
        accessed: the last access to a reference; None without one, or if they are not kept.
        results: the results, once the evaluation has ended.
        keeps: whether accesses are kept.
    """

    frame: Activation
    memory: Version
    steps: int = 0
    accessed: Access | None = None
    results: tuple[Value, ...] | None = None
    keeps: bool = True

    @property
    def eqn(self) -> Eqn | None:
        """The next equation; None at the end of a program."""
        return None if self.results is not None else self.frame.eqn

    @property
    def source(self) -> Source | SavedSource | None:
        """The user's line of the next equation."""
        return None if self.eqn is None else self.eqn.source

    @property
    def has_ended(self) -> bool:
        """True once the outermost program has returned."""
        return self.results is not None

    def __repr__(self) -> str:
        where = " > ".join(self.frame.path)
        return f"State(step {self.steps}, equation {self.frame.at}{f' of {where}' * bool(where)})"

    def accesses(self) -> Iterator[Access]:
        """Yield the accesses to references, the last one first."""
        access = self.accessed
        while access is not None:
            yield access
            access = access.earlier


def first_state(jaxpr: Jaxpr, args: Sequence[Value], keeps: bool = True) -> State:
    """Return the state before the first equation; contents of references are copied.

    Args:
        jaxpr: the program.
        args: one array for each binder; for a reference, its contents.
        keeps: whether the states keep the accesses to references.

    Raises:
        UnboundAxis: the program has free axes.
    """
    if jaxpr.free_axes:
        raise open_program(jaxpr.free_axes, "evaluated")
    own = [
        np.array(x, order="C") if isinstance(v.type, RefType) else x
        for v, x in zip(jaxpr.binders, args, strict=True)
    ]
    return State(Activation(Site(jaxpr), _bound(jaxpr, own)), Version(), keeps=keeps)


def _bound(jaxpr: Jaxpr, args: Sequence[Value]) -> PVector[Value | None]:
    env: list[Value | None] = [None] * jaxpr.size
    for v, x in zip(jaxpr.binders, args, strict=True):
        env[v.id] = x
    return pvector(env)


def evaluate_eqn(eqn: Eqn, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the results of an equation; references are written in place."""
    with np.errstate(all="ignore"):
        return eqn.prim.evaluate(*operands)


def advance(state: State, enter: bool = True, evaluate: EvalEqn = evaluate_eqn) -> State:
    """Return the state after one equation, or inside of it, or after the end of a program.

    Args:
        state: a state that has not ended; an ended one is returned.
        enter: whether an equation with regions is entered; else it is evaluated at once.
        evaluate: evaluates an equation that is not entered.

    Raises:
        EffaxError: the evaluation of the equation failed, with its line.
        Exception: so did a function of the user. ``state`` and its references are as before.
    """
    frame = state.frame
    if state.results is not None:
        return state
    eqn = frame.eqn
    if eqn is None:
        return _returned(state)
    operands = frame.operands()
    run = begin(eqn, operands) if enter else None
    if isinstance(run, RegionRun):
        return _entered(state, run, frame)
    if run is not None:
        return _after(state, frame, run, state.memory)
    state.memory.restore()
    if not eqn.effects.refs:
        return _after(state, frame, _evaluated(eqn, operands, evaluate), state.memory)
    return _with_access(state, eqn, operands, evaluate)


def _with_access(state: State, eqn: Eqn, operands: Sequence[Value], evaluate: EvalEqn) -> State:
    """Return the state after an equation that accesses references."""
    frame = state.frame
    recording = Recording(eqn, operands)
    try:
        outs = _evaluated(eqn, operands, evaluate)
    except BaseException:
        recording.undo()
        raise
    changes = recording.changes()
    after = _after(state, frame, outs, state.memory.changed(changes))
    if not state.keeps:
        return after
    last = state.accessed
    for part in read_by(eqn, operands):
        last = Access(frame.site, eqn, state.steps, part, None, last)
    for change in changes:
        last = Access(frame.site, eqn, state.steps, change.part, change, last)
    return after._replace(accessed=last)


def _evaluated(eqn: Eqn, operands: Sequence[Value], evaluate: EvalEqn) -> Sequence[Value]:
    try:
        return evaluate(eqn, operands)
    except EffaxError as error:
        raise error.at(str(eqn), None if eqn.source is None else str(eqn.source)) from None


def _entered(state: State, run: RegionRun, caller: Activation) -> State:
    jaxpr, at = run.jaxpr, caller.at
    env = _bound(jaxpr, run.arguments())
    name, label = caller.jaxpr.eqns[at].prim.name, run.label
    label = f"{name}, {label}" if label else name
    site = Site(jaxpr, caller.site, at, run.region, run.iteration, label)
    frame = Activation(site, env, 0, caller, run, caller.depth + 1)
    return State(frame, state.memory, state.steps, state.accessed, None, state.keeps)


def _after(state: State, frame: Activation, outs: Sequence[Value], memory: Version) -> State:
    """Return the state after the next equation of a frame."""
    env = frame.env
    for v, x in zip(frame.jaxpr.eqns[frame.at].outs, outs, strict=True):
        env = env.set(v.id, x)
    after = Activation(frame.site, env, frame.at + 1, frame.caller, frame.run, frame.depth)
    return State(after, memory, state.steps + 1, state.accessed, None, state.keeps)


def _returned(state: State) -> State:
    """Return the state after the end of a program: its next run, or its caller."""
    frame = state.frame
    outs = [frame.value(a) for a in frame.jaxpr.outs]
    if frame.caller is None or frame.run is None:
        return state._replace(results=tuple(outs))
    following = resume(frame.run, outs)
    if isinstance(following, RegionRun):
        return _entered(state, following, frame.caller)
    return _after(state, frame.caller, following, state.memory)


def step_over(state: State, evaluate: EvalEqn = evaluate_eqn) -> State:
    """Return the state after the next equation, and after all that it runs.

    Programs that access references are entered, so that each access is kept.
    """
    eqn, depth = state.eqn, state.frame.depth
    state = advance(state, bool(eqn is not None and eqn.effects.refs and state.keeps), evaluate)
    while eqn is not None and state.frame.depth > depth:
        state = advance(state, True, evaluate)
    return state


def contents(state: State, buffer: Value) -> Value:
    """Return a copy of the contents of a reference in a state."""
    state.memory.restore()
    return np.array(buffer)


def value_in(state: State, atom: Atom, frame: Activation | None = None) -> Value:
    """Return the value of an atom in a frame, by default the innermost; of a reference, a copy."""
    value = (frame or state.frame).value(atom)
    return contents(state, value) if isinstance(atom.type, RefType) else value
