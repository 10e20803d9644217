"""``debug.breakpoint``: a prompt in the frames of the user's functions while a program runs."""

from __future__ import annotations

import linecache
import sys
from cmd import Cmd
from collections.abc import Iterator, Mapping
from pprint import pformat
from types import FrameType
from typing import Final, NamedTuple, TextIO, final

from effax import tree
from effax.api.host_functions import TreeFunction, array_leaves
from effax.arrays.binding import bind
from effax.arrays.ref import Ref
from effax.arrays.ref_view import RefView
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.prims import DebugCallback
from effax.ir.source import is_library
from effax.tree import PyTree


class Interrupted(EffaxError, RuntimeError):
    """A run was ended at a breakpoint."""


def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: PyTree = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> PyTree:
    """Read commands when the program runs, with the values of the local variables.

    ``help`` lists the commands: ``p`` evaluates an expression, ``u`` and ``d`` go to other frames,
    ``c`` continues, ``q`` ends the run. Local variables that are references are not available.
    ``debug.explore`` steps through a whole call instead, forward and back.

    Args:
        backend: ``"cli"`` or None: the prompt of this library.
        filter_frames: whether the library's own frames are left out.
        num_frames: the number of frames that are available; None: all.
        ordered: whether ordered calls of Python run in program order.
        token: a tree of arrays that is returned; None for none.
        stdin: the input; standard input by default.
        stdout: the output; standard output by default.

    Returns:
        ``token``.

    Raises:
        BadArgument: the backend does not exist.
    """
    if backend not in (None, "cli"):
        raise BadArgument(
            "debug.breakpoint: unknown backend", expected="None or 'cli'", found=repr(backend)
        )
    frames = [*_frames(sys._getframe(1), filter_frames)][:num_frames]
    variables = [frame.variables for frame in frames]
    places = tuple([frame.place for frame in frames])

    def stop(*given: Mapping[str, object]) -> None:
        BreakpointPrompt(places, given, stdin, stdout).cmdloop()

    operands, treedef, fixed = array_leaves(variables, {}, "debug.breakpoint", others=True)
    function = TreeFunction(stop, treedef, fixed, "breakpoint")
    bind(DebugCallback(function, bool(ordered)), *operands)
    return token


class CodePlace(NamedTuple):
    """The place of a frame in the user's code, and its global variables."""

    file: str
    line: int
    function: str
    globals: Mapping[str, object]

    def __str__(self) -> str:
        return f"{self.file}({self.line}) {self.function}()"


class StackFrame(NamedTuple):
    """A place, and the local variables there that a program can pass."""

    place: CodePlace
    variables: dict[str, object]


def _frames(frame: FrameType | None, filter_frames: bool) -> Iterator[StackFrame]:
    while frame is not None:
        if not (filter_frames and is_library(frame.f_code)):
            code = frame.f_code
            place = CodePlace(code.co_filename, frame.f_lineno, code.co_qualname, frame.f_globals)
            # At the top of a module the local variables are the global ones.
            own = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
            yield StackFrame(place, {name: x for name, x in own.items() if not _has_ref(x)})
        frame = frame.f_back


def _has_ref(x: object) -> bool:
    return any(isinstance(leaf, Ref | RefView) for leaf in tree.leaves(x))


SHORT: Final = {
    "p": "print",
    "pp": "pretty",
    "l": "list",
    "w": "where",
    "bt": "where",
    "u": "up",
    "d": "down",
    "c": "continue",
    "q": "quit",
    "EOF": "continue",
}
"""Abbreviations of commands."""

AROUND: Final = 3
"""The number of lines that are listed before and after the present one."""


@final
class BreakpointPrompt(Cmd):
    """The commands at a breakpoint; the innermost frame is number 0."""

    prompt: str = "(effax) "
    doc_header: str = "Commands (type help COMMAND):"

    def __init__(
        self,
        places: tuple[CodePlace, ...],
        variables: tuple[Mapping[str, object], ...],
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput: bool = stdin is None and sys.stdin.isatty()
        self._places = places
        self._variables = variables
        self._at = 0

    def preloop(self) -> None:
        self._show(f"breakpoint at {self._places[0]}" if self._places else "breakpoint")

    def precmd(self, line: str) -> str:
        head, _, rest = line.partition(" ")
        return f"{SHORT.get(head, head)} {rest}".strip()

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        self.do_print(line)

    def do_print(self, expression: str) -> None:
        """p EXPRESSION: print its value."""
        self._evaluated(expression, repr)

    def do_pretty(self, expression: str) -> None:
        """pp EXPRESSION: print its value over several lines."""
        self._evaluated(expression, pformat)

    def _evaluated(self, expression: str, shown: PyTree) -> None:
        place, variables = self._places[self._at], self._variables[self._at]
        try:
            self._show(shown(eval(expression, dict(place.globals), dict(variables))))
        except Exception as error:  # noqa: BLE001  the expression is the user's
            self._show(f"{type(error).__name__}: {error}")

    def do_list(self, _: str) -> None:
        """l: list the lines around the present one."""
        place = self._places[self._at]
        for number in range(max(1, place.line - AROUND), place.line + AROUND + 1):
            mark = "->" if number == place.line else "  "
            self._show(f"{mark} {number:4} {linecache.getline(place.file, number).rstrip()}")

    def do_where(self, _: str) -> None:
        """w: list the frames, the outermost first."""
        for i, place in reversed([*enumerate(self._places)]):
            self._show(f"{'->' if i == self._at else '  '} {place}")

    def do_up(self, _: str) -> None:
        """u: go to the calling frame."""
        self._go(self._at + 1)

    def do_down(self, _: str) -> None:
        """d: go to the called frame."""
        self._go(self._at - 1)

    def _go(self, at: int) -> None:
        self._at = min(max(at, 0), len(self._places) - 1)
        self._show(str(self._places[self._at]))

    def do_continue(self, _: str) -> bool:
        """c: continue the run."""
        return True

    def do_quit(self, _: str) -> bool:
        """q: end the run with an error."""
        raise Interrupted("the run was ended at a breakpoint")

    def _show(self, text: str) -> None:
        self.stdout.write(f"{text}\n")
