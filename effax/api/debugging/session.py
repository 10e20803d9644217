"""Sessions of the debugger: a state of an evaluation, and how it was reached, as a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Final, NamedTuple

import numpy as np

from effax import tree
from effax.api.debugging.calls import EvaluatedCall
from effax.api.debugging.display import (
    Stats,
    access_text,
    eqn_lines,
    origin_text,
    part_text,
    path_text,
    position_text,
    shown_value,
    stats_of,
    values_text,
)
from effax.api.debugging.moves import Move, MoveRecord, searched, stepped
from effax.api.debugging.names import (
    argument_named,
    binding_named,
    check_names,
    equation_named,
    find_binding,
    frame_at,
    known_names,
)
from effax.arrays.binding import wrap
from effax.ir.errors import BadArgument
from effax.ir.eval.stepping import breaks as stops
from effax.ir.eval.stepping.breaks import Break
from effax.ir.eval.stepping.memory import root_of
from effax.ir.eval.stepping.origins import Origin, origins
from effax.ir.eval.stepping.state import (
    Access,
    State,
    first_state,
    value_in,
)
from effax.ir.eval.stepping.texts import EqnTexts
from effax.ir.eval.stepping.watch import OfValue, test_of
from effax.ir.primitive import Value
from effax.ir.recursion import postorder
from effax.ir.syntax import Eqn
from effax.ir.types import RefType
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTree

AROUND: Final = 4
"""The number of equations that a listing shows before and after the next one."""


class RefWrite(NamedTuple):
    """A write to a reference.

    Attributes:
        part: the part of the reference, as an index: ``[2]``.
        before: the contents of the part before.
        after: the contents of the part after.
        equation: the equation, as text.
        line: the user's line; None if it is not known.
        path: the runs that lead to the equation, such as ``scan, iteration 3``.
        step: the number of equations before it.
    """

    part: str
    before: np.ndarray
    after: np.ndarray
    equation: str
    line: str | None
    path: tuple[str, ...]
    step: int


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """A point of the evaluation of a call; methods return other points, and change none.

    Attributes:
        call: the program and its arguments.
        state: the state of the evaluation.
        breaks: where :meth:`go` stops.
        reason: the reason for the stop.
        error: the exception of the next equation, if it failed.
        previous: the session from which this one was reached; None for the first.
    """

    call: EvaluatedCall
    state: State
    breaks: tuple[Break, ...] = ()
    reason: str = ""
    error: Exception | None = None
    previous: Session | None = None
    _record: MoveRecord | None = None

    def step(self, n: int = 1) -> Session:
        """Evaluate ``n`` equations, with the programs that they run."""
        return self._moved(
            lambda state, visit, evaluate: stepped(state, n, visit, evaluate, over=True)
        )

    def into(self, n: int = 1) -> Session:
        """Evaluate ``n`` equations, and enter the programs that they run."""
        return self._moved(
            lambda state, visit, evaluate: stepped(state, n, visit, evaluate, over=False)
        )

    def out(self) -> Session:
        """Evaluate to the end of the innermost program's application, all iterations of a loop."""
        breaks, depth = self.breaks, self.state.frame.depth
        return self._moved(
            lambda state, visit, evaluate: stops.run_until(
                state, breaks, lambda s: s.frame.depth < depth, None, visit, evaluate
            )
        )

    def go(self, limit: int | None = None) -> Session:
        """Evaluate to the next break, or to the end.

        Args:
            limit: the most equations to evaluate.
        """
        breaks, here = self.breaks, self.previous is None
        return self._moved(
            lambda state, visit, evaluate: stops.run_until(
                state, breaks, None, limit, visit, evaluate, here
            )
        )

    def run(self) -> Session:
        """Evaluate from the start to the first break, or to the end."""
        return self.restart().go()

    def restart(self) -> Session:
        """Return to the start; breaks stay."""
        return replace(first_session(self.call), breaks=self.breaks)

    def find(self, predicate: str | OfValue) -> Session:
        """Evaluate to the next equation whose result is found by a predicate, and stop before it.

        Args:
            predicate: ``"nan"``, ``"inf"``, ``"out_of_bounds"``, or a function of a NumPy array.
        """
        test = test_of(predicate)

        return self._moved(lambda state, visit, evaluate: searched(state, test, visit, evaluate))

    def undo(self) -> Session:
        """Return to the point before the last move."""
        return self if self.previous is None else replace(self.previous, breaks=self.breaks)

    def back(self, n: int = 1) -> Session:
        """Return to the point ``n`` equations earlier, also within a move over many.

        The last points of a move are kept, and some of the others, from which it is made again;
        callbacks without results are then not called a second time.
        """
        session = self
        while n > 0 and session.previous is not None and session._record is not None:
            if n < session._record.passed:
                state, record = session._record.back(n)
                return replace(
                    session, state=state, reason="", error=None, breaks=self.breaks, _record=record
                )
            n -= session._record.passed
            session = session.previous
        return replace(session, breaks=self.breaks)

    def break_at(
        self,
        equation: int | str | None = None,
        *,
        primitive: str | None = None,
        line: int | str | None = None,
        write: str | None = None,
        when: str | None = None,
    ) -> Session:
        """Add a break.

        Args:
            equation: the number of an equation of the innermost program, or a variable that one
                binds.
            primitive: the name of a primitive, anywhere.
            line: a line of the user's code, as a number or as ``"file.py:12"``.
            write: the name of a reference.
            when: a condition: ``nan``, ``inf``, ``out_of_bounds``, or an expression of Python with
                the names of variables and arguments, ``value`` (the equation's first result),
                ``ins``, ``outs`` and ``np``. Alone, it is tested at every equation.

        Raises:
            BadArgument: there is none such, or the condition is not an expression.
        """
        given = [x for x in (equation, primitive, line, write) if x is not None]
        if len(given) > 1 or (not given and when is None):
            raise BadArgument(
                "a break is at one place, or has a condition",
                expected="one of equation, primitive, line and write, or a condition",
                found=f"{len(given)} places",
            )
        if equation is not None:
            made = self._at_equation(equation)
        elif primitive is not None:
            made = self._checked(stops.at_primitive(primitive), "primitives", _primitive)
        elif line is not None:
            file, _, number = str(line).rpartition(":")
            if not number.isdecimal():
                raise BadArgument("this is not a line", "12, or file.py:12", repr(line))
            made = self._checked(stops.at_line(file, int(number)), "lines", _line)
        elif write is not None:
            made = stops.at_write(self._reference(write), write)
        else:
            made = stops.anywhere()
        if when is not None:
            made = made.when(when)
            check_names(self.call.jaxpr, when)
        return replace(self, breaks=(*self.breaks, made))

    def clear(self, number: int | None = None) -> Session:
        """Remove the break of a number, counted from 1, or all of them. Raises BadArgument."""
        if number is None:
            return replace(self, breaks=())
        if not 1 <= number <= len(self.breaks):
            raise BadArgument(
                f"there is no break {number}", f"1 to {len(self.breaks)}", str(number)
            )
        return replace(self, breaks=self.breaks[: number - 1] + self.breaks[number:])

    def value(self, name: str, level: int = 0) -> Value:
        """Return a value.

        Args:
            name: a variable as the program prints it, an argument's name, or an expression of these
                and ``np``. A reference is a copy of its contents.
            level: 0 for the innermost program, 1 for its caller, ...

        Raises:
            BadArgument: it has no value here.
        """
        found = find_binding(self.state, level, name)
        if found is not None and found.is_bound:
            return np.asarray(value_in(self.state, found.var, found.frame))
        frame = frame_at(self.state, level)
        try:
            code = compile(name.strip(), "<expression>", "eval")
        except SyntaxError:
            raise BadArgument(
                "this is not a variable or an expression", "such as a, x or np.max(a)", repr(name)
            ) from None
        names = stops.values_by_name(self.state, stops.names_of_code(code), frame)
        try:
            return np.asarray(stops.evaluate_expression(code, name, names))
        except stops.MissingName as error:
            error.expected = f"an expression of np, {known_names(self.state, level)}"
            raise

    def stats(self, name: str, level: int = 0) -> Stats:
        """Return the statistics of a value: extremes, mean, zeros, nans. Raises BadArgument."""
        return stats_of(self.value(name, level))

    def history(self, name: str, level: int = 0) -> tuple[RefWrite, ...]:
        """Return the writes to a reference so far, in order. Raises BadArgument."""
        texts = EqnTexts()
        return tuple([_write(access, texts) for access in self._accesses(name, level)])

    def origins(self, name: str, level: int = 0) -> tuple[Origin, ...]:
        """Return the equations and arguments that a value came from, in program order.

        They are followed through the programs that ran, the iterations of loops, and references:
        what was read came from the writes to that part. Raises BadArgument.
        """
        found = binding_named(self.state, level, name)
        return origins(self.state, found.var, found.frame)

    @property
    def path(self) -> tuple[str, ...]:
        """The runs that lead to the innermost program: ``scan, iteration 3``."""
        return self.state.frame.path

    @property
    def equation(self) -> Eqn | None:
        """The next equation; None at the end of a program."""
        return self.state.eqn

    @property
    def line(self) -> str | None:
        """The user's line of the next equation."""
        return None if self.state.source is None else str(self.state.source)

    @property
    def has_ended(self) -> bool:
        """True after the end of the program."""
        return self.state.has_ended

    @property
    def result(self) -> PyTree:
        """The result of the function, after the end. Raises BadArgument before it."""
        results = self.state.results
        if results is None:
            raise BadArgument("the evaluation has not ended", remedy="`session.go().result`")
        types = self.call.jaxpr.out_types
        made = [wrap(np.array(x), t) for x, t in zip(results, types, strict=True)]
        return made if self.call.out_tree is None else tree.unflatten(self.call.out_tree, made)

    def listing(self, around: int | None = AROUND, level: int = 0) -> str:
        """Return equations of the innermost program with the user's lines; all if None."""
        frame = frame_at(self.state, level)
        at = frame.at if self.state.results is None else len(frame.jaxpr.eqns)
        reach = len(frame.jaxpr.eqns) if around is None else around
        return "\n".join(eqn_lines(frame.jaxpr, at - reach, at + reach + 1, at))

    def values(self, level: int = 0) -> str:
        """Return the values of inputs and variables so far as text, one on a line."""
        return values_text(frame_at(self.state, level), self.state)

    def shown(self, name: str, level: int = 0) -> str:
        """Return a value as text: its type, and its elements or their statistics."""
        found = find_binding(self.state, level, name)
        text = shown_value(self.value(name, level), None if found is None else found.var.type)
        argument = argument_named(self.state, level, name)
        if found is None or argument is None or argument.var == found.var:
            return text
        return f"{text}\n(the variable; the argument {name} is {argument.var!r})"

    def __str__(self) -> str:
        text = position_text(self.state, self.call.label)
        head = f"{self.reason}\n" if self.reason and not self.has_ended else ""
        tail = "" if self.error is None else f"\n{type(self.error).__name__}: {self.error}"
        return f"{head}{text}{tail}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the position, the equations around it, and the values, for a notebook."""
        where = escape(path_text(self.path, self.call.label))
        reason = f" ({escape(self.reason)})" if self.reason else ""
        parts = [f"<b>{where}</b>, after {self.state.steps} equations{reason}"]
        if self.has_ended or self.error is not None:
            parts.append(f"<pre>{escape(str(self))}</pre>")
        parts.append(f"<pre>{escape(self.listing())}</pre>")
        values = f"<pre>{escape(self.values())}</pre>"
        parts.append(f"<details><summary>values</summary>{values}</details>")
        return "\n".join(parts)

    def _moved(self, move: Move) -> Session:
        if self.has_ended:
            return replace(self, reason="the end")
        stopped, record = MoveRecord.of(move, self.state)
        return replace(
            self,
            state=stopped.state,
            reason=stopped.reason,
            error=stopped.error,
            previous=self,
            _record=record,
        )

    def _at_equation(self, name: int | str) -> Break:
        frame = self.state.frame
        number = equation_named(frame, name)
        return stops.at_equation(frame.jaxpr.eqns[number], f"equation {number}")

    def _checked(self, made: Break, what: str, found: Callable[[Eqn], str | None]) -> Break:
        """Return a break, if an equation of the program may be one. Raises BadArgument."""
        eqns = [eqn for program in postorder(self.call.jaxpr) for eqn in program.eqns]
        if any(map(made.covers, eqns)):
            return made
        there = dict.fromkeys([text for eqn in eqns if (text := found(eqn)) is not None])
        raise BadArgument(
            f"no equation has the {made.text}",
            expected=f"one of the {what} " + ", ".join(sorted(there)),
        )

    def _reference(self, name: str, level: int = 0) -> Value:
        found = binding_named(self.state, level, name)
        if not isinstance(found.var.type, RefType) or not found.is_bound:
            raise BadArgument(f"{name} is not a reference here", "a reference", repr(found.var))
        return found.frame.value(found.var)

    def _accesses(self, name: str, level: int = 0) -> Sequence[Access]:
        root = root_of(self._reference(name, level))
        own = [a for a in self.state.accesses() if a.change and root_of(a.part.buffer) is root]
        return own[::-1]

    def history_text(self, name: str, level: int = 0) -> str:
        """Return the writes to a reference as text, one on a line."""
        return "\n".join(map(access_text, self._accesses(name, level))) or "no writes yet"

    def origins_text(self, name: str, level: int = 0) -> str:
        """Return the equations that a value came from as text, one on a line."""
        return "\n".join(map(origin_text, self.origins(name, level))) or "a literal"


def first_session(call: EvaluatedCall) -> Session:
    """Return the session before the first equation of a call."""
    return Session(call, first_state(call.jaxpr, call.args))


def _write(access: Access, texts: EqnTexts) -> RefWrite:
    change, source = access.change, access.eqn.source
    assert change is not None
    return RefWrite(
        part_text(access.part),
        change.before,
        change.after,
        texts.of(access.site.jaxpr, access.eqn),
        None if source is None else str(source),
        access.site.path,
        access.step,
    )


def _primitive(eqn: Eqn) -> str:
    return eqn.prim.name


def _line(eqn: Eqn) -> str | None:
    source = eqn.source
    return None if source is None else f"{source.file.rpartition('/')[2]}:{source.line}"
