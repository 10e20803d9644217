"""The checkpoints of a run: one for each step that is kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from effax.api.checkpoints.errors import NotACheckpoint
from effax.api.checkpoints.index import INDEX, sync_folder
from effax.api.checkpoints.processes import savers
from effax.api.checkpoints.restore import restore
from effax.api.checkpoints.save import Saving, is_of_this_format, start_saving
from effax.arrays.argument_checks import integers
from effax.ir.errors import BadArgument
from effax.tree import PyTree


@final
class CheckpointManager:
    """The checkpoints of a run, in a folder of one folder a step, of which the newest are kept.

    As a context manager, it waits at its end for the save in progress.

    Args:
        directory: the folder, on a file system that all processes share; created if needed.
        keep: the number of checkpoints that are kept; None for all.

    Raises:
        BadArgument: ``keep`` is not None or at least 1.

    >>> import tempfile
    >>> manager = effax.checkpoint.CheckpointManager(tempfile.mkdtemp(), keep=2)
    >>> for step in range(4):
    ...     _ = manager.save(step, {"w": jnp.full(2, step)}, wait=False)
    >>> manager.wait_until_finished()
    >>> manager.all_steps(), manager.latest_step()
    ([2, 3], 3)
    >>> manager.restore(like={"w": jnp.zeros(2, "int32")})
    {'w': Array([3, 3], dtype=int32)}
    """

    def __init__(self, directory: str | os.PathLike[str], *, keep: int | None = None) -> None:
        if keep is not None and (type(keep) is not int or keep < 1):
            raise BadArgument(
                "CheckpointManager: keep is the number of checkpoints that are kept",
                expected="None, or an integer of at least 1",
                found=repr(keep),
            )
        self._folder: Final = Path(directory)
        self._keep: Final = keep
        self._saving: Saving | None = None

    def save(
        self, step: int, tree: object, *, overwrite: bool = False, wait: bool = True
    ) -> Saving:
        """Save the tree of a step, as ``save``, and remove the oldest steps beyond ``keep``.

        Waits for the save before it. Raises as ``save``, for both.
        """
        folder = self._folder_of(step)
        self.wait_until_finished()
        self._saving = start_saving(
            folder, tree, savers(), overwrite, wait, lambda: self._remove_old(step)
        )
        return self._saving

    def restore(
        self, step: int | None = None, *, like: object = None, partial: bool = False
    ) -> PyTree:
        """Return the tree of a step, by default the latest, as ``restore``.

        Raises:
            NotACheckpoint: the step has none.
        """
        self.wait_until_finished()
        chosen = self.latest_step() if step is None else step
        if chosen is None:
            raise NotACheckpoint(f"{self._folder} has no checkpoint of a step", "a step", "none")
        return restore(self._folder_of(chosen), like, partial=partial)

    def all_steps(self) -> list[int]:
        """Return the steps that have a checkpoint, in ascending order."""
        if not self._folder.is_dir():
            return []
        return sorted([step for step in self._folders() if self._is_complete(step)])

    def latest_step(self) -> int | None:
        """Return the largest step that has a checkpoint, or None."""
        return max(self.all_steps(), default=None)

    def wait_until_finished(self) -> None:
        """Return when the save in progress is done. Raises its error."""
        if self._saving is not None:
            saving, self._saving = self._saving, None
            saving.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wait_until_finished()

    def _folder_of(self, step: int) -> Path:
        (number,) = integers([step], "CheckpointManager: step")
        if number < 0:
            raise BadArgument("CheckpointManager: a step is at least 0", found=str(number))
        return self._folder / str(number)

    def _folders(self) -> list[int]:
        names = [folder.name for folder in self._folder.iterdir() if folder.is_dir()]
        return [int(name) for name in names if name.isdecimal() and name == str(int(name))]

    def _is_complete(self, step: int) -> bool:
        return (self._folder / str(step) / INDEX).is_file()

    def _remove_old(self, saved: int) -> None:
        """Remove the oldest steps but the one just saved, and what unfinished saves left."""
        sync_folder(self._folder)
        steps = self.all_steps()
        others = [step for step in steps if step != saved]
        surplus = others[: len(steps) - self._keep] if self._keep is not None else []
        unfinished = [step for step in self._folders() if step not in steps]
        for step in [*surplus, *unfinished]:
            folder = self._folder / str(step)
            if all(is_of_this_format(file.name) for file in folder.iterdir()):
                # Without its index, no reader takes the rest for a checkpoint.
                (folder / INDEX).unlink(missing_ok=True)
                sync_folder(folder)
                shutil.rmtree(folder)
