"""All access to jaxlib's unstable surface, for jaxlib 0.10.2 to 0.12.0.1.

This package imports jaxlib lazily: the first :func:`put`, :func:`compile_module` or :func:`start`
creates the one client of the process. It coexists with `import jax`, in either order.

Notes for callers:

- A :class:`Buffer` is jaxlib's array. Its type is interned, ``buffer.aval`` is one object for each
  type, so that a tuple of them is a cheap cache key.
- Donation is part of the module's text: an argument with ``tf.aliasing_output = k`` is consumed,
  and output k is written into its memory. The address stays the same if XLA owns the memory
  (:func:`new_ref_buffer`, or any output) and no view made by :func:`to_numpy` or by DLPack is
  alive; otherwise XLA copies first, the view keeps the old contents and the address changes.
- An executable checks the number and the sizes in bytes of its arguments, not their dtypes.
- By default a call returns when it is done, so that NumPy may write into the memory that a call
  has read (:func:`raw_view`). After ``start(asynchronous=True)`` the caller must synchronize:
  blocking on a buffer waits for its writer, *not* for its readers.
"""

from effax.lowering.xla.backend import (
    EFFORTS,
    Aval,
    Buffer,
    Device,
    aval_of,
    backend,
    devices,
    first_device,
    is_running,
    max_nesting,
    number_of_devices,
    number_of_processes,
    own_devices,
    platform_version,
    processes_of,
    set_num_devices,
    spanning,
    start,
    this_process,
)
from effax.lowering.xla.buffers import (
    block,
    buffer_array_type,
    buffer_contents,
    delete,
    dlpack_device,
    from_dlpack,
    is_deleted,
    new_ref_buffer,
    pointer,
    put,
    raw_view,
    to_dlpack,
    to_numpy,
)
from effax.lowering.xla.executable import (
    Executable,
    Optimization,
    Run,
    compile_module,
    load_executable,
)
from effax.lowering.xla.host import TARGET as HOST_TARGET
from effax.lowering.xla.host import Total, effects_barrier
from effax.lowering.xla.host import parsed as module_of
from effax.lowering.xla.lapack import has_lapack, lapack_target
from effax.lowering.xla.memory import MemoryStats
from effax.lowering.xla.placement import (
    Placement,
    copied_parts,
    from_single,
    gathered,
    handler_at,
    placement_of,
    placement_over,
    put_parts,
    put_whole,
    read_part,
    replicated,
)
from effax.lowering.xla.portable import computation_of, from_portable, module_cost, to_portable
from effax.lowering.xla.signature import ModuleSignature, signature

__all__ = [
    "EFFORTS",
    "HOST_TARGET",
    "Aval",
    "Buffer",
    "Device",
    "Executable",
    "MemoryStats",
    "ModuleSignature",
    "Optimization",
    "Placement",
    "Run",
    "Total",
    "aval_of",
    "backend",
    "block",
    "buffer_array_type",
    "buffer_contents",
    "compile_module",
    "computation_of",
    "copied_parts",
    "delete",
    "devices",
    "dlpack_device",
    "effects_barrier",
    "first_device",
    "from_dlpack",
    "from_portable",
    "from_single",
    "gathered",
    "handler_at",
    "has_lapack",
    "is_deleted",
    "is_running",
    "lapack_target",
    "load_executable",
    "max_nesting",
    "module_cost",
    "module_of",
    "new_ref_buffer",
    "number_of_devices",
    "number_of_processes",
    "own_devices",
    "placement_of",
    "placement_over",
    "platform_version",
    "pointer",
    "processes_of",
    "put",
    "put_parts",
    "put_whole",
    "raw_view",
    "read_part",
    "replicated",
    "set_num_devices",
    "signature",
    "spanning",
    "start",
    "this_process",
    "to_dlpack",
    "to_numpy",
    "to_portable",
]
