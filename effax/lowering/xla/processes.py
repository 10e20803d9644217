"""The group of processes that run one program: joining it, agreement between them, their ends.

Some member of the group, or its launcher, runs jaxlib's coordination service: a store of texts by
key, and a watch over heartbeats. All of jaxlib's calls that would end this process or never
return are guarded here.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import time
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from hashlib import sha256
from itertools import islice, zip_longest
from math import ceil
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from effax.ir.errors import BadArgument, ProcessError, ProcessesDiffer, ProcessLost
from effax.lowering.xla.quiet import quieten

if TYPE_CHECKING:
    from jaxlib import _jax

    from effax.lowering.xla.backend import Buffer

ADDRESS: Final = "EFFAX_COORDINATOR_ADDRESS"
COUNT: Final = "EFFAX_NUM_PROCESSES"
RANK: Final = "EFFAX_PROCESS_ID"
LAUNCHER: Final = "EFFAX_LAUNCHER"
"""The id of the launcher's process, whose children join the group on first use of XLA."""
STATUS: Final = "EFFAX_LAUNCH_STATUS"
"""The file in which the launcher reports that a process ended."""
HEARTBEAT: Final = "EFFAX_HEARTBEAT_TIMEOUT"
COLLECTIVE: Final = "EFFAX_COLLECTIVE_TIMEOUT"

_SLICE: Final = 0.5
"""The seconds between two looks for processes that ended, while this one waits."""
_CHUNK: Final = 1 << 20
"""The characters of a text in one value of the store, which bounds the size of messages."""
_NEVER: Final = 10**6
_DIFF_LINES: Final = 12


class GroupOptions(NamedTuple):
    """The membership of this process in a group.

    Attributes:
        address: the address of the coordination service, ``host:port``.
        size: the number of processes.
        rank: the number of this one, from 0 on.
        bind: the address on which process 0 serves; None where the launcher serves.
        num_devices: the number of devices of this process; None for the default.
        init_timeout: the seconds in which all processes must join.
        heartbeat_timeout: the seconds after which a silent process counts as lost.
        shutdown_timeout: the seconds for which process 0, where it serves, waits for the others to
            leave.
        collective_timeout: the seconds that a process waits for another in a computation.
        status: the file in which the launcher reports that a process ended.
    """

    address: str
    size: int
    rank: int
    bind: str | None = None
    num_devices: int | None = None
    init_timeout: float = 300
    heartbeat_timeout: int = 100
    shutdown_timeout: float = 300
    collective_timeout: int = 600
    status: str | None = None


