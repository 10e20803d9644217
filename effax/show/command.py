"""The command line: ``python -m effax show module:function``, and ``debug``."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from effax.arrays.config import enable_x64
from effax.ir.analysis.cost.count import count_cost
from effax.ir.errors import BadArgument, EffaxError, ParseError
from effax.ir.syntax import Jaxpr
from effax.ir.text.printer import pretty
from effax.show.debug_command import add_parser, debug
from effax.show.passes_by_name import STEPS, after
from effax.show.pictures import compare, compare_html, html, svg, timeline
from effax.show.target import named, program_of

USAGE: Final = 2
"""The exit status if an argument is not valid."""

FAILED: Final = 1
"""The exit status if tracing, a pass or lowering fails."""

EXAMPLES: Final = """examples:
  python -m effax show model:loss --args "f32[3,4], i32[3]"
  python -m effax show model:step --args '{"w": Ref{f32[3,3]}}, x=f32[8,3]' --to html -o step.html
  python -m effax show model.py:loss --args "f32[3]" --passes jvp,dce --compare --to svg -o jvp.svg
  python -m effax show program.txt --to timeline -o program.svg

types are written as programs print them: f32[3,4], bf16[], i32[8], bool[2], ~f32[] (weak),
Ref{f32[3]} (a reference); tuples, lists and dicts of types are arguments too, and so are numbers
"""


def _stablehlo(jaxpr: Jaxpr) -> str:
    from effax.lowering.program import stablehlo_of

    return stablehlo_of(jaxpr)[1].text


def _text(jaxpr: Jaxpr) -> str:
    return pretty(jaxpr, effects=True)


def _cost(jaxpr: Jaxpr) -> str:
    return str(count_cost(jaxpr))


FORMS: Final[Mapping[str, Callable[[Jaxpr], str]]] = {
    "jaxpr": _text,
    "html": html,
    "svg": svg,
    "timeline": timeline,
    "stablehlo": _stablehlo,
    "cost": _cost,
}
"""The output formats."""

COMPARED: Final[Mapping[str, Callable[[Jaxpr, Jaxpr], str]]] = {
    "html": compare_html,
    "svg": compare,
}


def parser() -> ArgumentParser:
    """Return the parser of the command line."""
    whole = ArgumentParser(prog="python -m effax", description="Programs as values, from a shell.")
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    show = commands.add_parser(
        "show",
        help="print or draw the program of a function",
        description="Print or draw the program of a function.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    show.add_argument(
        "target",
        help="module:function, file.py:function, or a file with the text of a program",
    )
    show.add_argument("--args", metavar="TYPES", help="the types of the function's arguments")
    show.add_argument(
        "--static",
        metavar="NAMES",
        default="",
        help="arguments that are values, not types: names or positions, with commas between them; "
        "strings are",
    )
    show.add_argument(
        "--passes",
        metavar="NAMES",
        default="",
        help="passes to run first, with commas between them: module:name for your own, or "
        f"{', '.join(sorted(STEPS))}",
    )
    show.add_argument(
        "--to", choices=FORMS, default="jaxpr", help="the output format (default: jaxpr)"
    )
    show.add_argument(
        "--compare",
        action="store_true",
        help="show the program before and after the passes, side by side (html and svg)",
    )
    show.add_argument("--x64", action="store_true", help="allow types that are 64 bits wide")
    show.add_argument(
        "-o", "--out", metavar="FILE", type=Path, help="write to a file (default: standard output)"
    )
    add_parser(commands)
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    asked = parser().parse_args(argv)
    try:
        with enable_x64(asked.x64):
            if asked.command == "debug":
                return debug(asked)
            shown = _shown(asked)
        _write(shown, asked.out)
    except (BadArgument, ParseError) as error:
        return _failed(str(error), USAGE)
    except EffaxError as error:
        return _failed(str(error), FAILED)
    except BrokenPipeError:
        # The reader closed the pipe. Without this, Python reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _failed(f"cannot write {asked.out}: {error.strerror}", USAGE)
    return 0


def _shown(asked: Namespace) -> str:
    if asked.compare and asked.to not in COMPARED:
        raise BadArgument(
            "this format cannot be compared",
            expected=" or ".join(f"--to {form}" for form in COMPARED),
            found=f"--to {asked.to}",
        )
    before = program_of(asked.target, asked.args, asked.static)
    made = after(before, asked.passes, named)
    if asked.compare:
        return COMPARED[asked.to](before, made)
    if asked.to == "html":
        return html(made, title=_title(asked.target))
    return FORMS[asked.to](made)


def _title(target: str) -> str:
    """Return the title of a page: the function, or the file of the program."""
    place, _, name = target.rpartition(":")
    return name if place else Path(target).name


def _write(shown: str, out: Path | None) -> None:
    ended = shown if shown.endswith("\n") else f"{shown}\n"
    if out is not None:
        out.write_text(ended, encoding="utf-8")
        return
    # Pictures contain characters that the terminal's encoding may lack.
    sys.stdout.buffer.write(ended.encode())
    sys.stdout.flush()


def _failed(message: str, status: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return status
