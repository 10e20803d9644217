"""What must type check does, and what must not does not: mypy is the judge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
EXPECTED = re.compile(r"#\s*E:\s*(?P<code>[\w-]+)")


def judged(path: Path) -> set[tuple[int, str]]:
    """The (line, error code) pairs that mypy finds in a program."""
    api = pytest.importorskip("mypy.api", reason="mypy is not installed (extra `dev`)")
    out, _, _ = api.run([str(path), "--no-error-summary", "--hide-error-context"])
    found = re.findall(rf"^{re.escape(str(path))}:(\d+): error: .*\[([\w-]+)\]$", out, re.MULTILINE)
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
