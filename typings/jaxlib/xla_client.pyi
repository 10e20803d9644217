from jaxlib._hlo import HloSharding as HloSharding
from jaxlib._jax import Client

def make_cpu_client(asynchronous: bool = True, *, num_devices: int | None = None) -> Client: ...
def register_custom_call_target(
    name: str, fn: object, platform: str = "cpu", api_version: int = 0
) -> None: ...
