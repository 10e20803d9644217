"""Errors of saving and restoring."""

from __future__ import annotations

from dataclasses import field

from effax.ir.errors import EffaxError
from effax.lazy.dataclasses import dataclass


class CheckpointError(EffaxError, OSError):
    """A tree cannot be saved, or a checkpoint cannot be restored."""


class NotACheckpoint(CheckpointError, FileNotFoundError):
    """A folder has no checkpoint that is complete, or is one of another program."""


class CheckpointExists(CheckpointError, FileExistsError):
    """A checkpoint, or files of another program, are where a tree would be saved."""


@dataclass(eq=False)
class DamagedCheckpoint(CheckpointError):
    """A file of a checkpoint is not as it was written; ``file`` is its path."""

    file: str = field(default="", kw_only=True)

    @classmethod
    def of(cls, file: object, expected: str, found: str) -> DamagedCheckpoint:
        """Return the error for a file."""
        return cls(
            f"the file {file} is damaged",
            expected,
            found,
            "restore another step, or a copy of the file",
            file=str(file),
        )
