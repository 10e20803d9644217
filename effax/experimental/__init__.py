"""Public names that JAX keeps in ``jax.experimental``."""

from __future__ import annotations

from effax.api.callbacks import io_callback
from effax.experimental import checkify as checkify

__all__ = ["checkify", "io_callback"]
