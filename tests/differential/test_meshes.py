"""shard_map over four devices returns the results of JAX, in a separate process with four."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.differential.cases import meshes
from tests.differential.side_by_side import Case, assert_same, cases_of, of_effax

CASES = cases_of(meshes)

SCRIPT = """
import pickle, sys
from tests.differential.side_by_side import of_jax
from tests.differential.test_meshes import CASES
sys.stdout.buffer.write(pickle.dumps({case.__name__: of_jax(case) for case in CASES}))
"""


@pytest.fixture(scope="module")
def theirs() -> dict[str, object]:
    flags = "--xla_force_host_platform_device_count=4"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        check=True,
        cwd=root,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(root)},
    )
    return cast("dict[str, object]", pickle.loads(done.stdout))


@pytest.mark.jax
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_both_sides_agree(case: Case, theirs: dict[str, object]) -> None:
    assert_same(of_effax(case), theirs[case.__name__])
