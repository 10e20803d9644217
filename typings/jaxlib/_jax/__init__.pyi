# What effax uses of jaxlib's private C++ module, for 0.10.2 to 0.12.0.1.
from collections.abc import Callable, Sequence
from typing import Any, Protocol, final, overload

import numpy as np
import numpy.typing as npt
from jaxlib._hlo import HloSharding
from jaxlib._jax import config as config
from jaxlib._jax import jax_jit as jax_jit
from jaxlib._jax import mlir as mlir
from jaxlib._jax import pytree as pytree
from jaxlib.mlir.ir import Module
from typing_extensions import CapsuleType

class JaxRuntimeError(RuntimeError): ...

class _Aval(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[np.generic]: ...
    @property
    def weak_type(self) -> bool: ...

@final
class Device:
    @property
    def id(self) -> int: ...
    @property
    def platform(self) -> str: ...
    @property
    def device_kind(self) -> str: ...
    @property
    def process_index(self) -> int: ...

@final
class DeviceList:
    def __init__(self, devices: tuple[Device, ...], /) -> None: ...

@final
class DeviceAssignment:
    @staticmethod
    def create(assignment: npt.NDArray[np.int32], /) -> DeviceAssignment: ...

@final
class GSPMDSharding:
    def __init__(self, devices: DeviceList, sharding: HloSharding) -> None: ...

class ArrayCopySemantics:
    REUSE_INPUT: ArrayCopySemantics

def reorder_shards(
    array: object, sharding: GSPMDSharding, semantics: ArrayCopySemantics, /
) -> ArrayImpl: ...

class SingleDeviceSharding:
    def __init__(self, device: Device, memory_kind: str | None = None) -> None: ...

class HostBufferSemantics:
    ZERO_COPY: HostBufferSemantics
    IMMUTABLE_ONLY_DURING_CALL: HostBufferSemantics

class ArrayImpl:
    @property
    def aval(self) -> Any: ...  # the very object that it was made with
    @property
    def _sharding(self) -> object: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def block_until_ready(self) -> object: ...
    def is_ready(self) -> bool: ...
    def delete(self) -> None: ...
    def is_deleted(self) -> bool: ...

@final
class ResultHandler:
    def __call__(self, arrays: Sequence[object], /) -> Any: ...  # an ArrayImpl

@final
class ExecuteResults:
    # An ArrayImpl a handler.
    def consume_with_handlers(self, out_handlers: Sequence[ResultHandler]) -> list[Any]: ...
    def consume_token(self) -> ShardedToken: ...

@final
class ShardedToken:
    def block_until_ready(self) -> None: ...

@final
class CompiledMemoryStats:
    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int
    generated_code_size_in_bytes: int
    peak_memory_in_bytes: int

@final
class HloModule:
    def to_string(self) -> str: ...

@final
class XlaComputation:
    def as_hlo_module(self) -> HloModule: ...

def hlo_module_cost_analysis(client: Client, module: HloModule) -> dict[str, object]: ...

@final
class LoadedExecutable:
    def execute_sharded(
        self, arguments: Sequence[object], with_tokens: bool = False
    ) -> ExecuteResults: ...
    def cost_analysis(self) -> dict[str, str | bool | int | list[int] | float]: ...
    def get_compiled_memory_stats(self) -> CompiledMemoryStats: ...
    def get_output_shardings(self) -> list[object] | None: ...
    def get_parameter_shardings(self) -> list[object] | None: ...
    def get_output_layouts(self) -> list[object]: ...
    def get_parameter_layouts(self) -> list[object]: ...
    def hlo_modules(self) -> list[HloModule]: ...

class DebugOptions:
    xla_backend_optimization_level: int

class ExecutableBuildOptions:
    num_replicas: int
    num_partitions: int
    use_spmd_partitioning: bool
    use_shardy_partitioner: bool
    allow_spmd_sharding_propagation_to_parameters: Sequence[bool]
    allow_spmd_sharding_propagation_to_output: Sequence[bool]
    device_assignment: DeviceAssignment | None
    debug_options: DebugOptions

class CompileOptions:
    env_option_overrides: list[tuple[str, object]]
    num_replicas: int
    num_partitions: int
    executable_build_options: ExecutableBuildOptions
    def __init__(self) -> None: ...

@final
class Client:
    @property
    def platform(self) -> str: ...
    @property
    def platform_version(self) -> str: ...
    def devices(self) -> list[Device]: ...
    def local_devices(self) -> list[Device]: ...
    def process_index(self) -> int: ...
    def live_arrays(self) -> list[ArrayImpl]: ...
    @overload
    def compile_and_load(
        self,
        computation: str | bytes,
        executable_devices: DeviceList,
        compile_options: CompileOptions = ...,
    ) -> LoadedExecutable: ...
    @overload
    def compile_and_load(
        self,
        computation: Module,
        executable_devices: DeviceList,
        compile_options: CompileOptions = ...,
        host_callbacks: Sequence[Callable[..., Any]] = ...,
    ) -> LoadedExecutable: ...
    def serialize_executable(self, executable: LoadedExecutable, /) -> bytes: ...
    def deserialize_executable(
        self,
        serialized: bytes,
        executable_devices: DeviceList,
        compile_options: CompileOptions | None = None,
    ) -> LoadedExecutable: ...

# `_skip_checks` is gone from later jaxlibs, which never check.
def array_result_handler(
    aval: _Aval, sharding: object, committed: bool, _skip_checks: bool = False
) -> ResultHandler: ...
def batched_block_until_ready(buffers: Sequence[object], /) -> None: ...
def batched_device_put(
    aval: _Aval,
    sharding: object,
    xs: Sequence[object],
    devices: Sequence[Device],
    committed: bool = True,
    force_copy: bool = False,
    host_buffer_semantics: HostBufferSemantics = ...,
    enable_x64: bool | None = None,
) -> ArrayImpl: ...
def buffer_to_dlpack_managed_tensor(buffer: object, stream: int | None = None) -> CapsuleType: ...
def collect_garbage() -> None: ...

class CpuCollectives: ...

class DistributedRuntimeService:
    def shutdown(self) -> None: ...

class DistributedRuntimeClient:
    def connect(self) -> None: ...
    def shutdown(self) -> None: ...
    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str: ...
    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None: ...
    def key_value_delete(self, key: str) -> None: ...
    def get_live_nodes(self, process_ids: Sequence[int]) -> object: ...

def get_distributed_runtime_service(
    address: str,
    num_nodes: int,
    heartbeat_timeout: int | None = None,
    cluster_register_timeout: int | None = None,
    shutdown_timeout: int | None = None,
    recoverable: bool | None = None,
) -> DistributedRuntimeService: ...
def get_distributed_runtime_client(
    address: str,
    node_id: int,
    rpc_timeout: int | None = None,
    init_timeout: int | None = None,
    shutdown_timeout: int | None = None,
    heartbeat_timeout: int | None = None,
    missed_heartbeat_callback: None = None,
    shutdown_on_destruction: bool | None = None,
) -> DistributedRuntimeClient: ...
def make_gloo_tcp_collectives(
    distributed_client: DistributedRuntimeClient, hostname: str | None = None
) -> CpuCollectives: ...
