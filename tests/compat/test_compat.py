"""Libraries and scripts that say ``import jax`` run unmodified, with the values that JAX computes.

The files ``*.txt`` are their outputs on jax 0.12; ``record.py`` writes them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.programs import (
    LIBRARIES,
    PYTHON,
    ROOT,
    SCRIPTS,
    Program,
    difference,
    table,
)

pytestmark = pytest.mark.slow

installed = pytest.mark.skipif(
    not PYTHON.exists(), reason="the libraries are not installed: make compat"
)


@installed
@pytest.mark.parametrize("program", [*LIBRARIES, *SCRIPTS], ids=lambda program: program.name)
def test_a_program_prints_what_it_prints_on_jax(program: Program) -> None:
    run = program.run(PYTHON, "-m", "effax.drop_in", path=str(ROOT))
    assert not run.returncode, run.stderr
    differs = difference(run.stdout, program.stored.read_text("utf-8"))
    assert differs is None, differs


def test_every_library_of_the_requirements_is_one_that_needs_no_jax() -> None:
    lines = (Path(__file__).parent / "requirements.txt").read_text("utf-8").splitlines()
    assert not [line for line in lines if line.startswith("jax==")]
    assert all("==" in line for line in lines if not line.startswith("#"))


def test_the_page_has_the_table(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "drop-in.md"
    before, _, rest = page.read_text("utf-8").partition("| with |")
    after = rest[rest.index("\n\n") :]
    wanted = before + table() + after
    if request.config.getoption("--update-golden"):
        page.write_text(wanted, "utf-8")
    assert page.read_text("utf-8") == wanted, "rewrite it: pytest tests/compat --update-golden"


def test_outputs_agree_up_to_rounding() -> None:
    assert difference("x [1.0\n 2.]", "x [ 1.  2.00001]") is None
    assert difference("x 1.0", "x 1.1") is not None
    assert difference("x 1.0", "y 1.0") is not None
    assert difference("x 1 2", "x 1") is not None
    assert difference("x 1", "x 1\nx 1") is not None
    assert difference("nan -inf 1e-9", "nan -inf 0") is None
