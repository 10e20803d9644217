"""The settings of JAX by name: their kinds, defaults and environment variables.

Those of ``EFFECTIVE`` change what the library does; the others are accepted and can be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from effax.ir.errors import BadArgument

EFFECTIVE: Final = (
    "enable_x64",
    "debug_nans",
    "debug_infs",
    "disable_jit",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "default_matmul_precision",
    "check_tracer_leaks",
    "log_compiles",
    "explain_cache_misses",
    "num_cpu_devices",
    "no_tracing",
    "no_execution",
    "compilation_cache_dir",
    "enable_compilation_cache",
    "raise_persistent_cache_errors",
    "persistent_cache_min_compile_time_secs",
    "persistent_cache_min_entry_size_bytes",
    "compilation_cache_max_size",
    "platforms",
    "default_device",
    "default_prng_impl",
    "explicit_x64_dtypes",
)
"""The settings with an effect."""

_OFF: Final = """
enable_x64 debug_nans debug_infs disable_jit check_tracer_leaks log_compiles explain_cache_misses
log_checkpoint_residuals enable_checks debug_key_reuse check_static_indices
debug_leaked_clients_on_clear_backends distributed_debug enable_custom_prng
threefry_gpu_kernel_lowering use_simplified_jaxpr_constants remove_size_one_mesh_axis_from_type
check_vma softmax_custom_jvp raise_persistent_cache_errors
compilation_cache_include_metadata_in_key enable_pgle compilation_cache_check_contents
compilation_cache_expect_pgle remove_custom_partitioning_ptr_from_cache_key
disallow_mesh_context_manager use_emit_pipeline_primitive bcoo_cusparse_lowering
eager_constant_folding no_tracing no_execution disable_vmap_shmap_error disable_bwd_checks
experimental_unsafe_xla_runtime_errors thread_guard use_cpp_shard_args high_dynamic_range_gumbel
accurate_erf_inv enable_recoverability export_ignore_forward_compatibility
export_deserialize_expired_versions jax2tf_associative_scan_reductions scan3 remat3 custom_vjp3
custom_jvp3 remat_barrier_no_cotangents disable_most_optimizations mosaic_allow_hlo
pallas_enable_debug_checks pallas_poison_buffers pallas_verbose_errors
distributed_verify_secure_credentials share_binary_between_hosts force_dcn_cross_host_transfers
"""

OFF: Final = tuple(_OFF.split())
"""Switches that are off by default."""

_ON: Final = """
threefry_partitionable use_direct_linearize
enable_compilation_cache include_full_tracebacks_in_locations auto_pcast allow_f16_reductions
compiler_enable_remat_pass mutable_array_checks use_rgv3 use_shardy_partitioner pprint_use_color
raise_on_ppermute_sort_diff jax2tf_default_native_serialization cpu_enable_async_dispatch
enable_preemption_service include_debug_info_in_dumps mosaic_unzip_debug_locations
ragged_dot_use_ragged_dot_instruction check_proxy_envs sort_devices_by_process_index
"""

ON: Final = tuple(_ON.split())
"""Switches that are on by default."""

_GUARDS: Final = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
_CHECKS: Final = ("ignore", "raise")
_LEVELS: Final = ("UNKNOWN", "O0", "O1", "O2", "O3")
PRECISIONS: Final = (
    None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "fastest",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32",
    "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
"""The values of ``default_matmul_precision``."""

CHOICES: Final[dict[str, tuple[object, tuple[object, ...]]]] = {
    "numpy_dtype_promotion": ("standard", ("standard", "strict")),
    "numpy_rank_promotion": ("allow", ("allow", "warn", "raise")),
    "default_matmul_precision": (None, PRECISIONS),
    "traceback_filtering": (
        "auto",
        ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    ),
    "legacy_prng_key": ("allow", ("allow", "warn", "error")),
    "default_prng_impl": (
        "threefry2x32",
        ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
    ),
    "explicit_x64_dtypes": ("warn", ("allow", "warn", "error")),
    "transfer_guard": (None, _GUARDS),
    "transfer_guard_host_to_device": (None, _GUARDS),
    "transfer_guard_device_to_device": (None, _GUARDS),
    "transfer_guard_device_to_host": (None, _GUARDS),
    "array_garbage_collection_guard": (None, (None, "allow", "log", "fatal")),
    "error_checking_behavior_nan": ("ignore", _CHECKS),
    "error_checking_behavior_divide": ("ignore", _CHECKS),
    "error_checking_behavior_oob": ("ignore", _CHECKS),
    "logging_level": (
        "NOTSET",
        ("NOTSET", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"),
    ),
    "send_traceback_to_runtime": ("off", ("off", "on", "full")),
    "optimization_level": ("UNKNOWN", _LEVELS),
    "memory_fitting_level": ("O2", _LEVELS),
    "cpu_collectives_implementation": ("gloo", (None, "gloo", "mpi", "none", "megascale")),
}
"""Settings of few values, each with its default."""

VALUES: Final[dict[str, object]] = {
    "serialization_version": 0,
    "export_calling_convention_version": 10,
    "captured_constants_warn_bytes": 2_000_000_000,
    "captured_constants_report_frames": 0,
    "random_seed_offset": 0,
    "embedded_constants_max_bytes": 32,
    "persistent_cache_min_compile_time_secs": 1.0,
    "persistent_cache_min_entry_size_bytes": 0,
    "compilation_cache_max_size": 1 << 30,
    "traceback_in_locations_limit": 100,
    "share_binary_between_hosts_timeout_ms": 1_200_000,
    "pgle_profiling_runs": 3,
    "pgle_aggregation_percentile": 90,
    "xla_profile_version": 0,
    "tracer_error_num_traceback_frames": 5,
    "compiler_detailed_logging_min_ops": 10,
    "num_cpu_devices": -1,
    "cpu_get_local_topology_timeout_minutes": 2,
    "cpu_get_global_topology_timeout_minutes": 5,
    "mock_num_gpu_processes": 0,
    "pallas_auto_assign_collective_ids": "no",
    "pallas_auto_assign_collective_ids_limit": 25,
    "persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "debug_log_modules": "",
    "use_magma": "auto",
    "dump_ir_to": "",
    "dump_ir_modes": "stablehlo",
    "xla_backend": "",
    "backend_target": "",
    "platform_name": "",
    "cuda_visible_devices": "all",
    "rocm_visible_devices": "all",
    "oneapi_visible_devices": "all",
    "mock_gpu_topology": "",
    "cross_host_transfer_socket_address": "",
    "cross_host_transport_addresses": "",
    "platforms": None,
    "pjrt_client_create_options": None,
    "compilation_cache_dir": None,
    "default_device": None,
    "use_hlo_logistic_lowering": None,
    "hlo_source_file_canonicalization_regex": None,
    "source_url_schema": None,
    "cross_host_transfer_timeout_seconds": None,
    "cross_host_transfer_transfer_size": None,
    "mtls_cert_file": None,
    "mtls_key_file": None,
    "mtls_ca_file": None,
    "mtls_peer_uri_prefix": None,
}
"""Settings of numbers, texts and other values, each with its default."""


def is_switch(name: str) -> bool:
    """Return whether a setting is on or off."""
    return name in OFF or name in ON


def _flag(name: str, text: str) -> bool:
    """Return the value of a switch as text. Raises BadArgument."""
    if text.lower() in ("1", "y", "yes", "t", "true", "on"):
        return True
    if text.lower() in ("", "0", "n", "no", "f", "false", "off"):
        return False
    raise BadArgument(f"{name} is switched on or off", "true or false", repr(text))


def checked_setting(name: str, value: object) -> object:
    """Return the value of a setting. Raises BadArgument for one that the setting does not take."""
    if is_switch(name):
        if not isinstance(value, bool):
            raise BadArgument(f"{name} is switched on or off", "a bool", repr(value))
        return value
    if name not in CHOICES:
        return value
    choices = CHOICES[name][1]
    plain = getattr(value, "value", value)
    if plain not in choices:
        raise BadArgument(
            f"{name} does not have this value", " or ".join(map(repr, choices)), repr(value)
        )
    return plain


def _from_text(name: str, default: object, text: str) -> object:
    if is_switch(name):
        return _flag(name, text)
    if name in CHOICES:
        return checked_setting(name, text)
    kinds: dict[type, Callable[[str], object]] = {bool: bool, int: int, float: float}
    try:
        return kinds.get(type(default), str)(text)
    except ValueError:
        raise BadArgument(f"{name} is a number", type(default).__name__, repr(text)) from None


def environment_variable(name: str) -> str:
    """Return the environment variable of a setting: JAX's name."""
    return name.upper() if name.startswith("jax2tf") else f"JAX_{name.upper()}"


def initial_settings() -> dict[str, object]:
    """Return the settings by name: their defaults, or those of environment variables.

    Raises BadArgument where a variable has a value that its setting does not take.
    """
    defaults: dict[str, object] = {**dict.fromkeys(OFF, False), **dict.fromkeys(ON, True)}
    defaults |= {name: default for name, (default, _) in CHOICES.items()} | VALUES
    variables = {name: os.environ.get(environment_variable(name)) for name in defaults}
    given = {name: text for name, text in variables.items() if text is not None}
    return defaults | {name: _from_text(name, defaults[name], x) for name, x in given.items()}
