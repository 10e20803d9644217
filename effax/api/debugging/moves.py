"""Moves of a session: functions from a state to the state in which they stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def arriving(move: Move, steps: int) -> Move:
    """Return the part of a move up to a number of equations."""

    def part(state: State, visit: Visit, evaluate: EvalEqn) -> Stopped:
        def checked(passed: State) -> None:
            if passed.steps >= steps:
                raise _Arrived(passed)
            visit(passed)

        try:
            return move(state, checked, evaluate)
        except _Arrived as arrived:
            return Stopped(arrived.state)

    return part


class _Arrived(BaseException):
    """A move has reached the state in which it was to end."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


def quiet(eqn: Eqn, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the results of an equation; a callback without results is not called."""
    if eqn.effects.side_effects and not eqn.outs and not eqn.effects.refs:
        return ()
    return evaluate_eqn(eqn, operands)
