"""The index of a checkpoint: its leaves, and the files that have their parts.

A folder is a checkpoint from the moment when its index appears, which is the last step of saving.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from effax.api.checkpoints.errors import CheckpointError, DamagedCheckpoint, NotACheckpoint
from effax.ir.types import Shape
from effax.lazy.dataclasses import dataclass

INDEX: Final = "index.json"
SUFFIX: Final = ".safetensors"
FORMAT: Final = "effax.checkpoint"
VERSION: Final = 1


class SavedPart(NamedTuple):
    """A part of an array: its file, its name there, and its place in the whole."""

    file: str
    name: str
    start: Shape
    shape: Shape


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree that was saved.

    Attributes:
        path: the Python expression of its path.
        dtype: the name of the dtype of an array; the class of a Python scalar.
        shape: the shape of the array.
        weak: whether the type of the array is weak.
        value: the text of a Python scalar; None for an array.
    """

    path: str
    dtype: str
    shape: Shape = ()
    weak: bool = False
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}" if self.value is None else self.dtype


class File(NamedTuple):
    """The size of a file, and the checksum of its header."""

    size: int
    header: int


@dataclass(frozen=True)
class Contents:
    """The contents of a checkpoint.

    Attributes:
        leaves: the leaves, in the order of the tree.
        parts: for each leaf, its parts; none for a scalar.
        files: the files by name.
    """

    leaves: Sequence[Leaf]
    parts: Sequence[Sequence[SavedPart]]
    files: Mapping[str, File]

    def check_complete(self) -> None:
        """Raise CheckpointError unless the parts of each array are the whole."""
        for leaf, parts in zip(self.leaves, self.parts, strict=True):
            # Parts have the axes of the words of keys too.
            sizes = [prod(part.shape[: len(leaf.shape)]) for part in parts]
            if leaf.value is None and sum(sizes) != prod(leaf.shape):
                raise CheckpointError(
                    f"parts of the leaf {leaf.path} are missing",
                    expected=f"{prod(leaf.shape)} elements",
                    found=f"{sum(sizes)} in {len(parts)} parts",
                    remedy="save the same tree in all processes",
                )


def leaf_json(leaf: Leaf) -> dict[str, object]:
    """Return a leaf as JSON."""
    if leaf.value is not None:
        return {"path": leaf.path, "scalar": leaf.dtype, "value": leaf.value}
    return {"path": leaf.path, "dtype": leaf.dtype, "shape": leaf.shape, "weak": leaf.weak}


def write_index(folder: Path, index: Contents) -> None:
    """Write the index: from then on, the folder is the checkpoint, even after a loss of power."""
    leaves = [
        {**leaf_json(leaf), "parts": parts} if leaf.value is None else leaf_json(leaf)
        for leaf, parts in zip(index.leaves, index.parts, strict=True)
    ]
    contents = {"format": FORMAT, "version": VERSION, "files": index.files, "leaves": leaves}
    contents["checksum"] = _checksum(contents)
    made = folder / f"{INDEX}.new"
    with made.open("w", encoding="utf-8") as out:
        json.dump(contents, out)
        out.flush()
        os.fsync(out.fileno())
    sync_folder(folder)
    made.replace(folder / INDEX)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of the files of a folder."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _checksum(contents: Mapping[str, object]) -> int:
    return crc32(json.dumps(contents, sort_keys=True).encode())


def load_index(folder: Path) -> Contents:
    """Return the index of a checkpoint.

    Raises:
        NotACheckpoint: the folder has none that is complete, or one of another program.
        DamagedCheckpoint: the index is not as it was written.
    """
    file = folder / INDEX
    try:
        contents = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise _not_a_checkpoint(folder, "no index.json: nothing, or an unfinished save") from None
    except ValueError as error:
        raise DamagedCheckpoint.of(file, "JSON", str(error)) from None
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise _not_a_checkpoint(folder, "an index.json of another program")
    if contents.get("version") != VERSION:
        raise _not_a_checkpoint(folder, f"version {contents.get('version')} of the format")
    checksum = contents.pop("checksum", None)
    if checksum != _checksum(contents):
        raise DamagedCheckpoint.of(file, f"the checksum {checksum}", str(_checksum(contents)))
    try:
        return _decoded(contents["leaves"], contents["files"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedCheckpoint.of(file, "an index of leaves and files", repr(error)) from None


def _decoded(
    leaves: Sequence[Mapping[str, object]], files: Mapping[str, Sequence[int]]
) -> Contents:
    parts: list[list[SavedPart]] = []
    for leaf in leaves:
        found = leaf.get("parts", [])
        assert isinstance(found, list)
        parts.append([SavedPart(f, name, tuple(at), tuple(shape)) for f, name, at, shape in found])
    if any(Path(name).name != name for name in files):
        raise ValueError("a file is outside of the folder")
    return Contents([_leaf(x) for x in leaves], parts, {n: File(*x) for n, x in files.items()})


def _leaf(found: Mapping[str, object]) -> Leaf:
    path = str(found["path"])
    if "scalar" in found:
        return Leaf(path, str(found["scalar"]), value=str(found["value"]))
    shape = found["shape"]
    assert isinstance(shape, list)
    return Leaf(path, str(found["dtype"]), tuple(shape), bool(found["weak"]))


def _not_a_checkpoint(folder: Path, found: str) -> NotACheckpoint:
    return NotACheckpoint(f"{folder} is no checkpoint", f"the index of {FORMAT}", found)
