"""Variables and equations of a program by the names that a user types."""

from __future__ import annotations

import ast
import builtins
from typing import Final, NamedTuple

from effax.ir.errors import BadArgument
from effax.ir.eval.stepping.state import Activation, State
from effax.ir.eval.stepping.watch import TESTS
from effax.ir.recursion import postorder
from effax.ir.syntax import Jaxpr, Var
from effax.ir.text.names import var_number

_MOST_NAMES: Final = 24


def frame_at(state: State, level: int) -> Activation:
    """Return the program at a level: 0 is the innermost one. Raises BadArgument."""
    frames = [*state.frame.outwards()]
    if not 0 <= level < len(frames):
        raise BadArgument("the level is out of range", f"0 to {len(frames) - 1}", str(level))
    return frames[level]


class Binding(NamedTuple):
    """A variable, and the program that binds it."""

    frame: Activation
    var: Var

    @property
    def is_bound(self) -> bool:
        """True if the variable has a value."""
        return self.frame.env[self.var.id] is not None


def binding_named(state: State, level: int, name: str) -> Binding:
    """Return the variable that prints as ``name`` at a level, or the argument of that name.

    Arguments of the callers are found too.

    Raises:
        BadArgument: there is none.
    """
    found = find_binding(state, level, name)
    if found is None:
        raise BadArgument(
            f"{name!r} is not a variable of this program",
            expected="a variable as `listing()` prints it, or the name of an argument",
            found=repr(name),
        )
    return found


def known_names(state: State, level: int) -> str:
    """Return the names of the values at a level, arguments first, as text: some of them if many."""
    frame = frame_at(state, level)
    arguments = [name for outer in frame.outwards() for name in outer.jaxpr.names if name]
    variables = [str(v) for v in _variables(frame) if frame.env[v.id] is not None]
    names = [*dict.fromkeys([*arguments, *variables])]
    return ", ".join([*names[:_MOST_NAMES], *["..."] * (len(names) > _MOST_NAMES)])


def find_binding(state: State, level: int, name: str) -> Binding | None:
    """Return what :func:`binding_named` returns, or None.

    Of a bound variable and an argument of one name, it is the variable.
    """
    frame = frame_at(state, level)
    v = variable_named(frame, name.strip())
    if v is not None and frame.env[v.id] is not None:
        return Binding(frame, v)
    found = argument_named(state, level, name)
    return found if found is not None or v is None else Binding(frame, v)


def argument_named(state: State, level: int, name: str) -> Binding | None:
    """Return the argument of a name, of the program at a level or of a caller."""
    # Names are printed with single quotes: params['w'].
    wanted = name.strip().replace('"', "'")
    for outer in frame_at(state, level).outwards():
        names = outer.jaxpr.names
        if wanted in names:
            return Binding(outer, outer.jaxpr.binders[names.index(wanted)])
    return None


def variable_named(frame: Activation, name: str) -> Var | None:
    """Return the variable of a program that prints as ``name``, or None."""
    number = var_number(name)
    if number is None:
        return None
    return next((v for v in _variables(frame) if v.id == number), None)


CONDITION: Final = {"value", "ins", "outs", "np", *vars(builtins)}
"""The names of a condition besides variables and arguments."""


def check_names(jaxpr: Jaxpr, condition: str) -> None:
    """Raise BadArgument for a name that has no value at any equation."""
    programs = postorder(jaxpr)
    arguments = {name for program in programs for name in program.names}
    size = max(program.size for program in programs)
    parsed = ast.parse(condition.strip(), mode="eval")
    stored = {n.id for n in ast.walk(parsed) if isinstance(n, ast.Name) and _binds(n)}
    stored |= {n.arg for n in ast.walk(parsed) if isinstance(n, ast.arg)}
    for node in ast.walk(parsed):
        if not isinstance(node, ast.Name) or node.id in {*stored, *arguments, *CONDITION, *TESTS}:
            continue
        number = var_number(node.id)
        if number is None or number >= size:
            raise BadArgument(
                f"the condition {condition!r} has an unknown name",
                expected=f"value, ins, outs, np, {', '.join(TESTS)}, a variable or an argument: "
                + ", ".join(sorted(filter(str.isidentifier, arguments))),
                found=node.id,
            )


def _binds(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def equation_named(frame: Activation, name: int | str) -> int:
    """Return the number of an equation: by it, or by a variable that it binds.

    Raises:
        BadArgument: the program has no such equation.
    """
    eqns = frame.jaxpr.eqns
    if isinstance(name, int) or name.strip().isdecimal():
        number = int(name)
        if 0 <= number < len(eqns):
            return number
    else:
        v = variable_named(frame, name.strip())
        for i, eqn in enumerate(eqns):
            if v in eqn.outs:
                return i
    raise BadArgument(
        "the program has no such equation",
        expected=f"a number from 0 to {len(eqns) - 1}, or a variable that an equation binds",
        found=str(name),
    )


def _variables(frame: Activation) -> list[Var]:
    jaxpr = frame.jaxpr
    return [*jaxpr.binders, *[v for eqn in jaxpr.eqns for v in eqn.outs]]
