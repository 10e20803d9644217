"""The launcher, with processes that use no arrays."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from effax.launch import LaunchOptions, launch, main

pytestmark = pytest.mark.slow

GREET = """
import os, sys
print("hello", os.environ["EFFAX_PROCESS_ID"], "of", os.environ["EFFAX_NUM_PROCESSES"])
print("[Gloo] Rank 0 is connected to 1 peer ranks.")
print(*sys.argv[1:], os.environ["JAX_NUM_CPU_DEVICES"], file=sys.stderr)
"""

FAIL_TWICE = """
import os, sys, time
attempt = int(os.environ["EFFAX_ATTEMPT"])
print("attempt", attempt)
if os.environ["EFFAX_PROCESS_ID"] == "1" and attempt < 2:
    sys.exit(3)
"""

KILLED = """
import os, signal, time
if os.environ["EFFAX_PROCESS_ID"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(100)
"""

INTERRUPTED = """
import os, signal, sys, time
if os.environ["EFFAX_PROCESS_ID"] == "0":
    sys.exit(3)
time.sleep(1)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(100)
"""


def options(code: str, n: int, restarts: int = 0, grace: float = 10) -> LaunchOptions:
    command = (sys.executable, "-S", "-c", code)
    return LaunchOptions(command, n, restarts=restarts, grace=grace)


def test_lines_of_output_begin_with_the_number_of_their_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "greet.py"
    program.write_text(GREET)
    assert main(["-n", "2", "--devices", "3", str(program), "--steps", "5"]) == 0
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == ["[0] hello 0 of 2", "[1] hello 1 of 2"]
    assert sorted(err.splitlines()) == ["[0] --steps 5 3", "[1] --steps 5 3"]


def test_all_processes_start_again_after_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert launch(options(FAIL_TWICE, 2, restarts=2)) == 0
    out, err = capsys.readouterr()
    assert out.count("attempt 2") == 2
    assert err.count("process 1 ended with exit status 3") == 2
    assert "starts all processes again, 2 restarts left" in err
    assert launch(options(FAIL_TWICE, 2, restarts=1)) == 3


def test_a_failure_ends_the_others_and_is_the_exit_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    assert launch(options(KILLED, 2, grace=0)) == 128 + 9
    assert time.monotonic() - began < 20
    assert "process 0 was ended by SIGKILL" in capsys.readouterr().err


def test_a_signal_after_a_failure_ends_the_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert launch(options(INTERRUPTED, 2, restarts=1, grace=60)) == 128 + 15
    assert time.monotonic() - began < 50
    err = capsys.readouterr().err
    assert "process 0 ended with exit status 3" in err and "got SIGTERM" in err
    assert "starts all" not in err


def test_bad_arguments_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["-n", "0", "train.py"])
    assert "at least 1" in capsys.readouterr().err
    assert main(["-n", "1", "--host", "192.0.2.1", "train.py"]) == 1
    assert "cannot listen on 192.0.2.1" in capsys.readouterr().err
