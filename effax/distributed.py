"""Computations of several processes."""

from __future__ import annotations

from effax.api.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]
