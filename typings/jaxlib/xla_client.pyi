from jaxlib._hlo import HloSharding as HloSharding
from jaxlib._jax import Client, CpuCollectives, DistributedRuntimeClient

def make_cpu_client(
    asynchronous: bool = True,
    distributed_client: DistributedRuntimeClient | None = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: CpuCollectives | None = None,
    num_devices: int | None = None,
    get_local_topology_timeout_minutes: int | None = None,
    get_global_topology_timeout_minutes: int | None = None,
) -> Client: ...
def register_custom_call_target(
    name: str, fn: object, platform: str = "cpu", api_version: int = 0
) -> None: ...
