"""Checkpoints of several processes: a run that loses some of them ends as one that does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import effax as jax

pytestmark = pytest.mark.slow

LIMIT = 120
"""Seconds that a run may take."""
ROOT = Path(__file__).parents[3]
Losses = dict[int, set[str]]


def start(folder: Path, kind: str) -> tuple[int, str]:
    """Run the program on two processes of two devices; return its status and its output."""
    launch = [sys.executable, "-m", "effax.launch", "-n", "2", "--devices", "2", "--restarts", "2"]
    program = [str(Path(__file__).parent / "train.py"), str(folder), kind]
    done = subprocess.run(
        [*launch, "--grace", "1", *program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def losses(text: str) -> Losses:
    found: Losses = {}
    for step, loss in re.findall(r"loss (\d+) (\S+)", text):
        found.setdefault(int(step), set()).add(loss)
    return found


def test_losses_are_those_of_an_undisturbed_run_bit_for_bit(tmp_path: Path) -> None:
    start_state = {
        "table": np.ones((8, 3), np.float32),
        "shared": np.zeros(3, np.float32),
        "key": jax.random.key(3),
        "step": 0,
    }
    for kind in ("quiet", "disturbed"):
        jax.checkpoint.CheckpointManager(tmp_path / kind).save(0, start_state)
    status, quiet = start(tmp_path / "quiet", "quiet")
    assert status == 0, quiet
    # Process 1 is killed, and all start again; then the launcher is killed.
    status, first = start(tmp_path / "disturbed", "disturbed")
    assert status == -9 and "process 1 was ended by SIGKILL" in first, first
    manager = jax.checkpoint.CheckpointManager(tmp_path / "disturbed")
    assert manager.latest_step() in (3, 4)
    status, second = start(tmp_path / "disturbed", "quiet")
    assert status == 0 and manager.latest_step() == 6, second
    wanted = losses(quiet)
    assert sorted(wanted) == list(range(6)) and losses(first + second) == wanted
    assert len({*losses(first)} & {*losses(second)}) > 0
    ends = [
        jax.checkpoint.CheckpointManager(tmp_path / k).restore() for k in ("quiet", "disturbed")
    ]
    assert ends[0]["['table']"].shape == (8, 3) and len(manager.all_steps()) == 2
    for name, x in ends[0].items():
        assert str(x) == str(ends[1][name])