@final
class Group:
    """The processes, as one of them sees them.

    Attributes:
        options: how it joined.
        host: the address of this machine by which it reached the service.
    """

    def __init__(
        self, options: GroupOptions, host: str, client: _jax.DistributedRuntimeClient
    ) -> None:
        self.options: Final = options
        self.host: Final = host
        self.client: Final = client
        self._agreed: Final = Counter[tuple[int, ...]]()
        self._lost: set[int] = set()
        self._lock: Final = Lock()

    def check(self) -> None:
        """Raise ProcessLost if a process is known to have ended."""
        status = self.options.status
        report = Path(status).read_text() if status and Path(status).exists() else ""
        if not report and self._lost:
            report = f"no heartbeat of {_processes(sorted(self._lost))}"
        if report:
            raise ProcessLost(
                "another process ended, and this one cannot continue without it",
                found=report.strip(),
                remedy="read the output of that process; start the program again",
            )

    def watch(self) -> None:
        """Note the processes that lost their heartbeat, until this one leaves."""
        every = list(range(self.options.size))
        try:
            while not self._lost:
                # It returns once every process has called it, or is known to be lost.
                live: Any = self.client.get_live_nodes(every)
                self._lost = set(every) - set(live)
                time.sleep(_SLICE)
        except RuntimeError:
            return

    def wait(self, wait: Callable[[Sequence[Buffer]], None], results: Sequence[Buffer]) -> None:
        """Wait for the results of a computation with the other processes. Raises ProcessLost.

        A look at them costs less than a twentieth of the time waited for.
        """
        began = looked = time.monotonic()
        while not all(x.is_ready() for x in results):
            now = time.monotonic()
            if now - looked > _SLICE:
                self.check()
                looked = now
            elapsed = now - began
            time.sleep(0 if elapsed < 0.001 else min(elapsed / 20, 0.02))
        try:
            wait(results)
        except RuntimeError as error:
            self.check()
            raise ProcessLost(
                "a computation with the other processes failed",
                found=str(error).strip(),
                remedy="another process ended, differs, or did not come within "
                f"collective_timeout_seconds={self.options.collective_timeout}",
            ) from error

    def get(self, key: str, rank: int, doing: str, limit: float | None = None) -> str:
        """Return the value that process ``rank`` sets within a limit in seconds.

        Raises ProcessLost. The limit is by default that of computations.
        """
        limit = self.options.collective_timeout if limit is None else limit
        end = time.monotonic() + limit
        while True:
            try:
                return self.client.blocking_key_value_get(f"{key}/{rank}", int(1000 * _SLICE))
            except RuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise ProcessLost("the coordination service failed", found=str(error)) from None
            self.check()
            if time.monotonic() > end:
                raise ProcessLost(
                    f"process {self.options.rank} waits for process {rank}, which does not come",
                    expected=f"that it {doing} within {limit:g} s",
                    remedy="run the same program in every process, in one order; or raise "
                    "collective_timeout_seconds",
                )

    def gathered(
        self,
        name: str,
        number: int,
        doing: str,
        mine: str,
        ranks: Sequence[int],
        limit: float | None = None,
    ) -> list[str]:
        """Return the text that each process sets under a name, in rounds numbered from 1.

        Raises ProcessLost. The limit is that of :meth:`get`.
        """
        rank = self.options.rank
        self.client.key_value_set(f"{name}/{number}/{rank}", mine)
        found = [self.get(f"{name}/{number}", k, doing, limit) for k in ranks]
        # Every process has read what precedes, or it would not be here.
        if number > 1:
            self.client.key_value_delete(f"{name}/{number - 1}/{rank}")
        return found

    def exchange(self, doing: str, mine: str, ranks: Sequence[int] = ()) -> list[str]:
        """Return the text of every process; each calls it as often, in one order.

        Args:
            doing: a verb and its object, the same in every process.
            mine: the text of this process.
            ranks: the processes, in order; by default all.

        Raises:
            ProcessLost: another process ended, or does not come.
            ProcessesDiffer: another process does something else meanwhile.
        """
        rank, those = self.options.rank, tuple(ranks) or tuple(range(self.options.size))
        name = "effax/" + ",".join(map(str, those))
        with self._lock:
            self._agreed[those] += 1
            texts = self.gathered(name, self._agreed[those], doing, f"{doing}\0{mine}", those)
            found = {k: text.split("\0", 1) for k, text in zip(those, texts, strict=True)}
            other = next((k for k, (what, _) in found.items() if what != doing), None)
            if other is not None:
                raise ProcessesDiffer(
                    "the processes do not do the same",
                    expected=f"process {other} {doing}, as process {rank} does",
                    found=f"process {other} {found[other][0]}",
                    remedy="run the same calls in every process, in one order",
                )
        return [text for _, text in found.values()]

    def agree(self, doing: str, text: str, ranks: Sequence[int] = ()) -> None:
        """Raise ProcessesDiffer in every process, with the first difference, if texts differ.

        Args:
            doing: a verb and its object, the same in every process.
            text: the text of this process.
            ranks: the processes, in order; by default all.
        """
        those = tuple(ranks) or tuple(range(self.options.size))
        found = self.exchange(doing, sha256(text.encode()).hexdigest(), those)
        if len(set(found)) == 1:
            return
        mine = found[those.index(self.options.rank)]
        column = next(i for i, digest in enumerate(found) if digest != mine)
        other = those[column]
        packed = b64encode(zlib.compress(text.encode())).decode()
        counts = self.exchange("compares", str(ceil(len(packed) / _CHUNK)), those)
        chunks = [packed[i * _CHUNK :][:_CHUNK] for i in range(max(map(int, counts)))]
        rows = [self.exchange("compares", chunk, those) for chunk in chunks]
        theirs = zlib.decompress(b64decode("".join([row[column] for row in rows]))).decode()
        raise ProcessesDiffer(
            f"the processes differ: process {self.options.rank} {doing}, and it is not that of "
            f"process {other}",
            expected="the same in every process",
            found="the first difference:\n"
            + _first_difference(sorted([(other, theirs), (self.options.rank, text)])),
            remedy="make what depends on `process_index()` data, not a part of the program",
        )


