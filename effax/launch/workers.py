"""The processes of a launched program: their start, their output and their ends.

The launcher runs the coordination service and no program, so that no end of a process takes the
service away from the others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread
from types import FrameType
from typing import IO, Final, NamedTuple, final

from effax.lowering.xla import processes

ATTEMPT: Final = "EFFAX_ATTEMPT"
"""How often the processes were started before, in the environment of each."""

_POLL: Final = 0.02
_SIGNALLED: Final = 128
_GLOO: Final = b"[Gloo] Rank "
"""The beginning of a line that gloo prints for each group of devices."""


class LaunchOptions(NamedTuple):
    """The processes to start.

    Attributes:
        command: the command of each.
        processes: their number.
        devices: the number of CPU devices of each; None for that of the environment.
        restarts: how often all are started again after a failure.
        host: the address of this machine to which all sockets are bound.
        heartbeat: the seconds after which a silent process counts as lost.
        timeout: the seconds that a process waits for another in a computation.
        grace: the seconds that processes have to end after another failed.
    """

    command: tuple[str, ...]
    processes: int
    devices: int | None = None
    restarts: int = 0
    host: str = "127.0.0.1"
    heartbeat: int = 100
    timeout: int = 600
    grace: float = 10


def launch(options: LaunchOptions) -> int:
    """Run a program in several processes, and return the exit status of the launcher.

    Raises:
        ProcessError: the address is not of this machine.
        LoweringError: jaxlib is not installed.
    """
    for attempt in range(options.restarts + 1):
        ended = _Attempt(options, attempt).run()
        left = options.restarts - attempt
        if not ended or not left or ended in _BY_USER:
            return ended
        _say(f"starts all processes again, {left} restart{'s' * (left > 1)} left")
    raise AssertionError("the last attempt returns")


_BY_USER: Final = (_SIGNALLED + signal.SIGINT, _SIGNALLED + signal.SIGTERM)


def _say(text: str) -> None:
    sys.stderr.write(f"effax.launch: {text}\n")
    sys.stderr.flush()


@final
class _Attempt:
    """One start of all processes."""

    def __init__(self, options: LaunchOptions, number: int) -> None:
        self.options: Final = options
        self.number: Final = number
        self.signal: int | None = None
        self.began: Final = time.monotonic()
        self.workers: list[subprocess.Popen[bytes]] = []

    def run(self) -> int:
        """Start the processes, wait until all ended, and return the exit status."""
        host = self.options.host
        shown = f"[{host}]" if ":" in host else host
        try:
            address = f"{shown}:{processes.free_port(host)}"
        except OSError as error:
            raise processes.unusable(host, error) from None
        service = processes.serve(address, self.options.processes, self.options.heartbeat)
        try:
            with tempfile.TemporaryDirectory(prefix="effax-launch-") as folder, self._signals():
                return self._watch(address, Path(folder) / "status")
        finally:
            service.shutdown()

    def _watch(self, address: str, status: Path) -> int:
        readers: list[Thread] = []
        try:
            for rank in range(self.options.processes):
                self.workers.append(self._start(rank, address, status))
                readers += _readers(rank, self.workers[rank])
            return self._wait(status)
        finally:
            _kill(self.workers)
            for reader in readers:
                # A process that a worker started may keep its output open.
                reader.join(timeout=2)

    def _start(self, rank: int, address: str, status: Path) -> subprocess.Popen[bytes]:
        own = {
            processes.ADDRESS: address,
            processes.COUNT: self.options.processes,
            processes.RANK: rank,
            processes.LAUNCHER: os.getpid(),
            processes.STATUS: status,
            processes.HEARTBEAT: self.options.heartbeat,
            processes.COLLECTIVE: self.options.timeout,
            ATTEMPT: self.number,
            "PYTHONUNBUFFERED": "1",
        }
        if self.options.devices is not None:
            own["JAX_NUM_CPU_DEVICES"] = self.options.devices
        env = {**os.environ, **{name: str(value) for name, value in own.items()}}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.options.command, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )

    def _wait(self, status: Path) -> int:
        """Wait until all ended, of which those that outlive a failure for long are killed.

        Return the exit status: that of the first failure, or of a signal to the launcher.
        """
        ended, signalled, deadline = 0, False, float("inf")
        running = dict(enumerate(self.workers))
        while running:
            for rank, worker in list(running.items()):
                if worker.poll() is None:
                    continue
                del running[rank]
                if worker.returncode and not ended and self.signal is None:
                    ended = _exit_status(worker.returncode)
                    self._report(rank, worker.returncode, status, len(running))
                    deadline = time.monotonic() + self.options.grace
            if self.signal is not None and not signalled:
                _say(f"got {signal.Signals(self.signal).name}, ends the processes")
                ended, signalled = _SIGNALLED + self.signal, True
                for worker in running.values():
                    worker.send_signal(self.signal)
                deadline = min(deadline, time.monotonic() + self.options.grace)
            if time.monotonic() > deadline:
                _kill(list(running.values()))
            time.sleep(_POLL)
        return ended

    def _report(self, rank: int, code: int, status: Path, others: int) -> None:
        """Report the end of a process to the user, and to the processes that wait for it."""
        elapsed = time.monotonic() - self.began
        text = f"process {rank} {_how(code)} after {elapsed:.1f} s"
        rest = f"; {others} other{'s' * (others > 1)} must end" if others else ""
        _say(text + rest)
        part = status.with_suffix(".part")
        part.write_text(text)
        part.replace(status)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass interrupts and requests to end to the processes."""

        def note(number: int, frame: FrameType | None) -> None:
            del frame
            self.signal = number

        numbers = (signal.SIGINT, signal.SIGTERM)
        previous = [signal.signal(n, note) for n in numbers]
        try:
            yield
        finally:
            for n, handler in zip(numbers, previous, strict=True):
                signal.signal(n, handler)


def _exit_status(code: int) -> int:
    return code if code > 0 else _SIGNALLED - code


def _how(code: int) -> str:
    """Return how a process ended, from its return code."""
    if code > 0:
        return f"ended with exit status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _kill(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        if worker.poll() is None:
            worker.kill()
            worker.wait()


_lock: Final = Lock()


def _readers(rank: int, worker: subprocess.Popen[bytes]) -> list[Thread]:
    """Return the threads that copy the output of a process, with its number before each line."""
    pairs = ((worker.stdout, sys.stdout), (worker.stderr, sys.stderr))
    threads = [
        Thread(target=_copy, args=(rank, source, sink), daemon=True)
        for source, sink in pairs
        if source is not None
    ]
    for thread in threads:
        thread.start()
    return threads


def _copy(rank: int, source: IO[bytes], sink: IO[str]) -> None:
    with source:
        for line in source:
            if line.startswith(_GLOO):
                continue
            text = line.decode(errors="replace").rstrip("\r\n")
            # Lines of several processes do not mix.
            with _lock:
                sink.write(f"[{rank}] {text}\n")
                sink.flush()
