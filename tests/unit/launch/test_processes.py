"""Groups of processes: what they compute, and that no fault of one makes another wait for ever.

Each runs in processes of its own, which a limit of time ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from effax.lowering.xla.processes import free_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LIMIT = 300
"""Seconds that a run may take, on a machine with other work."""

LAUNCH = [sys.executable, "-m", "effax.launch", "-n", "2"]
ENV = {name: x for name, x in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"} | {
    "PYTHONPATH": str(ROOT)
}


def output(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=LIMIT)[0]
    finally:
        process.kill()


def start(*command: str) -> subprocess.Popen[str]:
    both = subprocess.STDOUT
    return subprocess.Popen(
        command, env=ENV, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=both
    )


def test_a_group_computes_together_until_a_process_ends() -> None:
    launcher = start(*LAUNCH, "--devices", "2", str(Path(__file__).with_name("group.py")))
    text = output(launcher)
    assert launcher.returncode == 128 + signal.SIGKILL, text
    assert "[0] process 0 got errors" in text


MEMBER = """
import os, sys, time
import effax, effax.numpy as jnp
address, rank = sys.argv[1], int(sys.argv[2])
effax.config.update("jax_num_cpu_devices", 2)
effax.distributed.initialize(address, 2, rank, heartbeat_timeout_seconds=12)
mesh = effax.make_mesh((4,), ("x",))
x = effax.device_put(jnp.arange(4.0), effax.NamedSharding(mesh, effax.P("x")))
step = effax.jit(jnp.sum)
assert float(step(x)) == 6
if rank == 1:
    os._exit(3)
try:
    step(x)
except effax.ir.errors.ProcessLost as error:
    print(error)
"""


def test_a_lost_heartbeat_is_an_error_without_a_launcher() -> None:
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    members = [start(sys.executable, "-c", MEMBER, address, str(rank)) for rank in range(2)]
    texts = [output(member) for member in members]
    assert [member.returncode for member in members] == [0, 3], texts
    assert "no heartbeat of process 1" in texts[0]


ALONE = """
import sys, time
import pytest
from effax.distributed import initialize
from effax.ir.errors import ProcessError
from effax.lowering.xla.processes import free_port, serve
address = f"127.0.0.1:{free_port('127.0.0.1')}"
with pytest.raises(ProcessError, match="no coordination service answers"):
    initialize(address, 2, 1, initialization_timeout=0.2)
service = serve(address, 2, 10)
with pytest.raises(ProcessError, match="cannot listen"):
    initialize(address, 2, 0, initialization_timeout=0.2)
with pytest.raises(ProcessError, match="process 1 joined, and not all of 2 processes did"):
    initialize(address, 2, 1, initialization_timeout=1)
print("refused", flush=True)
"""


def test_a_group_without_a_service_or_a_member_is_an_error() -> None:
    alone = start(sys.executable, "-c", ALONE)
    text = output(alone)
    assert alone.returncode == 0, text
    assert "refused" in text


JOIN = """
import os, time
import effax
effax.distributed.initialize()
print("joined", os.getpid(), flush=True)
time.sleep(1000)
"""


def test_processes_end_with_their_launcher(tmp_path: Path) -> None:
    program = tmp_path / "join.py"
    program.write_text(JOIN)
    launcher = start(*LAUNCH, str(program))
    assert launcher.stdout is not None
    lines = [launcher.stdout.readline() for _ in range(2)]
    workers = [int(line.split()[-1]) for line in lines if "joined" in line]
    assert len(workers) == 2, lines
    try:
        launcher.kill()
        end = time.monotonic() + LIMIT
        while any(map(is_running, workers)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(map(is_running, workers))
    finally:
        output(launcher)
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


def is_running(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    with suppress(FileNotFoundError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return False
