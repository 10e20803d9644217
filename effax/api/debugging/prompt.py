"""A prompt for a session: commands from a terminal, a file or a pipe."""

from __future__ import annotations

import sys
from cmd import Cmd
from collections.abc import Callable
from difflib import get_close_matches
from typing import Final, TextIO, TypeVar

from effax.api.debugging.display import path_text
from effax.api.debugging.session import AROUND, Session
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.text.printer import pretty

T = TypeVar("T")

SHORT: Final = {
    "s": "step",
    "i": "into",
    "o": "out",
    "c": "continue",
    "r": "run",
    "b": "break",
    "u": "undo",
    "p": "print",
    "l": "list",
    "v": "values",
    "w": "where",
    "h": "help",
    "q": "quit",
    "EOF": "quit",
}
"""Abbreviations of commands."""


def prompt(session: Session, stdin: TextIO | None = None, stdout: TextIO | None = None) -> Session:
    """Read commands for a session, and return the session that they lead to.

    ``help`` lists the commands. Input that is not a terminal is echoed, so that a script's output
    reads like a dialogue; the end of the input ends it.

    Args:
        session: the first session.
        stdin: the input; standard input by default.
        stdout: the output; standard output by default.
    """
    made = Prompt(session, stdin, stdout)
    made.cmdloop()
    return made.session


