"""The group of processes of a computation: how this one joins and leaves it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from effax.api.clusters import Assignment, detected
from effax.arrays.config import config
from effax.ir.errors import BadArgument, ProcessError
from effax.lowering import xla
from effax.lowering.xla import processes
from effax.lowering.xla.processes import GroupOptions


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: float = 300,
    coordinator_bind_address: str | None = None,
    *,
    collective_timeout_seconds: int = 600,
) -> None:
    """Join the other processes of a program, before the first array; all call it.

    Arguments that are left out are those of ``python -m effax.launch``, of the environment
    variables JAX_COORDINATOR_ADDRESS and JAX_LOCAL_DEVICE_IDS, of SLURM, of Open MPI or of
    Kubernetes. In a process that the launcher started and that has joined, or of one process
    alone, this does nothing.

    Args:
        coordinator_address: the address of process 0 and a free port of it, ``host:port``. The
            sockets of each process are bound to its address on the way there.
        num_processes: the number of processes.
        process_id: the number of this one, from 0 on.
        local_device_ids: the numbers of the CPU devices of this process; by default all.
        cluster_detection_method: ``slurm``, ``ompi``, ``mpi4py`` or ``k8s``; ``deactivate`` for
            none; by default the first of them that is found, mpi4py excepted.
        initialization_timeout: the seconds in which all processes must join.
        heartbeat_timeout_seconds: the seconds after which a process that died counts as lost: the
            others get an error where they wait for it.
        shutdown_timeout_seconds: the seconds for which process 0 waits for the others at its end.
        coordinator_bind_address: the address on which process 0 listens; by default
            ``coordinator_address``.
        collective_timeout_seconds: the seconds that a process waits in a computation for another
            that is alive.

    Raises:
        ProcessError: this process joined a group already, or has used XLA; no process listens at
            the address, or its port is in use; or not all processes joined in time.
        BadArgument: an argument is missing, and no environment has it; or it is not valid.

    >>> effax.distributed.initialize(num_processes=1)
    >>> effax.distributed.is_initialized()
    False
    """
    launched = processes.launched_options()
    given = (coordinator_address, num_processes, process_id)
    if launched is not None and given == (None, None, None):
        _join_once(launched)
        return
    if num_processes == 1 and coordinator_address is None:
        return
    ids = _device_ids(local_device_ids)
    place = Assignment(coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS"), *given[1:])
    if None in place:
        place = detected(place, cluster_detection_method, initialization_timeout)
    address, count, rank = _complete(place)
    bind = coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or address
    _join(
        GroupOptions(
            address,
            count,
            rank,
            bind,
            None if ids is None else len(ids),
            initialization_timeout,
            heartbeat_timeout_seconds,
            shutdown_timeout_seconds,
            collective_timeout_seconds,
        )
    )


def is_initialized() -> bool:
    """Return whether this process has joined others.

    >>> effax.distributed.is_initialized()
    False
    """
    return processes.group() is not None


def shutdown() -> None:
    """Leave the other processes, which happens at the end of the process too.

    Process 0 waits until the others have left, since their connection ends with it. Computations of
    several processes are not possible any more.

    >>> effax.distributed.shutdown()
    """
    processes.leave()


def _join_once(launched: GroupOptions) -> None:
    """Join the launcher's group, unless the first use of an array has done so."""
    if processes.group() is None:
        _join(launched)


def _join(options: GroupOptions) -> None:
    if xla.is_running():
        raise ProcessError(
            "distributed.initialize: XLA has started, which fixes the devices",
            expected="a call before the first array, and before `effax.devices()`",
            remedy="move it to the start of the program",
        )
    processes.join(options)


def _complete(place: Assignment) -> tuple[str, int, int]:
    address, count, rank = place
    if address is None or count is None or rank is None:
        missing = [name for name, x in zip(Assignment._fields, place, strict=True) if x is None]
        raise BadArgument(
            f"distributed.initialize: {' and '.join(missing)} must be given",
            expected="arguments, or the variables of the launcher, SLURM, Open MPI or Kubernetes",
            found=str(place),
            remedy="start the program by `python -m effax.launch -n 4 program.py`, or pass them",
        )
    for name, x in (("num_processes", count), ("process_id", rank)):
        if isinstance(x, bool) or not isinstance(x, int):
            raise BadArgument(f"distributed.initialize: {name} is a number", "an int", repr(x))
    return address, count, rank


def _device_ids(given: int | Sequence[int] | None) -> list[int] | None:
    """Return the numbers of the devices that this process uses. Raises BadArgument."""
    named = os.environ.get("JAX_LOCAL_DEVICE_IDS")
    if given is None and named:
        given = [int(text) for text in named.split(",")]
    if given is None:
        return None
    ids = [given] if isinstance(given, int) else list(given)
    set_to = config.read("num_cpu_devices")
    known = set_to if isinstance(set_to, int) else -1
    if not ids or len({*ids}) < len(ids) or (known > 0 and max(ids) >= known) or min(ids) < 0:
        raise BadArgument(
            "distributed.initialize: local_device_ids are numbers of CPU devices",
            expected=f"different numbers from 0 to {known - 1}" if known > 0 else "each once",
            found=repr(given),
        )
    return ids