def _first_difference(texts: Sequence[tuple[int, str]]) -> str:
    """Return the differences of the texts of two processes, from the first one on."""
    pairs = zip_longest(*[text.splitlines() for _, text in texts])
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
    # The comparison of long texts is quadratic: a window is enough for the first difference.
    windows = [text.splitlines()[max(0, at - 2) : at + 40] for _, text in texts]
    names = [f"process {rank}" for rank, _ in texts]
    lines = unified_diff(windows[0], windows[1], names[0], names[1], lineterm="", n=2)
    return "\n".join([line[:200] for line in islice(lines, _DIFF_LINES)])


def _processes(ranks: Sequence[int]) -> str:
    return f"process{'es' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


@final
class _Membership:
    """The state of the process: the group that it joined."""

    __slots__ = ("group", "service")

    def __init__(self) -> None:
        self.group: Group | None = None
        self.service: _jax.DistributedRuntimeService | None = None


_membership: Final = _Membership()


def group() -> Group | None:
    """Return the group that this process joined, or None."""
    return _membership.group


def launched_options(environment: Mapping[str, str] = os.environ) -> GroupOptions | None:
    """Return the membership that the launcher assigned to this process, or None."""
    if ADDRESS not in environment:
        return None
    return GroupOptions(
        environment[ADDRESS],
        int(environment[COUNT]),
        int(environment[RANK]),
        heartbeat_timeout=int(environment[HEARTBEAT]),
        collective_timeout=int(environment[COLLECTIVE]),
        status=environment[STATUS],
    )


def is_launched() -> bool:
    """Return whether this process is a child of the launcher, and not one of a member."""
    return os.environ.get(LAUNCHER) == str(os.getppid())


def joined_group() -> Group | None:
    """Return the group; a child of the launcher joins its group first."""
    if _membership.group is None and is_launched():
        options = launched_options()
        assert options is not None, "the launcher sets all variables"
        return join(options)
    return _membership.group


def join(options: GroupOptions) -> Group:
    """Join the group. Its other processes must do the same within ``init_timeout``.

    Raises:
        BadArgument: the numbers or the address do not describe a member of a group.
        ProcessError: this process is a member of a group already; nothing answers at the address,
            or its port is in use; or not all processes joined in time.
    """
    _check(options)
    if _membership.group is not None:
        raise ProcessError(
            "this process has joined a group of processes already",
            found=str(_membership.group.options.address),
            remedy="call `distributed.initialize` once, before the first array",
        )
    if options.bind is not None and options.rank == 0:
        _membership.service = serve(options.bind, options.size, options.heartbeat_timeout)
    host = _reached_from(options.address, options.init_timeout)
    made = Group(options, host, _connected(options))
    _membership.group = made
    Thread(target=made.watch, daemon=True, name="effax-heartbeats").start()
    atexit.register(leave)
    return made


def leave() -> None:
    """Leave the group; where this process serves, wait for the others to leave it first."""
    left, service = _membership.group, _membership.service
    _membership.group = _membership.service = None
    if left is None:
        return
    atexit.unregister(leave)
    # The service may have ended, or may not know this process any more.
    with suppress(RuntimeError):
        if service is None:
            left.client.key_value_set(f"effax/left/{left.options.rank}", "")
        elif getattr(sys, "last_value", None) is None:
            _wait_for_others(left)
    with suppress(RuntimeError):
        left.client.shutdown()
    if service is not None:
        service.shutdown()


