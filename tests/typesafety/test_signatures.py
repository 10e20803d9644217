"""The programs type check except for the marked lines, by mypy and by pyright."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = PROGRAMS.parents[2]
EXPECTED = re.compile(r"#\s*E:\s*(?P<codes>[\w-]+(?:, [\w-]+)*)")


PAGES = ("primitives.md",)
"""Pages of docs/ whose code must type check."""


def judged(path: Path) -> set[tuple[int, str]]:
    """Return the (line, error code) pairs that mypy reports for a program."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed (extra `dev`)")
    command = (sys.executable, "-m", "mypy", "--no-error-summary", str(path))
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(rf"{path.name}:(\d+): error: .*\[([\w-]+)\]$", run.stdout, re.MULTILINE)
    return {(int(line), code) for line, code in found}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("[a-z]*.py")), ids=lambda p: p.stem)
def test_exactly_the_marked_lines_are_errors(path: Path) -> None:
    assert judged(path) == marked(path)


def marked(path: Path) -> set[tuple[int, str]]:
    """Return the (line, error code) pairs that a program marks."""
    return {
        (number, code)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in EXPECTED.finditer(line)
        for code in match["codes"].split(", ")
    }


def test_pyright_finds_errors_in_the_marked_lines_and_in_no_other() -> None:
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed (extra `dev`)")
    found: set[tuple[str, int]] = set()
    for path, line in pyright_errors():
        found.add((path.name, line))
    programs = sorted(PROGRAMS.glob("[a-z]*.py"))
    assert found == {(path.name, line) for path in programs for line, _ in marked(path)}


def pyright_errors() -> list[tuple[Path, int]]:
    """Return pyright's errors in all programs."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    config = ("-p", str(PROGRAMS.parent / "pyright.json"), "--pythonpath", sys.executable)
    command = (sys.executable, "-m", "pyright", *config, "--outputjson")
    env = os.environ | {"PATH": path}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    return [
        (Path(d["file"]), d["range"]["start"]["line"] + 1)
        for d in report["generalDiagnostics"]
        if d["severity"] == "error"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_is_typed(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    program = tmp_path / f"{Path(page).stem}_page.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), "utf-8")
    assert not judged(program)
