"""The arguments of ``python -m effax.launch``."""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Final

from effax.ir.errors import EffaxError
from effax.launch.workers import LaunchOptions, launch

DESCRIPTION: Final = """Start N processes of one program, which compute together.

Each process joins the others when it first uses XLA, or by `effax.distributed.initialize()`:
`effax.devices()` then lists the devices of all. Lines of output begin with the number of their
process. When a process fails, the others get an error, and are ended; the exit status is that of
the first process that failed, 128 plus its number for a signal."""

EXAMPLES: Final = """examples:
  python -m effax.launch -n 4 --devices 2 train.py --steps 100
  python -m effax.launch -n 4 --restarts 3 -m package.train
"""


def _at_least(least: int, text: str) -> int:
    if not text.isdigit() or int(text) < least:
        raise ArgumentTypeError(f"expected a whole number, at least {least}, got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    return _at_least(1, text)


def _count(text: str) -> int:
    return _at_least(0, text)


def parser() -> ArgumentParser:
    """Return the parser of the command line."""
    made = ArgumentParser(
        "python -m effax.launch",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    made.add_argument("-n", "--processes", type=_positive, required=True, metavar="N")
    made.add_argument(
        "--devices", type=_positive, metavar="K", help="CPU devices of each process (default: 1)"
    )
    made.add_argument(
        "--restarts",
        type=_count,
        default=0,
        metavar="R",
        help="how often all processes are started again after a failure (default: %(default)s)",
    )
    made.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address of this machine to which all sockets are bound (default: %(default)s)",
    )
    made.add_argument(
        "--heartbeat",
        type=_positive,
        default=100,
        metavar="S",
        help="seconds after which a silent process counts as lost (default: %(default)s)",
    )
    made.add_argument(
        "--timeout",
        type=_positive,
        default=600,
        metavar="S",
        help="seconds that a process waits for another in a computation (default: %(default)s)",
    )
    made.add_argument(
        "--grace",
        type=_count,
        default=10,
        metavar="S",
        help="seconds that processes have to end after another failed (default: %(default)s)",
    )
    made.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module")
    made.add_argument("program", help="a Python file, or after -m a module")
    made.add_argument("arguments", nargs=REMAINDER, help="the arguments of the program")
    return made


def main(args: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    given = parser().parse_args(args)
    options = LaunchOptions(
        command=(sys.executable, *["-m"] * given.module, given.program, *given.arguments),
        processes=given.processes,
        devices=given.devices,
        restarts=given.restarts,
        host=given.host,
        heartbeat=given.heartbeat,
        timeout=given.timeout,
        grace=given.grace,
    )
    try:
        return launch(options)
    except EffaxError as error:
        sys.stderr.write(f"effax.launch: {error}\n")
        return 1
