"""Public names that JAX keeps in ``jax.experimental``."""

from __future__ import annotations

from effax.api.callbacks import io_callback

__all__ = ["io_callback"]
