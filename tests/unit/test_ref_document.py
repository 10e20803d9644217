"""The document on the semantics of references, run line by line.

Its runner is not part of this repository. It is looked for in `shared/tools`, in the checkout or
beside it, or where the environment variable EFFAX_REF_DOCUMENT says.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
VARIABLE = "EFFAX_REF_DOCUMENT"
PLACES = [root / "shared" / "tools" / "run_ref_seed.py" for root in (CHECKOUT, CHECKOUT.parent)]


@pytest.mark.slow
def test_every_row_of_the_document_holds() -> None:
    found = next((place for place in PLACES if place.is_file()), PLACES[-1])
    runner = Path(os.environ.get(VARIABLE, found))
    if not runner.is_file():
        assert VARIABLE not in os.environ, f"{VARIABLE} names no file: {runner}"
        pytest.skip(f"the document's runner is not at {runner}; {VARIABLE} may say where it is")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, str(runner), "effax"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 of 30 rows" in done.stdout
