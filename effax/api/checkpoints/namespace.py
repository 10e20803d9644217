"""The name ``checkpoint``: JAX's transformation, whose attributes save and restore trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Final, ParamSpec, TypeVar, final

from effax.api import remat
from effax.api.checkpoints import errors, manager, restore, save
from effax.ir.prims import SaveRule

P = ParamSpec("P")
R = TypeVar("R")


@final
class Checkpoint:
    """The transformation ``remat``, and the names of ``effax.checkpoint`` as attributes."""

    def __init__(self) -> None:
        self.CheckpointError: Final = errors.CheckpointError
        self.CheckpointExists: Final = errors.CheckpointExists
        self.CheckpointManager: Final = manager.CheckpointManager
        self.DamagedCheckpoint: Final = errors.DamagedCheckpoint
        self.NotACheckpoint: Final = errors.NotACheckpoint
        self.Saving: Final = save.Saving
        self.restore: Final = restore.restore
        self.save: Final = save.save
        update_wrapper(self, remat.checkpoint)

    def __call__(
        self,
        fun: Callable[P, R],
        *,
        prevent_cse: object = True,
        policy: SaveRule | Callable[..., bool] | None = None,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
    ) -> Callable[P, R]:
        return remat.checkpoint(
            fun,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )


checkpoint: Final[Checkpoint] = Checkpoint()
