"""Programs that say ``import jax`` run unmodified, with the values that JAX computes.

``programs/*.txt`` are their outputs on jax 0.12.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.drop_in.running import PROGRAMS, output, python
from tests.unit.test_docs import code_of, promised_by, same, words

pytestmark = pytest.mark.slow


def agree(found: str, wanted: str) -> bool:
    """Return whether two outputs are equal, up to the rounding of numbers."""
    pairs = list(zip(words(found), words(wanted), strict=True))
    return all(same(a.strip("%:,"), b.strip("%:,")) for a, b in pairs)


@pytest.mark.parametrize(("name", "args"), [("digits", ["20"]), ("recurrent", [])])
def test_a_script_computes_the_values_of_jax(name: str, args: list[str]) -> None:
    wanted = (PROGRAMS / f"{name}.txt").read_text("utf-8")
    found = output("-m", "effax.drop_in", str(PROGRAMS / f"{name}.py"), *args)
    assert agree(found, wanted), found


def test_a_module_runs_with_its_arguments() -> None:
    found = output("-m", "effax.drop_in", "-m", "digits", "1", cwd=PROGRAMS)
    first = (PROGRAMS / "digits.txt").read_text("utf-8").splitlines()[0]
    assert agree(found.splitlines()[0], first)


SCRIPT = """
import sys
import jax
import beside
print(__name__, __file__ == sys.argv[0], sys.argv[1:], beside.jax is jax)
sys.exit(3)
"""


def test_a_script_sees_what_python_shows_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    (tmp_path / "beside.py").write_text("import jax", "utf-8")
    run = python("-m", "effax.drop_in", str(script), "--flag", "-m")
    assert run.stdout == "__main__ True ['--flag', '-m'] True\n"
    assert run.returncode == 3, run.stderr


def test_the_examples_of_the_page_print_the_promised_output() -> None:
    page = Path(__file__).parents[3] / "docs" / "drop-in.md"
    assert agree(output("-c", code_of(page)), "\n".join(text for _, text in promised_by(page)))
