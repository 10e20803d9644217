"""Further names of ``jax`` and its modules, each another name of what effax has."""

from __future__ import annotations

from effax.api.devices import devices, process_count, process_index, process_indices
from effax.drop_in.private import Client
from effax.ir.errors import TracerTypeError
from effax.ir.state import clear_caches
from effax.lowering.xla import Device

__all__ = [
    "Backend",
    "KeyReuseError",
    "Recompute",
    "Saveable",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_default_device",
    "host_count",
    "host_id",
    "host_ids",
]

Backend = Client
Saveable = True
"""The result of a policy of ``checkpoint`` for a value that is saved."""
Recompute = False
"""The result of a policy of ``checkpoint`` for a value that is recomputed."""
host_count = process_count
host_id = process_index
host_ids = process_indices
clear_backends = clear_caches
clear_in_memory_compilation_cache = clear_caches


class KeyReuseError(TracerTypeError):
    """A key is used twice, which JAX finds if a setting asks for it; here never raised."""


def get_default_device() -> Device:
    """Return the first device."""
    return devices()[0]
