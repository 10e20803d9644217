"""Checkpoints: trees of arrays and references, saved and restored by one process or many.

Called, ``effax.checkpoint(fun)`` is JAX's transformation of that name: it recomputes intermediate
values in derivatives (``effax.remat``).
"""

from __future__ import annotations

from effax.api.checkpoints.errors import (
    CheckpointError,
    CheckpointExists,
    DamagedCheckpoint,
    NotACheckpoint,
)
from effax.api.checkpoints.manager import CheckpointManager
from effax.api.checkpoints.namespace import checkpoint
from effax.api.checkpoints.restore import restore
from effax.api.checkpoints.save import Saving, save

__all__ = [
    "CheckpointError", "CheckpointExists", "CheckpointManager", "DamagedCheckpoint",
    "NotACheckpoint", "Saving", "checkpoint", "restore", "save",
]  # fmt: skip
