"""Errors for nans and infinities, while ``debug_nans`` or ``debug_infs`` is on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.edit.without_io import silent
from effax.ir.errors import InvalidValue
from effax.ir.eval.numpy import evaluate
from effax.ir.eval.stepping.state import first_state
from effax.ir.eval.stepping.watch import TESTS, Hit, search
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType

REMEDY = "`effax.debug.first(f, {!r})(*args)` returns the inputs and a short program"


def run_watched(jaxpr: Jaxpr, args: Sequence[Value], watched: Sequence[str]) -> list[Value]:
    """Run a program, and test its results and the contents of references.

    Args:
        jaxpr: the program.
        args: its arguments; a reference is its buffer, written in place.
        watched: the names of the tests.

    Raises:
        InvalidValue: a test holds; the references are as before.
    """
    refs = [i for i, v in enumerate(jaxpr.binders) if isinstance(v.type, RefType)]
    before = [np.array(x) if i in refs else x for i, x in enumerate(args)]
    results = evaluate(jaxpr, args)
    name = invalid_name([*results, *[args[i] for i in refs]], watched)
    if name is None:
        return results
    for i in refs:
        args[i][...] = before[i]
    raise invalid_value(jaxpr, before, name, "")


def invalid_name(values: Sequence[Value], watched: Sequence[str]) -> str | None:
    """Return the name of the first test that holds for a value; None if none does."""
    return next((n for n in watched if any(map(TESTS[n].holds_for, values))), None)


def invalid_value(jaxpr: Jaxpr, args: Sequence[Value], name: str, call: str) -> InvalidValue:
    """Return the error with the first equation of a program that computes such a value.

    The program is evaluated again, without its side effects; references are copied.

    Args:
        jaxpr: the program.
        args: its arguments; for a reference, its contents before.
        name: the name of the test.
        call: the name of the compiled call, whose results have the value; empty for none.
    """
    quiet = silent(jaxpr)
    if quiet is None:
        return InvalidValue(
            f"invalid value ({name}) in the results of {call or 'an operation'}",
            found="side effects with results, so that it is not evaluated again",
        )
    hit = search(first_state(quiet, args, keeps=False), TESTS[name]).hit
    if hit is not None:
        return _of_equation(hit, name)
    return InvalidValue(
        f"invalid value ({name}) in the results of the compiled call {call}",
        expected="the results of its evaluation on NumPy, which have none",
        remedy="`effax.debug.first_difference(f, effax.jit(f))(*args)` finds where they differ",
    )


def _of_equation(hit: Hit, name: str) -> InvalidValue:
    eqn, path = hit.eqn, " > ".join(hit.frame.path)
    return InvalidValue(
        f"invalid value ({name}) encountered in {eqn.prim.name}" + (f", in {path}" if path else ""),
        equation=str(eqn),
        source=None if eqn.source is None else str(eqn.source),
        remedy=REMEDY.format(name),
    )
