from typing import final

from jaxlib._jax import Client

@final
class HloSharding:
    @staticmethod
    def replicate() -> HloSharding: ...

def make_cpu_client(asynchronous: bool = True, *, num_devices: int | None = None) -> Client: ...
def register_custom_call_target(
    name: str, fn: object, platform: str = "cpu", api_version: int = 0
) -> None: ...