def _wait_for_others(left: Group) -> None:
    end = time.monotonic() + left.options.shutdown_timeout
    for rank in range(1, left.options.size):
        left.get("effax/left", rank, "leaves", end - time.monotonic())
    # The others forget the service once they have its answer.
    time.sleep(0.2)


def _check(options: GroupOptions) -> None:
    if not 0 <= options.rank < options.size:
        raise BadArgument(
            "distributed.initialize: process_id is the number of a process",
            expected=f"0 <= process_id < num_processes={options.size}",
            found=str(options.rank),
        )
    host, _, port = options.address.rpartition(":")
    if not host or not port.isdigit():
        raise BadArgument(
            "distributed.initialize: coordinator_address is a host and a port",
            expected="'host:port', such as '10.0.0.1:1234'",
            found=repr(options.address),
        )


def split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of an address; the host of IPv6 is in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def serve(address: str, count: int, heartbeat_timeout: int) -> _jax.DistributedRuntimeService:
    """Start the coordination service. Raises ProcessError if the port is in use."""
    quieten("2")
    from jaxlib import _jax

    host, port = split_address(address)
    try:
        # jaxlib would share a port in use, and answer the processes of another group.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.bind((host, port))
    except OSError as error:
        raise unusable(address, error) from None
    # Recoverable: the end of one process does not end the others.
    return _jax.get_distributed_runtime_service(
        address,
        count,
        heartbeat_timeout=heartbeat_timeout,
        cluster_register_timeout=_NEVER,
        recoverable=True,
    )


def unusable(address: str, error: OSError) -> ProcessError:
    """Return the error for an address on which no service can listen."""
    return ProcessError(
        f"the coordination service cannot listen on {address}",
        found=str(error),
        remedy="choose a free port, and an address of this machine",
    )


def free_port(host: str) -> int:
    """Return a free port of an address of this machine."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _reached_from(address: str, timeout: float) -> str:
    """Return this machine's address on the way to the service; wait until that listens.

    jaxlib would end the process where none listens.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            with socket.create_connection(split_address(address), timeout=5) as probe:
                found: str = probe.getsockname()[0]
                return found
        except OSError as error:
            if time.monotonic() > end:
                raise ProcessError(
                    "no coordination service answers",
                    expected=f"that process 0 or a launcher listens on {address} within "
                    f"{timeout:g} s",
                    found=str(error),
                    remedy="start it; or check coordinator_address, and that the port is reachable",
                ) from None
        time.sleep(min(0.1, timeout))


def _connected(options: GroupOptions) -> _jax.DistributedRuntimeClient:
    """Return a client of the service. Raises ProcessError where a process is missing.

    The connection waits for all processes, and jaxlib would end this one when its time is over. So
    it has no limit, in another thread.
    """
    quieten("2")
    from jaxlib import _jax

    client = _jax.get_distributed_runtime_client(
        options.address,
        options.rank,
        init_timeout=_NEVER,
        heartbeat_timeout=options.heartbeat_timeout,
        shutdown_on_destruction=False,
    )
    raised: list[RuntimeError] = []

    def connect() -> None:
        try:
            client.connect()
        except RuntimeError as error:
            raised.append(error)

    thread = Thread(target=connect, daemon=True, name="effax-connect")
    thread.start()
    thread.join(options.init_timeout)
    if thread.is_alive() or raised:
        raise ProcessError(
            f"process {options.rank} joined, and not all of {options.size} processes did",
            expected=f"each number from 0 to {options.size - 1} once, within "
            f"{options.init_timeout:g} s",
            found=str(raised[0]).strip() if raised else None,
            remedy="start the missing processes; check process_id and num_processes",
        )
    return client
