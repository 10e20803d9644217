"""The programs, how one runs, how outputs compare, and the table of the page docs/drop-in.md."""

from __future__ import annotations

import ast
import math
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent
PYTHON: Final = ROOT / ".venv-compat" / "bin" / "python"
"""An environment with the libraries, without JAX and without effax."""

PACKAGES: Final = {"haiku": "dm-haiku", "flax_linen": "flax", "flax_nnx": "flax"}
"""Packages whose libraries have another name."""


@dataclass(frozen=True)
class Program:
    """A script, and the output that it has on JAX."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def library(self) -> str:
        """Return the library that it shows, or ``""`` for a script that needs JAX alone."""
        return self.name.rpartition("_")[0] if self.path.parent.name == "libraries" else ""

    @property
    def title(self) -> str:
        title = ast.get_docstring(ast.parse(self.path.read_text("utf-8")))
        assert title is not None, self.path
        return title.removesuffix(".")

    @property
    def stored(self) -> Path:
        """Return the file of its output on JAX, which ``record.py`` writes."""
        return self.path.with_suffix(".txt")

    def run(
        self, python: str | Path, *args: str, path: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run it in a process of its own, on one device."""
        command = [str(python), "-W", "ignore", *args, str(self.path)]
        env = {"PYTHONPATH": path, "PATH": "", "JAX_PLATFORMS": "cpu"}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=env
        )


def programs(folder: str) -> list[Program]:
    return [Program(path) for path in sorted((HERE / folder).glob("*.py"))]


LIBRARIES: Final = programs("libraries")
SCRIPTS: Final = programs("scripts")

NUMBER: Final = r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan\b|inf\b)"
TOKEN: Final = re.compile(rf"{NUMBER}|\w+|[^\w\s]")


def difference(found: str, wanted: str) -> str | None:
    """Return the first lines that differ, up to white space and the rounding of numbers."""
    lines, expected = _entries(found), _entries(wanted)
    if len(lines) != len(expected):
        return f"{len(lines)} lines, expected {len(expected)}:\n{found}"
    for line, other in zip(lines, expected, strict=True):
        if not _agree(line, other):
            return f"found    {line}\nexpected {other}"
    return None


def _entries(output: str) -> list[str]:
    """Return the lines of an output; a line that begins with a space continues an array."""
    return re.sub(r"\n +", " ", output).splitlines()


def _agree(line: str, other: str) -> bool:
    pairs = zip(TOKEN.findall(line), TOKEN.findall(other), strict=False)
    same = len(TOKEN.findall(line)) == len(TOKEN.findall(other))
    return same and all(_same(a, b) for a, b in pairs)


def _same(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    try:
        return math.isclose(float(found), float(wanted), rel_tol=5e-4, abs_tol=2e-5)
    except ValueError:
        return False


def table() -> str:
    """Return the table of the page, in Markdown."""
    rows = [_row(program) for program in (*LIBRARIES, *SCRIPTS)]
    return "\n".join(["| with | version | what runs |", "|---|---|---|", *rows])


def _row(program: Program) -> str:
    library = program.library
    named = f"{library} | {version(library)}" if library else "JAX alone | "
    return f"| {named.replace('_', '.')} | {program.title} |"


def version(library: str) -> str:
    """Return the version of a library that the requirements pin."""
    package = PACKAGES.get(library, library)
    text = (HERE / "requirements.txt").read_text("utf-8")
    found = re.search(rf"^{package}==(\S+)$", text, re.MULTILINE)
    assert found is not None, library
    return found[1]
