"""The report of a broken law: the error, the program, and a test to paste."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from pyrsistent import PMap

from effax.ir.errors import EffaxError
from effax.ir.registry import own_primitives
from effax.ir.syntax import Jaxpr
from effax.testing.generate.values import Differs
from effax.testing.laws.transformations import Passes
from effax.testing.report.source_text import Written, is_name

if TYPE_CHECKING:
    from effax.testing.laws.law import Law


class Inconclusive(EffaxError, AssertionError):
    """Nothing was tested: no program changed, ended, or met the focus; or no rule applied."""


class LawBroken(AssertionError):
    """A law does not hold; the message has a test to paste.

    Attributes:
        law: the law.
        arguments: the arguments for which it does not hold, by name.
        cause: the error; of another law that it calls, how that one is broken.
        others: names of other laws that do not hold either.
        note: a remark for the reader.
    """

    def __init__(
        self,
        law: Law[...],
        arguments: Mapping[str, object],
        cause: Exception,
        others: Sequence[str] = (),
        note: str = "",
    ) -> None:
        super().__init__(law, arguments, cause, others, note)
        self.law = law
        self.arguments: dict[str, object] = dict(arguments)
        self.cause = cause
        self.others: tuple[str, ...] = tuple(others)
        self.note = note
        self._text: str | None = None

    def __str__(self) -> str:
        # Written on demand: a search looks at the kind of thousands of failures.
        if self._text is None:
            self._text = _report(self)
        return self._text

    @property
    def kind(self) -> tuple[str, str, str]:
        """Return the law, the error, and its place, which do not depend on the program."""
        cause = self.cause
        if isinstance(cause, LawBroken):
            return self.law.name, "LawBroken", " ".join(cause.kind)
        if isinstance(cause, Differs):
            # Differing results and differing contents of references are one kind.
            where = "type" if "another type" in str(cause) else "value"
        elif isinstance(cause, EffaxError):
            where = re.sub(r"\d+", "", cause.what)
        else:
            # The message of an assertion may contain the program.
            *_, last = traceback.walk_tb(cause.__traceback__)
            where = f"{last[0].f_code.co_filename}:{last[1]}"
        return self.law.name, type(cause).__name__, where

    @property
    def root(self) -> Exception:
        """Return the error that was raised in the law, or in laws that it calls."""
        return self.cause.root if isinstance(self.cause, LawBroken) else self.cause

    def with_others(self, others: Sequence[str]) -> LawBroken:
        """Return it with the names of other laws that are broken."""
        return LawBroken(self.law, self.arguments, self.cause, others, self.note)

    def with_note(self, note: str) -> LawBroken:
        """Return it with a note."""
        return LawBroken(self.law, self.arguments, self.cause, self.others, note)


def _report(broken: LawBroken) -> str:
    law, others = broken.law, broken.others
    what = _printed(broken.cause, lambda _: _what(broken.cause))
    note = f"\n\n{broken.note}" if broken.note else ""
    also = f"\n\nAlso broken: {', '.join(others)}" if others else ""
    return (
        f"a law is broken: {law.name}\n  {law.equation}\n\n{indent(what, '  ')}"
        f"{note}{also}\n\n{_test(law, broken.arguments)}"
    )


def _test(law: Law[...], given: Mapping[str, object]) -> str:
    """Return the test to paste; if it cannot be written, the arguments as they print."""
    try:
        return f"As a test:\n\n{regression_test(law, given)}"
    except Exception as error:  # noqa: BLE001  # methods of the caller's values may raise anything
        shown = [f"  {name} = {_printed(value)}" for name, value in given.items()]
        why = f"{type(error).__name__}: {_printed(error, str)}"
        return "\n".join([f"No test can be written ({why}):", "", *shown])


def _printed(value: object, text: Callable[[object], str] = repr) -> str:
    try:
        return text(value)
    except Exception as error:  # noqa: BLE001  # a report never fails
        return f"<{type(value).__name__}, which does not print: {type(error).__name__}>"


def _what(cause: Exception) -> str:
    """Return the message of an error, with its place unless it is a comparison."""
    if isinstance(cause, LawBroken):
        return f"{cause.law.name} does not hold: {cause.law.equation}\n\n{_what(cause.cause)}"
    if isinstance(cause, AssertionError) and str(cause):
        return str(cause)
    place = _place(cause)
    if isinstance(cause, AssertionError):
        return f"the law's assertion fails{place}"
    kind = "" if isinstance(cause, EffaxError) else f"{type(cause).__name__}: "
    return f"{kind}{cause}{place}"


WIDTH: Final = 100
"""The length from which a call is broken into lines."""

_OTHERS: Final = (str(Path(__file__).parents[1]), "site-packages", "dist-packages")


def _place(error: Exception) -> str:
    """Return the last line of the caller's code in a traceback; else the last line of a crash."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not any(other in f.filename for other in _OTHERS)]
    if not frames or (not own and isinstance(error, EffaxError)):
        return ""
    last = (own or frames)[-1]
    line = f": {last.line}" if last.line else ""
    return f"\nat {Path(last.filename).name}, line {last.lineno}{line}"


def _is_usual(value: object) -> bool:
    """Return whether an optional argument can be left out."""
    usual = own_primitives() if isinstance(value, PMap) else Passes()
    return value is None or (isinstance(value, type(usual)) and value == usual)


def regression_test(law: Law[...], given: Mapping[str, object]) -> str:
    """Return the source of a test of the law for these arguments, a complete file."""
    programs = {name: value for name, value in given.items() if isinstance(value, Jaxpr)}
    written = Written(tuple(programs))
    called = written.of(law, "law")
    lines = [f"    {name} = {written.program(jaxpr)}" for name, jaxpr in programs.items()]
    args: list[str] = []
    for name, value in given.items():
        if name in programs:
            args.append(name if len(args) == list(given).index(name) else f"{name}={name}")
        elif name in law.required or not _is_usual(value):
            args.append(f"{name}={written.of(value, name)}")
    call = f"    {called}({', '.join(args)})"
    if len(call) > WIDTH:
        call = "\n".join([f"    {called}(", *(f"        {arg}," for arg in args), "    )"])
    body = [*lines, call]
    head = "\n".join(written.head())
    return "\n".join([head, "", "", f"def {_test_name(law, called, written)}() -> None:", *body])


def _test_name(law: Law[...], called: str, written: Written) -> str:
    """Return a name for the test that its file does not define."""
    name = next(f"test_{name}" for name in (law.name, called, "law") if is_name(f"test_{name}"))
    taken = {known for module in written.homes for known in vars(sys.modules.get(module, sys))}
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
