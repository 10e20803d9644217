"""Computations of several processes, which effax does not have: one process, its own devices."""

from __future__ import annotations

from effax.api.devices import initialize_distributed as initialize
from effax.api.devices import is_distributed as is_initialized
from effax.api.devices import shutdown_distributed as shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]
