"""The arguments of ``distributed.initialize``, and the environments that replace them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import effax
from effax.api import clusters
from effax.api.clusters import Assignment, detected
from effax.ir.errors import BadArgument, ProcessError

SLURM = {
    "SLURM_JOB_ID": "4099",
    "SLURM_STEP_NODELIST": "node[007-009,012],other",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "0",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": f"{5 * 4096}.0;tcp://10.96.0.1,10.148.0.1:34911",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_RANK": "7",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}


def use(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_one_process_joins_none() -> None:
    effax.distributed.initialize(num_processes=1)
    assert not effax.distributed.is_initialized()
    effax.distributed.shutdown()


def test_arguments_that_describe_no_member_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    initialize = effax.distributed.initialize
    with pytest.raises(ValueError, match="coordinator_address and num_processes and process_id"):
        initialize()
    with pytest.raises(BadArgument, match="num_processes is a number"):
        initialize("localhost:1", 2.0, 0)  # type: ignore[arg-type]  # wrong
    with pytest.raises(BadArgument, match="cluster_detection_method"):
        initialize("localhost:1", cluster_detection_method="other")
    with pytest.raises(BadArgument, match="local_device_ids"):
        initialize("localhost:1", 2, 0, [0, 0])
    effax.devices()
    with pytest.raises(RuntimeError, match="XLA has started"):
        initialize("localhost:1", 2, 0)
    monkeypatch.setattr("effax.lowering.xla.is_running", lambda: False)
    with pytest.raises(BadArgument, match="process_id"):
        initialize("localhost:1", 2, 2)
    with pytest.raises(BadArgument, match="a host and a port"):
        initialize("localhost", 2, 1)


def test_slurm_and_open_mpi_describe_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, SLURM)
    assert detected(Assignment(), None, 1) == Assignment("node007:61443", 4, 2)
    assert detected(Assignment("a:1", None, 3), "slurm", 1) == Assignment("a:1", 4, 3)
    assert detected(Assignment(), "deactivate", 1) == Assignment()
    monkeypatch.setenv("JAX_COORDINATOR_PORT", "1234")
    assert detected(Assignment(), None, 1).coordinator_address == "node007:1234"
    monkeypatch.delenv("SLURM_LOCALID")
    use(monkeypatch, OPEN_MPI)
    assert detected(Assignment(), None, 1) == Assignment("10.96.0.1:1234", 8, 7)
    monkeypatch.setenv("OMPI_MCA_orte_hnp_uri", "4096.0;tcp6://[fe80::b9b,2620::2]:43370")
    assert detected(Assignment(), None, 1).coordinator_address == "[fe80::b9b]:1234"


def test_mpi4py_describes_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, {name: x for name, x in OPEN_MPI.items() if "uri" not in name})
    with pytest.raises(ProcessError, match="mpi4py"):
        detected(Assignment(), None, 1)
    world = SimpleNamespace(
        Get_rank=lambda: 1, Get_size=lambda: 2, bcast=lambda x, root: x or "first:99"
    )
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", SimpleNamespace(COMM_WORLD=world))
    monkeypatch.setattr(clusters, "find_spec", lambda name: name == "mpi4py" or None)
    assert detected(Assignment(), None, 1) == Assignment("first:99", 2, 1)


def test_kubernetes_describes_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels = {"job-name": "train"}
    pod = SimpleNamespace(
        metadata=SimpleNamespace(labels=labels), spec=SimpleNamespace(subdomain="pods")
    )
    job = SimpleNamespace(
        metadata=SimpleNamespace(name="train", labels={}), spec=SimpleNamespace(parallelism=4)
    )
    core = SimpleNamespace(list_namespaced_pod=lambda *_, **__: SimpleNamespace(items=[pod]))
    client = SimpleNamespace(
        CoreV1Api=lambda: core,
        BatchV1Api=lambda: SimpleNamespace(read_namespaced_job=lambda **_: job),
        exceptions=SimpleNamespace(ApiException=KeyError),
    )
    config = SimpleNamespace(load_incluster_config=lambda: None)
    fake = SimpleNamespace(client=client, config=config)
    monkeypatch.setitem(sys.modules, "kubernetes", fake)
    monkeypatch.setattr(clusters, "find_spec", lambda name: name == "kubernetes" or None)
    monkeypatch.setattr(clusters, "_SECRETS", tmp_path / "namespace")
    (tmp_path / "namespace").write_text("default\n")
    monkeypatch.setattr("socket.gethostbyname", lambda _: "10.0.0.7")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "3")
    assert detected(Assignment(), None, 1) == Assignment("train-0.pods:55527", 4, 3)
    job.metadata.labels = {"jobset.sigs.k8s.io/jobset-name": "set"}
    assert detected(Assignment(), None, 1).coordinator_address == "train-0.set:55527"
    monkeypatch.delenv("JOB_COMPLETION_INDEX")
    with pytest.raises(ProcessError, match="number or name"):
        detected(Assignment(), None, 1)
    labels.clear()
    with pytest.raises(ProcessError, match="does not describe the job"):
        detected(Assignment(), None, 1)
