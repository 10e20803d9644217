"""Laws as functions, and the report of a broken one: what differs, and a test to paste."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from textwrap import indent
from typing import ParamSpec

from effax.ir.syntax import Jaxpr
from effax.testing.passes import Passes
from effax.testing.values import Differs, is_chaotic

P = ParamSpec("P")


class LawBroken(AssertionError):
    """A law does not hold for a program; the message has the program, and a test to paste."""


def law(check: Callable[P, None]) -> Callable[P, None]:
    """Make a law of a function that raises where it does not hold; its docstring is the equation.

    Whatever it raises becomes a ``LawBroken`` that tells for which program.
    """
    parameters = signature(check)

    @wraps(check)
    def held(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            check(*args, **kwargs)
        except Exception as error:
            given = parameters.bind(*args, **kwargs).arguments
            if isinstance(error, Differs) and _is_chaotic(given):
                return
            raise LawBroken(_report(check.__name__, check.__doc__, given, error)) from error

    return held


def _is_chaotic(given: Mapping[str, object]) -> bool:
    """Whether rounding decides what a program gives: then its numbers say nothing.

    Such a program compares what is equal but for rounding.
    """
    seed = given.get("seed", 0)
    return isinstance(seed, int) and any(
        isinstance(value, Jaxpr) and is_chaotic(value, seed) for value in given.values()
    )


def _report(name: str, doc: str | None, given: Mapping[str, object], error: Exception) -> str:
    equation = (doc or name).split("\n\n", maxsplit=1)[0].removesuffix(".")
    what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return (
        f"a law is broken: {name}\n  {equation}\n\n{indent(what, '  ')}\n\n"
        f"As a test:\n\n{regression_test(name, given)}"
    )


def regression_test(name: str, given: Mapping[str, object]) -> str:
    """The source of a test that holds the law for these arguments."""
    lines = []
    args = []
    for parameter, value in given.items():
        if isinstance(value, Jaxpr):
            lines.append(f"    {parameter} = parse('''\n{indent(str(value), '        ')}\n    ''')")
            args.append(parameter)
        elif isinstance(value, Passes):
            # The library's own passes are the default; others are known to who gave them.
            continue
        else:
            args.append(f"{parameter}={value!r}" if args else repr(value))
    return "\n".join([f"def test_{name}() -> None:", *lines, f"    laws.{name}({', '.join(args)})"])
