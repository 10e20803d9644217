"""``pjit``, JAX's earlier name of ``jit``."""

from __future__ import annotations

from effax.api.jit import jit as pjit

__all__ = ["pjit"]
