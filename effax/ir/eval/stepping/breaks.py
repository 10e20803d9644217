"""Stops of an evaluation: at an equation, a primitive, a line, a write, under conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from types import CodeType
from typing import NamedTuple

import numpy as np

from effax.ir.errors import BadArgument
from effax.ir.eval.stepping.memory import changed_by, root_of
from effax.ir.eval.stepping.state import Activation, EvalEqn, State, advance, evaluate_eqn
from effax.ir.eval.stepping.watch import TESTS
from effax.ir.primitive import Value
from effax.ir.recursion import may_have_subjaxprs, postorder, subjaxprs_of
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.text.names import var_number

Condition = Callable[[State], bool]
"""A test of a state at an equation."""


class Break(NamedTuple):
    """A stop before an equation.

    Attributes:
        text: the description.
        covers: whether an equation may be one of those.
        condition: whether the state at such an equation is one; None: it is.
    """

    text: str
    covers: Callable[[Eqn], bool]
    condition: Condition | None = None

    def stops(self, state: State) -> bool:
        """Return whether the evaluation stops in this state."""
        eqn = state.eqn
        if eqn is None or not self.covers(eqn):
            return False
        return self.condition is None or self.condition(state)

    def when(self, text: str) -> Break:
        """Return the break under a further condition. Raises BadArgument if it is not one."""
        first, second = self.condition, condition_of(text)
        both = second if first is None else lambda state: first(state) and second(state)
        return Break(f"{self.text} if {text}", self.covers, both)


def at_equation(eqn: Eqn, text: str) -> Break:
    """Return the stop at an equation of a program."""
    return Break(text, lambda e: e is eqn)


def at_primitive(name: str) -> Break:
    """Return the stop at equations of a primitive."""
    return Break(f"primitive {name}", lambda e: e.prim.name == name)


def at_line(file: str, line: int) -> Break:
    """Return the stop at the equations of a line; ``file`` may be the end of a path, or empty."""
    wanted = PurePath(file).parts

    def covers(eqn: Eqn) -> bool:
        where = eqn.source
        if where is None or where.line != line:
            return False
        return not wanted or PurePath(where.file).parts[-len(wanted) :] == wanted

    return Break(f"line {file}:{line}" if file else f"line {line}", covers)


def at_write(buffer: Value, name: str) -> Break:
    """Return the stop at equations that write to a reference."""
    root = root_of(buffer)

    def writes(state: State) -> bool:
        eqn = state.eqn
        assert eqn is not None
        operands = state.frame.operands()
        own = not _is_entered(eqn)
        return own and any(root_of(operands[i]) is root for i in changed_by(eqn))

    return Break(f"write {name}", lambda e: bool(changed_by(e)), writes)


def anywhere() -> Break:
    """Return the stop at every equation, for conditions."""
    return Break("any equation", lambda _: True)


def _is_entered(eqn: Eqn) -> bool:
    return may_have_subjaxprs(eqn.prim) and bool(eqn.prim.subjaxprs())


def condition_of(text: str) -> Condition:
    """Return the condition of a text: a test's name, or a Python expression.

    An expression has the variables and arguments of the innermost program by name, the results of
    the equation among them, and ``value`` (its first result), ``ins``, ``outs``, ``np``. Results
    are those of a trial, and are missing for equations with subjaxprs or side effects.

    Raises:
        BadArgument: it is not an expression.
    """
    test = TESTS.get(text.strip())
    if test is not None:
        return lambda state: _test_trial(text.strip(), state)
    try:
        code = compile(text.strip(), "<condition>", "eval")
    except SyntaxError as error:
        raise BadArgument(
            "a condition is not an expression of Python",
            expected=f"{', '.join(TESTS)}, or an expression such as `value.max() > 3`",
            found=f"{text.strip()!r} ({error.msg})",
        ) from None
    return lambda state: _is_true(code, text, state)


def _is_true(code: CodeType, text: str, state: State) -> bool:
    """Return the truth of a condition: false where a name has no value."""
    try:
        found = evaluate_expression(code, text, values_by_name(state, names_of_code(code)))
    except MissingName:
        return False
    return bool(np.asarray(found).any())


def _test_trial(name: str, state: State) -> bool:
    test, eqn = TESTS[name], state.eqn
    if eqn is None:
        return False
    if test.of_eqn is not None and test.of_eqn(eqn, state.frame.operands()):
        return True
    return any(map(test.holds_for, trial(state)))


class MissingName(BadArgument):
    """An expression has a name without a value."""


def evaluate_expression(code: CodeType, text: str, names: dict[str, object]) -> object:
    """Return the value of an expression. Raises BadArgument where it fails."""
    try:
        with np.errstate(all="ignore"):
            return eval(code, {**names, "np": np})
    except Exception as error:  # noqa: BLE001  # the expression is the user's
        kind = MissingName if isinstance(error, NameError) else BadArgument
        raise kind(
            f"the expression {text.strip()!r} fails",
            expected="an expression of variables, arguments and np",
            found=f"{type(error).__name__}: {error}",
        ) from None


def values_by_name(
    state: State, wanted: Iterable[str], activation: Activation | None = None
) -> dict[str, object]:
    """Return the values of names that have one: variables, arguments, results of a trial.

    They are read-only, so that an expression changes none. Without an activation, results of the
    next equation have names too, and ``value`` (the first), ``ins`` and ``outs``.
    """
    frame = state.frame if activation is None else activation
    state.memory.restore()
    found: dict[str, object] = {}
    for name in wanted:
        binding = bound_name(frame, name)
        if binding is not None:
            found[name] = _fixed(binding[0].value(binding[1]))
    eqn = frame.eqn
    if eqn is None or activation is not None:
        return found
    results = {str(v) for v in eqn.outs}
    if results.union(("value", "outs")).isdisjoint(wanted):
        return {**found, "ins": [_fixed(x) for x in frame.operands()]}
    outs = [_fixed(x) for x in trial(state)]
    found.update({str(v): x for v, x in zip(eqn.outs, outs, strict=False)})
    found.update(ins=[_fixed(x) for x in frame.operands()], outs=outs)
    return {**found, "value": outs[0]} if outs else found


def bound_name(frame: Activation, name: str) -> tuple[Activation, Var] | None:
    """Return the bound variable that prints as ``name``, or an argument of that name."""
    number = var_number(name)
    if number is not None and number < len(frame.env) and frame.env[number] is not None:
        return frame, variable(frame.jaxpr, number)
    for outer in frame.outwards():
        if name in outer.jaxpr.names:
            return outer, outer.jaxpr.binders[outer.jaxpr.names.index(name)]
    return None


def variable(jaxpr: Jaxpr, number: int) -> Var:
    """Return the variable of a number, which the program binds."""
    for v in jaxpr.binders:
        if v.id == number:
            return v
    return next(v for eqn in jaxpr.eqns for v in eqn.outs if v.id == number)


def names_of_code(code: CodeType) -> set[str]:
    """Return the names of an expression, those of attributes among them."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return {*code.co_names}.union(*map(names_of_code, inner))


