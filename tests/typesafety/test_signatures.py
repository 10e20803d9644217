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


PAGES = ("primitives.md",)
"""Pages of docs/ whose code is typed."""


def judged(path: Path) -> set[tuple[int, str]]:
    """The (line, error code) pairs that mypy finds in a program."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed (extra `dev`)")
    command = (sys.executable, "-m", "mypy", "--no-error-summary", str(path))
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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_is_typed(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    program = tmp_path / f"{Path(page).stem}_page.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), "utf-8")
    assert not judged(program)
