"""Command line: ``python -m effax.drop_in script.py args``, or ``-m module args``."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from effax.drop_in.finder import install

USAGE: Final = """usage: python -m effax.drop_in (script.py | -m module) [args ...]

Run a program that says `import jax` on effax.
"""


def main(args: Sequence[str]) -> int:
    """Run the program that the arguments name; return the exit status of a usage error."""
    if args[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if args[:1] == ["-m"] and len(args) > 1:
        _run_module(args[1], args[2:])
    elif args and not args[0].startswith("-"):
        _run_script(args[0], args[1:])
    else:
        sys.stderr.write(USAGE)
        return 2
    return 0


def _run_module(module: str, args: Sequence[str]) -> None:
    install()
    # Python put the working directory first in the path, as `-m` does.
    sys.argv = [module, *args]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _run_script(script: str, args: Sequence[str]) -> None:
    install()
    sys.argv = [script, *args]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
