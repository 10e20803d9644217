"""SciPy and scikit-learn accept effax's arrays where they accept JAX's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.unit.drop_in.running import PROGRAMS, ROOT


@pytest.mark.slow
@pytest.mark.parametrize(("library", "count"), [("scipy", 11), ("sklearn", 3)])
def test_functions_of_other_libraries_return_arrays(library: str, count: int) -> None:
    pytest.importorskip(library)
    pytest.importorskip("array_api_compat" if library == "sklearn" else library)
    command = [sys.executable, "-m", "effax.drop_in", str(PROGRAMS / "array_libraries.py"), library]
    env = os.environ | {"PYTHONPATH": str(ROOT), "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    assert run.stdout.split() == ["same"] * count, run.stderr
