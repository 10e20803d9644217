"""Functions with user-defined batching rules, under JAX's names."""

from __future__ import annotations

from effax.api.custom.decorators import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