class Prompt(Cmd):
    """The commands; each changes the present session.

    Attributes:
        session: the present session.
        failed: whether a command failed.
    """

    prompt: str = "(effax) "
    doc_header = "Commands (type help COMMAND):"

    def __init__(
        self, session: Session, stdin: TextIO | None = None, stdout: TextIO | None = None
    ) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.session: Session = session
        self.failed: bool = False
        self._level = 0
        self.use_rawinput: bool = self.stdin is sys.stdin and self.stdin.isatty()
        if not self.use_rawinput:
            self.prompt = ""

    def preloop(self) -> None:
        self._show(str(self.session))

    def precmd(self, line: str) -> str:
        if not self.use_rawinput and line != "EOF":
            self._show(f"{type(self).prompt}{line.strip()}")
        return line

    def onecmd(self, line: str) -> bool:
        """RegionRun one command. Return whether it is the last one."""
        word, _, rest = line.strip().partition(" ")
        if word.startswith("#"):
            return False
        word = SHORT.get(word, word)
        try:
            return bool(super().onecmd(f"{word} {rest}".strip()))
        except EffaxError as error:
            self.failed = True
            self._show(f"error: {error}")
        except KeyboardInterrupt:
            self._show("interrupted")
        return False

    def emptyline(self) -> bool:
        """Repeat nothing."""
        return False

    def default(self, line: str) -> None:
        """Raise BadArgument: the command is unknown."""
        word = line.split(maxsplit=1)[0]
        commands = [name[3:] for name in self.get_names() if name.startswith("do_")]
        close = get_close_matches(word, commands, 1)
        raise BadArgument(
            f"unknown command {word!r}",
            expected=f"`{close[0]}`" if close else ", ".join(sorted(commands)),
            remedy="`help` lists the commands",
        )

    def do_help(self, arg: str) -> None:
        """help [COMMAND]: list the commands, or describe one."""
        word = SHORT.get(arg.strip(), arg.strip())
        if word and not hasattr(self, f"do_{word}"):
            self.default(word)
        if word:
            self._show(_help_of(getattr(self, f"do_{word}")))
            return
        names = sorted(name for name in self.get_names() if name.startswith("do_"))
        lines = [_help_of(getattr(self, name)).splitlines()[0] for name in names]
        shorts = ", ".join(f"{k} {v}" for k, v in SHORT.items() if k != "EOF")
        self._show("\n".join([*lines, f"abbreviations: {shorts}"]))

    def do_step(self, arg: str) -> None:
        """step [N]: evaluate the next equation, or N, with the programs that they run."""
        self._go(self.session.step(self._number(arg, 1)))

    def do_into(self, arg: str) -> None:
        """into [N]: evaluate the next equation; enter the program that it runs."""
        self._go(self.session.into(self._number(arg, 1)))

    def do_out(self, arg: str) -> None:
        """out: evaluate to the end of the equation that runs this program."""
        self._nothing(arg)
        self._go(self.session.out())

    def do_continue(self, arg: str) -> None:
        """continue [N]: evaluate to the next break or to the end; at most N equations."""
        self._go(self.session.go(self._number(arg, None)))

    def do_run(self, arg: str) -> None:
        """run: evaluate from the start to the first break, or to the end."""
        self._nothing(arg)
        self._go(self.session.run())

    def do_restart(self, arg: str) -> None:
        """restart: return to the start; breaks stay."""
        self._nothing(arg)
        self._go(self.session.restart())

    def do_back(self, arg: str) -> None:
        """back [N]: return to the point before the last equation, or N equations before."""
        self._go(self.session.back(self._number(arg, 1)))

    def do_undo(self, arg: str) -> None:
        """undo: return to the point before the last command that moved."""
        self._nothing(arg)
        self._go(self.session.undo())

    def do_find(self, arg: str) -> None:
        """find nan|inf|out_of_bounds: evaluate to the first equation with such a result."""
        self._go(self.session.find(arg.strip() or "nan"))

    def do_break(self, arg: str) -> None:
        """break PLACE [if CONDITION]: stop before an equation.

        break 3                 an equation of this program, by number
        break c                 the equation that binds a variable
        break primitive sin     equations of a primitive
        break line model.py:12  equations of a line; of any file: line 12
        break write r           writes to a reference
        break if nan            a condition alone: at every equation
        A condition is nan, inf, out_of_bounds, or an expression of Python with the names of
        variables and arguments, value (the first result), ins, outs and np: value.max() > 3
        """
        place, _, condition = f" {arg.strip()}".partition(" if ")
        when = condition.strip() or None
        kind, _, rest = place.strip().partition(" ")
        session = self.session
        if kind == "primitive" and rest:
            made = session.break_at(primitive=rest.strip(), when=when)
        elif kind == "line" and rest:
            made = session.break_at(line=rest.strip(), when=when)
        elif kind == "write" and rest:
            made = session.break_at(write=rest.strip(), when=when)
        elif rest:
            raise BadArgument(
                "this is not a place for a break",
                expected="a number, a variable, or `primitive`, `line`, `write` and a name",
                found=place.strip(),
            )
        else:
            made = session.break_at(kind or None, when=when)
        self.session = made
        self._show(f"break {len(made.breaks)}: {made.breaks[-1].text}")

    def do_breaks(self, arg: str) -> None:
        """breaks: list the breaks."""
        self._nothing(arg)
        lines = [f"{i}: {b.text}" for i, b in enumerate(self.session.breaks, 1)]
        self._show("\n".join(lines) or "no breaks")

    def do_clear(self, arg: str) -> None:
        """clear [N]: remove a break, or all."""
        self.session = self.session.clear(self._number(arg, None))
        self.do_breaks("")

    def do_print(self, arg: str) -> None:
        """print EXPRESSION: show a value: a variable, an argument, or an expression of them."""
        self._show(self.session.shown(self._some(arg, "print"), self._level))

    def do_stats(self, arg: str) -> None:
        """stats EXPRESSION: show the extremes, mean, zeros, nans and infinities of a value."""
        self._show(str(self.session.stats(self._some(arg, "stats"), self._level)))

    def do_history(self, arg: str) -> None:
        """history REFERENCE: list the writes to a reference, with contents before and after."""
        self._show(self.session.history_text(self._some(arg, "history"), self._level))

    def do_origin(self, arg: str) -> None:
        """origin VARIABLE: list the equations and arguments that a value came from."""
        self._show(self.session.origins_text(self._some(arg, "origin"), self._level))

    def do_where(self, arg: str) -> None:
        """where: show the equations that run this program, outermost first."""
        self._nothing(arg)
        frames = [*self.session.state.frame.outwards()]
        lines = []
        for level in reversed(range(len(frames))):
            mark = "*" if level == self._level else " "
            path = path_text(frames[level].path, self.session.call.label)
            lines += [f"{mark} {path}", self.session.listing(0, level)]
        self._show("\n".join(lines))

    def do_up(self, arg: str) -> None:
        """up: look at the program that runs this one."""
        self._nothing(arg)
        self._look(self._level + 1)

    def do_down(self, arg: str) -> None:
        """down: look at the program that this one runs."""
        self._nothing(arg)
        self._look(self._level - 1)

    def do_list(self, arg: str) -> None:
        """list [N|all]: show the equations around the next one."""
        around = None if arg.strip() == "all" else self._number(arg, AROUND)
        self._show(self.session.listing(around, self._level))

    def do_values(self, arg: str) -> None:
        """values: show the values of all inputs and variables of this program."""
        self._nothing(arg)
        self._show(self.session.values(self._level))

    def do_program(self, arg: str) -> None:
        """program: show the whole program."""
        self._nothing(arg)
        self._show(pretty(self.session.call.jaxpr))

    def do_result(self, arg: str) -> None:
        """result: show the result of the function, after its end."""
        self._nothing(arg)
        self._show(str(self.session.result))

    def do_quit(self, arg: str) -> bool:
        """quit: end."""
        self._nothing(arg)
        return True

    def _go(self, session: Session) -> None:
        self.session, self._level = session, 0
        self._show(str(session))

    def _look(self, level: int) -> None:
        shown = self.session.listing(AROUND, level)
        self._level = level
        self._show(shown)

    def _show(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def _nothing(self, arg: str) -> None:
        if arg.strip():
            raise BadArgument("this command takes no arguments", found=arg.strip())

    def _some(self, arg: str, command: str) -> str:
        if not arg.strip():
            raise BadArgument(f"{command} takes a name", remedy="`values` lists them")
        return arg.strip()

    def _number(self, arg: str, default: T) -> int | T:
        if not arg.strip():
            return default
        if not arg.strip().isdecimal() or int(arg) == 0:
            raise BadArgument("this is not a number of equations", "1 or more", arg.strip())
        return int(arg)


def _help_of(command: Callable[..., object]) -> str:
    lines = (command.__doc__ or "").strip().splitlines()
    return "\n".join([lines[0], *[f"  {line.strip()}" for line in lines[1:] if line.strip()]])
