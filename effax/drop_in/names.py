"""Further names of ``jax`` and its modules, each another name of what effax has."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from effax.api.devices import process_count, process_index, process_indices
from effax.arrays.array import Array
from effax.drop_in.private import Client
from effax.ir.errors import TracerTypeError
from effax.ir.state import Cache, clear_caches, register_cache
from effax.lowering.xla import Device, first_device
from effax.lowering.xla.dlpack import TYPE_CODES

__all__ = [
    "AbstractToken",
    "Backend",
    "KeyReuseError",
    "Recompute",
    "Saveable",
    "Token",
    "array_types",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_default_device",
    "host_count",
    "host_id",
    "host_ids",
    "register_backend_cache",
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
    return first_device()


class AbstractToken:
    """The class of types of JAX's tokens, which no value has: tokens are arrays here."""


class Token:
    """The class of JAX's tokens, without instances: tokens are arrays here."""


array_types: Final = frozenset({np.ndarray, Array, *[dtype.type for dtype in TYPE_CODES]})
"""The classes of arrays and their elements."""


class ClearedCache(Protocol):
    """A cache that can be emptied."""

    def cache_clear(self) -> None:
        """Remove all entries."""
        ...


def register_backend_cache(cache: ClearedCache, for_what: str) -> None:
    """Empty a cache with those of effax, by ``jax.clear_caches()``."""
    register_cache(Cache(f"{for_what} of a program", 0, cache.cache_clear, lambda: 0))