def _fixed(x: Value) -> Value:
    """Return a view that cannot be written to."""
    view = np.asarray(x).view()
    view.flags.writeable = False
    return view


def trial(state: State) -> list[Value]:
    """Return what the next equation computes: its results, or the contents that it writes.

    Of an equation with subjaxprs or side effects, nothing.
    """
    eqn = state.eqn
    if eqn is None or _is_entered(eqn) or eqn.effects.side_effects:
        return []
    after = advance(state._replace(keeps=True, accessed=None), enter=False)
    frame = after.frame
    changes = [a.change.after for a in after.accesses() if a.change is not None]
    state.memory.restore()
    return [*[frame.value(v) for v in eqn.outs], *changes]


class Stopped(NamedTuple):
    """A state in which a run stopped.

    Attributes:
        state: the state.
        reason: the reason for the stop; empty at the end of what was asked for.
        error: the exception of the next equation, if it failed.
    """

    state: State
    reason: str = ""
    error: Exception | None = None


class _Entered:
    """The equations that a run enters: those that may stop it, or that write to references."""

    def __init__(self, breaks: Sequence[Break]) -> None:
        self._breaks = breaks
        self._known: dict[int, bool] = {}
        self._programs: list[Jaxpr] = []

    def __call__(self, state: State) -> bool:
        eqn = state.eqn
        if eqn is None or not may_have_subjaxprs(eqn.prim):
            return True
        refs = state.keeps and bool(eqn.effects.refs)
        return refs or any(map(self._has_stop, eqn.prim.subjaxprs()))

    def _has_stop(self, jaxpr: Jaxpr) -> bool:
        if not self._breaks:
            return False
        if id(jaxpr) not in self._known:
            self._programs.append(jaxpr)
            for program in postorder(jaxpr, lambda p: id(p) not in self._known):
                own = any(b.covers(eqn) for eqn in program.eqns for b in self._breaks)
                inner = [self._known[id(p)] for p in subjaxprs_of(program)]
                self._known[id(program)] = own or any(inner)
        return self._known[id(jaxpr)]


def run_until(
    state: State,
    breaks: Sequence[Break] = (),
    until: Callable[[State], bool] | None = None,
    limit: int | None = None,
    visit: Callable[[State], object] | None = None,
    evaluate: EvalEqn = evaluate_eqn,
    here: bool = False,
) -> Stopped:
    """Evaluate until a break, a condition, a number of equations, an error or the end.

    Args:
        state: the first state.
        breaks: where to stop; programs in which none can be are evaluated at once, unless they
            access references.
        until: a condition that ends the run.
        limit: the most equations to evaluate.
        visit: is called with each state before it is advanced.
        evaluate: evaluates an equation that is not entered.
        here: whether breaks may stop in the first state.
    """
    enters = _Entered(breaks)
    most = None if limit is None else state.steps + limit
    try:
        if here:
            stopped = _stopped(state, breaks)
            if stopped is not None:
                return stopped
        while not state.has_ended:
            if visit is not None:
                visit(state)
            state = advance(state, enters(state), evaluate)
            if until is not None and until(state):
                return Stopped(state)
            stopped = _stopped(state, breaks)
            if stopped is not None:
                return stopped
            if most is not None and state.steps >= most:
                return Stopped(state, f"{limit} equations")
    except KeyboardInterrupt:
        return Stopped(state, "interrupted")
    except Exception as error:  # noqa: BLE001  # the user's function may raise any
        return Stopped(state, "error", error)
    return Stopped(state, "the end")


def _stopped(state: State, breaks: Sequence[Break]) -> Stopped | None:
    """Return the stop in a state by the first break that stops there."""
    if state.eqn is not None:
        for number, stop in enumerate(breaks, 1):
            if stop.stops(state):
                return Stopped(state, f"break {number}: {stop.text}")
    return None
