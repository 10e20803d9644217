"""What must type check does, and what must not does not: mypy is the judge."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = PROGRAMS.parents[2]
EXPECTED = re.compile(r"#\s*E:\s*(?P<code>[\w-]+)")


def judged(path: Path) -> set[tuple[int, str]]:
    """The (line, error code) pairs that mypy finds in a program."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed (extra `dev`)")
    command = (sys.executable, "-m", "mypy", "--no-error-summary", str(path.relative_to(ROOT)))
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(rf"{path.name}:(\d+): error: .*\[([\w-]+)\]$", run.stdout, re.MULTILINE)
    return {(int(line), code) for line, code in found}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("[a-z]*.py")), ids=lambda p: p.stem)
def test_exactly_the_marked_lines_are_errors(path: Path) -> None:
    lines = path.read_text().splitlines()
    marked = {
        (number, match["code"])
        for number, line in enumerate(lines, 1)
        for match in EXPECTED.finditer(line)
    }
    assert judged(path) == marked
