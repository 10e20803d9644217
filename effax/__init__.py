"""effax: immutable programs, typed effects, pure transformations.

``import effax as jax; import effax.numpy as jnp``: names, argument orders, dtypes and printed forms
follow JAX. No module imports JAX, and XLA is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy
from effax.version import __version__ as __version__

if TYPE_CHECKING:
    from effax import (
        ad,
        ad_checkpoint,
        checkpoint_policies,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        errors,
        experimental,
        export,
        flatten_util,
        image,
        lax,
        monitoring,
        nn,
        numpy,
        ops,
        passes,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        show,
        stages,
        tree,
        tree_util,
        typing,
        version,
    )
    from effax.api.apply_passes import apply_passes
    from effax.api.autodiff import grad, jvp, linearize, value_and_grad
    from effax.api.callbacks import pure_callback
    from effax.api.cost import cost
    from effax.api.custom.closures import closure_convert, custom_gradient
    from effax.api.custom.decorators import custom_jvp, custom_rules, custom_vjp
    from effax.api.devices import (
        block_until_ready,
        copy_to_host_async,
        default_backend,
        device_count,
        device_get,
        device_put,
        devices,
        effects_barrier,
        local_device_count,
        local_devices,
        print_environment_info,
        process_count,
        process_index,
        process_indices,
    )
    from effax.api.fwd_and_bwd import fwd_and_bwd
    from effax.api.jacobian import hessian, jacfwd, jacrev
    from effax.api.jacobian import jacrev as jacobian
    from effax.api.jit import jit
    from effax.api.jit_options import CompilerEffortLevel, Inline
    from effax.api.linear import linear_transpose
    from effax.api.live_arrays import live_arrays
    from effax.api.make_arrays import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from effax.api.naming import named_call
    from effax.api.pmap import pmap
    from effax.api.remat import remat
    from effax.api.shard_map import shard_map, smap
    from effax.api.signature import effects_of, signature_of
    from effax.api.staging import ShapeDtypeStruct, eval_shape, make_jaxpr, typeof
    from effax.api.vjp import VJP, vjp
    from effax.arrays.array import Array
    from effax.arrays.batching import vmap
    from effax.arrays.binding import folding as ensure_compile_time_eval
    from effax.arrays.config import (
        config,
        debug_infs,
        debug_nans,
        enable_x64,
        make_user_context,
    )
    from effax.arrays.placed import Shard
    from effax.arrays.ref import Ref
    from effax.arrays.ref_functions import empty_ref, free_ref, freeze, new_ref
    from effax.arrays.setting_blocks import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        check_tracer_leaks,
        checking_leaks,
        debug_key_reuse,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_checks,
        enable_custom_prng,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        log_compiles,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from effax.checkpoint import checkpoint
    from effax.ir.dtypes import FLOAT0 as float0  # noqa: N811  JAX's name
    from effax.ir.state import clear_caches
    from effax.ir.trace import named_scope
    from effax.lax import ds, stop_gradient
    from effax.lax.placement import reshard
    from effax.lowering.xla import Device
    from effax.sharding import NamedSharding, make_mesh, set_mesh
    from effax.sharding import PartitionSpec as P
else:
    __getattr__, __dir__ = _lazy(__name__)

__all__ = [
    "VJP",
    "Array",
    "CompilerEffortLevel",
    "Device",
    "Inline",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "ad",
    "ad_checkpoint",
    "allow_f16_reductions",
    "apply_passes",
    "array_garbage_collection_guard",
    "auto_pcast",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "cost",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_rules",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "dlpack",
    "ds",
    "dtypes",
    "effects_barrier",
    "effects_of",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "explain_cache_misses",
    "export",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "image",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax2tf_associative_scan_reductions",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "make_user_context",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "passes",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "remove_size_one_mesh_axis_from_type",
    "reshard",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "show",
    "signature_of",
    "smap",
    "softmax_custom_jvp",
    "stages",
    "stop_gradient",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "version",
    "vjp",
    "vmap",
]
