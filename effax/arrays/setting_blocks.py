"""Blocks that change a setting, under JAX's names: ``with numpy_rank_promotion("raise"):``."""

from __future__ import annotations

from contextlib import AbstractContextManager

from effax.arrays.config import setting


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Run jitted functions, loops and branches as Python inside the block, in its thread.

    ``jit(f)`` calls ``f``; ``scan``, ``while_loop``, ``fori_loop`` and ``map`` are loops of Python,
    ``cond`` and ``switch`` branches of Python, where their conditions have values.

    >>> with effax.disable_jit():
    ...     effax.jit(lambda x: [x + 1, print(x)][0])(jnp.float32(1))
    1.0
    Array(2., dtype=float32)
    """
    return setting("disable_jit", disable)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """Change the promotion of dtypes inside the block, in its thread.

    Args:
        new_val: ``standard``, or ``strict``: operands of different dtypes raise, numbers of Python
            and others of weak type apart.

    >>> with effax.numpy_dtype_promotion("strict"):
    ...     jnp.float32(1) + 2
    Array(3., dtype=float32)
    """
    return setting("numpy_dtype_promotion", new_val)


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """Change what operands of different ranks do inside the block, in its thread.

    Args:
        new_val: ``allow``: they broadcast; ``warn``: with a warning; ``raise``: they raise, scalars
            apart.

    >>> with effax.numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 1)) + 2
    Array([[3.],
           [3.]], dtype=float32)
    """
    return setting("numpy_rank_promotion", new_val)


def default_matmul_precision(new_val: str | None) -> AbstractContextManager[None]:
    """Change the precision of products that pass none, inside the block, in its thread.

    Args:
        new_val: ``default``, ``high``, ``highest``, a dtype such as ``float32``, or the name of an
            algorithm of products; None is the platform's default.

    >>> with effax.default_matmul_precision("highest"):
    ...     print(effax.make_jaxpr(jnp.dot)(jnp.ones(2), jnp.ones(2)).eqns[0].prim.precision)
    highest
    """
    return setting("default_matmul_precision", new_val)


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise LeakedTracer where a traced value outlives its trace, in the block and its thread."""
    return setting("check_tracer_leaks", new_val)


def checking_leaks() -> AbstractContextManager[None]:
    """Raise LeakedTracer where a traced value outlives its trace, in the block and its thread."""
    return setting("check_tracer_leaks", True)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """Log each trace and compilation of a jitted function as a warning of logger ``effax``."""
    return setting("log_compiles", new_val)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Log why each call of a jitted function is traced, as a warning of logger ``effax``."""
    return setting("explain_cache_misses", new_val)


def default_device(new_val: object) -> AbstractContextManager[None]:
    """Set the device of new arrays inside the block: None or the first device.

    Raises BadArgument for another device, since all arrays are on the first one.
    """
    return setting("default_device", new_val)


def default_prng_impl(new_val: str) -> AbstractContextManager[None]:
    """Set the implementation of random numbers of new keys inside the block, in its thread."""
    return setting("default_prng_impl", new_val)


def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise RuntimeError inside the block where a function would be traced, in its thread."""
    return setting("no_tracing", new_val)


def no_execution(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise RuntimeError inside the block where a jitted function is called, in its thread."""
    return setting("no_execution", new_val)


class SettingBlock:
    """A function of a value to a block that changes a setting without effect.

    Args:
        name: the setting.
        default: the value of a call without one; None where calls pass one.
    """

    def __init__(self, name: str, default: object = None) -> None:
        self.name: str = name
        self.default: object = default
        self.__doc__ = f"Change the setting ``{name}`` inside the block; it has no effect."

    def __call__(self, new_val: object = None) -> AbstractContextManager[None]:
        return setting(self.name, self.default if new_val is None else new_val)


allow_f16_reductions: SettingBlock = SettingBlock("allow_f16_reductions", True)
array_garbage_collection_guard: SettingBlock = SettingBlock("array_garbage_collection_guard")
auto_pcast: SettingBlock = SettingBlock("auto_pcast", True)
debug_key_reuse: SettingBlock = SettingBlock("debug_key_reuse", True)
enable_checks: SettingBlock = SettingBlock("enable_checks", True)
enable_custom_prng: SettingBlock = SettingBlock("enable_custom_prng", True)
jax2tf_associative_scan_reductions: SettingBlock = SettingBlock(
    "jax2tf_associative_scan_reductions", True
)
legacy_prng_key: SettingBlock = SettingBlock("legacy_prng_key")
remove_size_one_mesh_axis_from_type: SettingBlock = SettingBlock(
    "remove_size_one_mesh_axis_from_type", True
)
softmax_custom_jvp: SettingBlock = SettingBlock("softmax_custom_jvp", True)
thread_guard: SettingBlock = SettingBlock("thread_guard", True)
threefry_partitionable: SettingBlock = SettingBlock("threefry_partitionable", True)
transfer_guard: SettingBlock = SettingBlock("transfer_guard")
transfer_guard_device_to_device: SettingBlock = SettingBlock("transfer_guard_device_to_device")
transfer_guard_device_to_host: SettingBlock = SettingBlock("transfer_guard_device_to_host")
transfer_guard_host_to_device: SettingBlock = SettingBlock("transfer_guard_host_to_device")
