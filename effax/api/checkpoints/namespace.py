"""The name ``checkpoint``: JAX's transformation, whose attributes save and restore trees."""

from __future__ import annotations

from functools import update_wrapper
from typing import Final, final

from effax.api import remat
from effax.api.checkpoints import errors, manager, restore, save


@final
class Checkpoint:
    """The transformation ``remat``, and the names of ``effax.checkpoint`` as attributes."""

    CheckpointError = errors.CheckpointError
    CheckpointExists = errors.CheckpointExists
    CheckpointManager = manager.CheckpointManager
    DamagedCheckpoint = errors.DamagedCheckpoint
    NotACheckpoint = errors.NotACheckpoint
    Saving = save.Saving
    restore = staticmethod(restore.restore)
    save = staticmethod(save.save)
    __call__ = staticmethod(remat.checkpoint)


checkpoint: Final[Checkpoint] = Checkpoint()
update_wrapper(checkpoint, remat.checkpoint)
