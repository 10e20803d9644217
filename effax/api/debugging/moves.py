"""Moves of a session: functions from a state to the state in which they stop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from effax.ir.eval.stepping.breaks import Stopped
from effax.ir.eval.stepping.state import EvalEqn, State, advance, evaluate_eqn, step_over
from effax.ir.eval.stepping.watch import Test, search
from effax.ir.primitive import Value
from effax.ir.syntax import Eqn

Visit = Callable[[State], object]
Move = Callable[[State, Visit, EvalEqn], Stopped]
"""A move from a state; ``visit`` is called with each state on the way."""


def stepped(state: State, n: int, visit: Visit, evaluate: EvalEqn, over: bool) -> Stopped:
    """Return the state ``n`` equations later, over the programs that they run or into them."""
    try:
        for _ in range(n):
            if state.has_ended:
                return Stopped(state, "the end")
            visit(state)
            state = step_over(state, evaluate) if over else advance(state, True, evaluate)
    except KeyboardInterrupt:
        return Stopped(state, "interrupted")
    except Exception as error:  # noqa: BLE001  # the user's function may raise any
        return Stopped(state, "error", error)
    return Stopped(state, "the end" if state.has_ended else "")


def searched(state: State, test: Test, visit: Visit, evaluate: EvalEqn) -> Stopped:
    """Return the state before the next equation for which a test holds, or the end."""
    passed = [state]

    def late(visited: State) -> None:
        # The state before the equation that is found is the end of the move, not on the way.
        if visited is not passed[0]:
            visit(passed[0])
        passed[0] = visited

    try:
        found = search(state, test, late, evaluate)
    except KeyboardInterrupt:
        return Stopped(passed[0], "interrupted")
    except Exception as error:  # noqa: BLE001  # the user's function may raise any
        return Stopped(passed[0], "error", error)
    if found.hit is not None:
        return Stopped(found.state, f"{test.name} in its result")
    visit(passed[0])
    return Stopped(found.state, "the end")


KEPT: Final = 64
"""The number of states before the end of a move to which a step back is free."""

BETWEEN: Final = 1 << 12
"""The number of states between two that are kept of a long move."""


class MoveRecord(NamedTuple):
    """The states that a move passed, in part.

    Attributes:
        move: the move.
        passed: the number of states from its first state to its last, which is not among them.
        trail: the last of these states.
        marks: every ``BETWEEN``-th of them, the first state among them.
    """

    move: Move
    passed: int
    trail: tuple[State, ...]
    marks: tuple[State, ...]

    @classmethod
    def of(cls, move: Move, state: State) -> tuple[Stopped, MoveRecord]:
        """Make a move, and return its end and its record."""
        trail: deque[State] = deque(maxlen=KEPT)
        marks: list[State] = []
        count = 0

        def visit(passed: State) -> None:
            nonlocal count
            if count % BETWEEN == 0:
                marks.append(passed)
            trail.append(passed)
            count += 1

        stopped = move(state, visit, evaluate_eqn)
        return stopped, cls(move, count, tuple(trail), tuple(marks))

    def back(self, n: int) -> tuple[State, MoveRecord]:
        """Return the state ``n`` before the end, at most ``passed``, and the record up to it.

        If it is not kept, the move is made again from a mark; callbacks without results are not
        called again.
        """
        at = self.passed - n
        marks = self.marks[: 1 + (at - 1) // BETWEEN] if at > 0 else ()
        if n <= len(self.trail):
            *trail, state = self.trail[: len(self.trail) - n + 1]
        else:
            *trail, state = self._replayed(at)
        return state, MoveRecord(self.move, at, tuple(trail), marks)

    def _replayed(self, at: int) -> list[State]:
        """Return the last states up to a position, from the mark before it."""
        mark = at // BETWEEN
        trail: deque[State] = deque(maxlen=KEPT + 1)
        rest = at - mark * BETWEEN

        def visit(passed: State) -> None:
            nonlocal rest
            trail.append(passed)
            if rest == 0:
                raise _Arrived
            rest -= 1

        with suppress(_Arrived):
            self.move(self.marks[mark], visit, quiet)
        return [*trail]


class _Arrived(BaseException):
    """A move has reached the state in which it is to end."""


def quiet(eqn: Eqn, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the results of an equation; a callback without results is not called."""
    if eqn.effects.side_effects and not eqn.outs and not eqn.effects.refs:
        return ()
    return evaluate_eqn(eqn, operands)
