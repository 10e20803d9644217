"""The place of this process in a group, as the system that started it describes it.

The variables are those that JAX reads, so that a job for JAX is one for effax.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from effax.ir.errors import BadArgument, ProcessError


class Assignment(NamedTuple):
    """The address of the coordinator, the number of processes, and that of this process."""

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None


class Cluster(NamedTuple):
    """A system that starts processes.

    Attributes:
        is_present: whether it started this process.
        place: the place of this process, from a port that the user chose, or None, and the seconds
            to wait.
    """

    is_present: Callable[[], bool]
    place: Callable[[str | None, float], Assignment]


def detected(given: Assignment, method: str | None, timeout: float) -> Assignment:
    """Return the place with what is missing from the environment, as far as that has it.

    Raises:
        BadArgument: ``method`` is unknown, or did not start this process.
        ProcessError: the system does not describe the place.
    """
    if method == "deactivate":
        return given
    cluster = _chosen(method)
    if cluster is None:
        return given
    found = cluster.place(os.environ.get("JAX_COORDINATOR_PORT"), timeout)
    known = {name: x for name, x in given._asdict().items() if x is not None}
    return found._replace(**known)


def _chosen(method: str | None) -> Cluster | None:
    if method is None:
        automatic = [c for name, c in CLUSTERS.items() if name != "mpi4py"]
        return next((c for c in automatic if c.is_present()), None)
    cluster = CLUSTERS.get(method)
    if cluster is None or not cluster.is_present():
        raise BadArgument(
            "distributed.initialize: cluster_detection_method did not start this process",
            expected=f"None, 'deactivate' or one of {', '.join(CLUSTERS)}",
            found=repr(method),
        )
    return cluster


_EPHEMERAL: Final = 65535 - 2**12 + 1
"""The first of the ports from which that of a job is chosen by its number."""


def _port_of(job: int) -> int:
    return job % 2**12 + _EPHEMERAL


_SLURM: Final = (
    "SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID",
)  # fmt: skip


def _has_slurm() -> bool:
    return all(name in os.environ for name in _SLURM)


def _slurm(port: str | None, timeout: float) -> Assignment:
    del timeout
    job, nodes, count, rank, _ = (os.environ[name] for name in _SLURM)
    return Assignment(f"{first_node(nodes)}:{port or _port_of(int(job))}", int(count), int(rank))


def first_node(nodes: str) -> str:
    """Return the first host of a list as SLURM writes it.

    >>> first_node("node[001-015],host2")
    'node001'
    """
    found = re.match(r"([^,\[]+)(?:\[([^,\-\]]+))?", nodes)
    if found is None:
        raise ProcessError("SLURM lists no host", "SLURM_STEP_NODELIST", repr(nodes))
    return found[1] + (found[2] or "")


_URI: Final = "OMPI_MCA_orte_hnp_uri"
_OMPI: Final = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")


def _has_ompi() -> bool:
    return all(name in os.environ for name in _OMPI)


def _ompi(port: str | None, timeout: float) -> Assignment:
    """Return the place that Open MPI describes; since its version 5, mpi4py has the address."""
    if _URI not in os.environ:
        if not _has_mpi4py():
            raise ProcessError(
                "Open MPI 5 does not publish the address of process 0",
                expected="the package mpi4py, or `coordinator_address`",
                remedy="pip install mpi4py; or pass coordinator_address='host:port'",
            )
        return _mpi4py(port, timeout)
    # As in 1314521088.0;tcp6://[fe80::b9b,2620::2]:43370 or 1531576320.0;tcp://10.96.0.1:34911.
    uri = os.environ[_URI]
    job, host = re.match(r"\d+", uri), re.search(r"tcp://([^,:]+)|tcp6://\[([^,\]]+)", uri)
    if job is None or host is None:
        raise ProcessError("Open MPI does not publish an address", f"an address in {_URI}", uri)
    shown = host[1] or f"[{host[2]}]"
    # The number of a job is a multiple of 4096.
    chosen = port or _port_of(int(job[0]) // 2**12)
    return Assignment(f"{shown}:{chosen}", int(os.environ[_OMPI[0]]), int(os.environ[_OMPI[1]]))


def _has_mpi4py() -> bool:
    return find_spec("mpi4py") is not None


def _mpi4py(port: str | None, timeout: float) -> Assignment:
    del timeout
    world: Any = import_module("mpi4py.MPI").COMM_WORLD
    mine = None
    if world.Get_rank() == 0:
        host = socket.gethostname()
        mine = f"{host}:{port or _port_of(sum(host.encode()))}"
    return Assignment(world.bcast(mine, root=0), world.Get_size(), world.Get_rank())


_SECRETS: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"


def _has_kubernetes() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and find_spec("kubernetes") is not None


def _kubernetes(port: str | None, timeout: float) -> Assignment:
    """Return the place in an indexed Job, or in a JobSet, of Kubernetes."""
    api: Any = import_module("kubernetes")
    api.config.load_incluster_config()
    namespace = _SECRETS.read_text().strip()
    ip = socket.gethostbyname(os.environ.get("HOSTNAME") or socket.gethostname())
    core, batch = api.client.CoreV1Api(), api.client.BatchV1Api()
    try:
        (pod,) = core.list_namespaced_pod(namespace, field_selector=f"status.podIP={ip}").items
        job = batch.read_namespaced_job(name=pod.metadata.labels["job-name"], namespace=namespace)
    except (api.client.exceptions.ApiException, ValueError, KeyError, TypeError) as error:
        raise ProcessError(
            "Kubernetes does not describe the job of this process",
            expected="a Job or JobSet, and the permission to read its pods",
            found=str(error),
            remedy="allow its service account to read pods and jobs; or pass the arguments",
        ) from error
    domain = (job.metadata.labels or {}).get(_JOB_SET) or pod.spec.subdomain
    rank = os.environ.get("JOB_COMPLETION_INDEX")
    if domain is None or rank is None:
        raise ProcessError(
            "this job of Kubernetes does not number or name its processes",
            expected="`completionMode: Indexed`, and `subdomain:` of a headless service",
            found=f"JOB_COMPLETION_INDEX={rank}, subdomain={domain}",
            remedy="add them to the specification of the job",
        )
    host = f"{job.metadata.name}-0.{domain}"
    _wait_for_host(host, timeout)
    return Assignment(f"{host}:{port or 55527}", job.spec.parallelism, int(rank))


def _wait_for_host(host: str, timeout: float) -> None:
    """Wait until the name of a host is known, which may be after it started."""
    end = time.monotonic() + timeout
    while True:
        try:
            socket.gethostbyname(host)
        except socket.gaierror as error:
            if time.monotonic() > end:
                raise ProcessError("the host of process 0 is unknown", host, str(error)) from None
            time.sleep(0.5)
        else:
            return


CLUSTERS: Final[Mapping[str, Cluster]] = {
    "slurm": Cluster(_has_slurm, _slurm),
    "ompi": Cluster(_has_ompi, _ompi),
    "mpi4py": Cluster(_has_mpi4py, _mpi4py),
    "k8s": Cluster(_has_kubernetes, _kubernetes),
}
"""The systems, in the order in which they are looked for."""
