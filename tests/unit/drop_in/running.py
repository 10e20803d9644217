"""Run programs in a process of their own, in which ``jax`` is effax."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PROGRAMS: Final = Path(__file__).parent / "programs"


def python(*args: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments; every warning is an error."""
    command = [sys.executable, "-W", "error", *args]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )


def output(*args: str, cwd: Path = ROOT) -> str:
    """Return what Python with these arguments prints; raise if it fails."""
    run = python(*args, cwd=cwd)
    assert not run.returncode, run.stderr
    return run.stdout
