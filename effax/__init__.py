"""effax: immutable programs, typed effects, pure transformations.

``import effax as jax; import effax.numpy as jnp``: names, argument orders, dtypes and printed forms
follow JAX. No module imports JAX, and XLA is loaded on first use.
"""

from __future__ import annotations

from typing import Final as _Final

from effax import (
    ad,
    ad_checkpoint,
    checkpoint_policies,
    core,
    custom_batching,
    custom_derivatives,
    debug,
    dtypes,
    errors,
    experimental,
    export,
    flatten_util,
    lax,
    nn,
    numpy,
    ops,
    passes,
    random,
    ref,
    sharding,
    show,
    stages,
    tree,
    tree_util,
    typing,
)
from effax.api.apply_passes import apply_passes
from effax.api.autodiff import grad, jvp, linearize, value_and_grad
from effax.api.callbacks import pure_callback
from effax.api.cost import cost
from effax.api.custom.closures import closure_convert, custom_gradient
from effax.api.custom.decorators import custom_jvp, custom_rules, custom_vjp
from effax.api.devices import (
    block_until_ready,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    effects_barrier,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from effax.api.jacobian import hessian, jacfwd, jacrev
from effax.api.jacobian import jacrev as jacobian
from effax.api.jit import jit
from effax.api.linear import linear_transpose
from effax.api.naming import named_call
from effax.api.remat import checkpoint, remat
from effax.api.shard_map import shard_map
from effax.api.signature import effects_of, signature_of
from effax.api.staging import ShapeDtypeStruct, eval_shape, make_jaxpr, typeof
from effax.api.vjp import VJP, vjp
from effax.arrays import config as _config_module
from effax.arrays.array import Array
from effax.arrays.batching import vmap
from effax.arrays.config import debug_infs, debug_nans, enable_x64
from effax.arrays.ref import Ref
from effax.arrays.ref_functions import empty_ref, free_ref, freeze, new_ref
from effax.ir.dtypes import FLOAT0
from effax.ir.dtypes import DType as _DType
from effax.ir.state import clear_caches
from effax.ir.text.notebook import draw_with
from effax.ir.trace import eager as ensure_compile_time_eval
from effax.ir.trace import named_scope
from effax.lax import stop_gradient
from effax.lowering.xla import Device
from effax.sharding import NamedSharding, make_mesh
from effax.sharding import PartitionSpec as P

__version__ = "0.1.0"

config: _Final[_config_module.Config] = _config_module.config
float0: _Final[_DType] = FLOAT0
draw_with(show.in_notebook)

__all__ = [
    "VJP",
    "Array",
    "Device",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "ad",
    "ad_checkpoint",
    "apply_passes",
    "block_until_ready",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
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
    "debug_nans",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "dtypes",
    "effects_barrier",
    "effects_of",
    "empty_ref",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "export",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "make_mesh",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "numpy",
    "ops",
    "passes",
    "process_count",
    "process_index",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "shard_map",
    "sharding",
    "show",
    "signature_of",
    "stages",
    "stop_gradient",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]
