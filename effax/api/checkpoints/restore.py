"""Restore trees: each process reads the parts of its devices, and no other bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast, final

import numpy as np

from effax import tree as trees
from effax.api.checkpoints.errors import CheckpointError, DamagedCheckpoint
from effax.api.checkpoints.index import File, Leaf, SavedPart, load_index
from effax.api.checkpoints.leaves import SCALARS, leaf_of_type, named_leaves
from effax.api.checkpoints.safetensors import Container
from effax.api.staging import ShapeDtypeStruct
from effax.arrays.device_array import DeviceArray
from effax.arrays.exclusive import exclusively
from effax.arrays.placed_array import PlacedArray, parts_of, placed_type
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import EagerRef
from effax.arrays.sharding import Sharding
from effax.ir.dtypes import DType, dtype_of_short_name, is_array_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import ArrayType, array_type
from effax.lowering import xla
from effax.lowering.xla.backend import buffer_type
from effax.tree import PyTree

Index = tuple[slice, ...]


@final
class Reader:
    """The files of a checkpoint, opened when they are first read."""

    def __init__(self, folder: Path, files: Mapping[str, File]) -> None:
        self._folder: Final = folder
        self._files: Final = files
        self._opened: Final[dict[str, Container]] = {}

    def _container(self, name: str) -> Container:
        found = self._opened.get(name)
        if found is None:
            file, wanted = self._folder / name, self._files[name]
            if not file.is_file() or file.stat().st_size != wanted.size:
                size = file.stat().st_size if file.is_file() else "no file"
                raise DamagedCheckpoint.of(file, f"{wanted.size} bytes", f"{size}")
            found = self._opened[name] = Container(file)
            if found.checksum != wanted.header:
                raise DamagedCheckpoint.of(
                    file, f"a header with the checksum {wanted.header}", f"{found.checksum}"
                )
        return found

    def read(self, parts: Sequence[SavedPart], index: Index, dtype: DType) -> np.ndarray:
        """Return a part of an array, of the parts that were saved."""
        starts = [s.start for s in index]
        out = np.empty([s.stop - s.start for s in index], dtype)
        for part in parts:
            ends = np.add(part.start, part.shape)
            low = np.maximum(starts, part.start).astype(int)
            high = np.minimum([s.stop for s in index], ends).astype(int)
            if np.all(low < high):
                there = _slices(low - part.start, high - part.start)
                here = _slices(low - starts, high - starts)
                self._container(part.file).read(part.name, there, _view(out, here))
        return out


def _view(x: np.ndarray, index: Index) -> np.ndarray:
    return np.asarray(x[index] if index else x)


def _slices(low: np.ndarray, high: np.ndarray) -> Index:
    return tuple([slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])


def restore(path: str | os.PathLike[str], like: object = None, *, partial: bool = False) -> PyTree:
    """Return the tree of a checkpoint, with the types and shardings of another one.

    Each process reads the parts of its devices, from whichever files have them: the mesh, the
    shardings and the number of processes may differ from those that saved.

    Args:
        path: the folder.
        like: a tree of the structure of the result. Arrays and ``ShapeDtypeStruct`` are restored as
            arrays of their shardings, NumPy arrays and Python scalars as such. Contents of
            references are replaced in place, all of them once everything is read. None for a dict
            of the paths of leaves to NumPy arrays, arrays of keys and scalars.
        partial: whether the checkpoint may have leaves that ``like`` lacks.

    Raises:
        NotACheckpoint: the folder has no complete checkpoint, or one of another program.
        DamagedCheckpoint: a file is not as it was written; the error names it.
        CheckpointError: leaves are missing; the error names them.
        IllTyped: a leaf has another shape or dtype, or its sharding does not divide it.
        RefError: a reference was consumed.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/step"
    >>> _ = effax.checkpoint.save(folder, [jnp.arange(3), 0.5])
    >>> effax.checkpoint.restore(folder)
    {'[0]': array([0, 1, 2], dtype=int32), '[1]': 0.5}
    >>> effax.checkpoint.restore(folder, like=[effax.ShapeDtypeStruct((3,), "int32"), 0.0])
    [Array([0, 1, 2], dtype=int32), 0.5]
    """
    folder = Path(path)
    index = load_index(folder)
    index.check_complete()
    reader = Reader(folder, index.files)
    saved = {x.path: (x, parts) for x, parts in zip(index.leaves, index.parts, strict=True)}
    if like is None:
        return {name: _without_like(reader, *found) for name, found in saved.items()}
    wanted, treedef = named_leaves(like, "restore")
    _check_paths(folder, wanted, saved, partial)
    targets = {name: _target(saved[name][0], x) for name, x in wanted.items()}
    read = [_read(reader, *saved[name], target) for name, target in targets.items()]
    refs = [(x, y) for x, y in zip(wanted.values(), read, strict=True) if isinstance(x, EagerRef)]

    def replace() -> None:
        for ref, _ in refs:
            ref.check_usable()
        for ref, contents in refs:
            _replace(ref, cast("DeviceArray", contents))

    exclusively([ref for ref, _ in refs], replace)
    pairs = zip(wanted.values(), read, strict=True)
    return trees.unflatten(treedef, [x if isinstance(x, EagerRef) else y for x, y in pairs])


def _replace(ref: EagerRef, contents: DeviceArray) -> None:
    if isinstance(ref, PlacedRef):
        placed = cast("PlacedArray", contents)
        ref.replace_buffer(placed.parts, placed.placed_type.place)
    else:
        ref.memory()[...] = contents.numpy()


def _check_paths(
    folder: Path, wanted: Mapping[str, object], saved: Mapping[str, object], partial: bool
) -> None:
    lacking = [name for name in wanted if name not in saved]
    left = [] if partial else [name for name in saved if name not in wanted]
    if lacking:
        raise CheckpointError(
            f"the checkpoint {folder} lacks leaves of `like`",
            expected=_shown(lacking),
            found=_shown(saved),
            remedy="restore a part of the tree, or the tree that was saved",
        )
    if left:
        raise CheckpointError(
            f"the checkpoint {folder} has leaves that `like` lacks",
            expected="a tree of all leaves that were saved",
            found=_shown(left),
            remedy="pass `partial=True` to leave them out",
        )


def _shown(names: Iterable[str]) -> str:
    first = list(names)
    return ", ".join(first[:8]) + (f" and {len(first) - 8} more" if len(first) > 8 else "")


class _Target(NamedTuple):
    """The type of a leaf of the result, None for a scalar; its sharding and NumPy class, if any."""

    of: ArrayType | None
    sharding: Sharding | None = None
    numpy: type[object] | None = None


def _target(leaf: Leaf, x: object) -> _Target:
    """Return the type of the leaf of ``like``. Raises IllTyped for another one than was saved."""
    if type(x) in SCALARS:
        if leaf.value is None or leaf.dtype != type(x).__name__:
            raise _another(leaf, type(x).__name__)
        return _Target(None)
    target = _of_array(leaf, x)
    assert target.of is not None
    found = leaf_of_type(leaf.path, target.of)
    if leaf.value is not None or (found.dtype, found.shape) != (leaf.dtype, leaf.shape):
        raise _another(leaf, str(found))
    try:
        if target.sharding is not None:
            target.sharding.shard_shape(leaf.shape)
    except IllTyped as error:
        raise IllTyped(f"restore: {leaf.path}: {error.what}", error.expected, error.found) from None
    return target


def _of_array(leaf: Leaf, x: object) -> _Target:
    if isinstance(x, PlacedRef):
        return _Target(x.contents.type, x.sharding)
    if isinstance(x, EagerRef):
        return _Target(x.type.inner)
    if isinstance(x, DeviceArray):
        # An array that was not placed has no sharding of its own.
        placed = isinstance(x, PlacedArray) or hasattr(x, "_sharding")
        return _Target(x.type, x.sharding if placed else None)
    if isinstance(x, ShapeDtypeStruct):
        return _Target(array_type(x.shape, x.dtype, x.weak_type), x.sharding)
    if isinstance(x, np.ndarray | np.generic) and is_array_dtype(x.dtype):
        return _Target(array_type(x.shape, x.dtype), None, type(x))
    raise BadArgument(
        f"restore: the leaf {leaf.path} of `like` has no type",
        expected="an array, a reference, a ShapeDtypeStruct, a number or a string",
        found=f"{type(x).__name__}: {x!r:.60}",
        remedy="restore outside of traced functions",
    )


def _another(leaf: Leaf, found: str) -> IllTyped:
    return IllTyped(
        f"restore: the leaf {leaf.path} has another type than was saved",
        expected=f"{leaf}, as saved",
        found=found,
        remedy="restore with the type that was saved, and convert the result",
    )


def _read(reader: Reader, leaf: Leaf, parts: Sequence[SavedPart], target: _Target) -> object:
    if target.of is None:
        return _scalar(leaf)
    if target.numpy is not None:
        value = _read_whole(reader, parts, target.of)
        return value[()] if issubclass(target.numpy, np.generic) else value
    return _array(reader, parts, target.of, target.sharding)


def _scalar(leaf: Leaf) -> object:
    assert leaf.value is not None
    if leaf.dtype == "bool":
        return leaf.value == "True"
    return next(kind for kind in SCALARS if kind.__name__ == leaf.dtype)(leaf.value)


def _read_whole(reader: Reader, parts: Sequence[SavedPart], type_: ArrayType) -> np.ndarray:
    stored = buffer_type(type_)
    value = reader.read(parts, tuple([slice(0, n) for n in stored.shape]), stored.dtype)
    return xla.buffer_contents(value, type_)


def _array(
    reader: Reader, parts: Sequence[SavedPart], type_: ArrayType, sharding: Sharding | None
) -> DeviceArray:
    """Return an array, read for the devices of this process."""
    stored = buffer_type(type_)
    place = None if sharding is None else sharding.placement(len(type_.shape))
    if place is None or sharding is None:
        return DeviceArray(_read_whole(reader, parts, type_), type_).placed(sharding)
    placed = placed_type(type_, sharding)
    indices = placed.place.indices(stored.shape)
    here = {k: indices[k] for k in placed.place.local}
    own = parts_of(here, lambda index: reader.read(parts, index, stored.dtype))
    return PlacedArray(placed, xla.put_parts(own, stored, placed.place))


def _without_like(reader: Reader, leaf: Leaf, parts: Sequence[SavedPart]) -> object:
    if leaf.value is not None:
        return _scalar(leaf)
    try:
        dtype = dtype_of_short_name(leaf.dtype)
    except KeyError:
        raise CheckpointError(
            f"the leaf {leaf.path} has an unknown dtype",
            expected="a dtype of this version and of the loaded generators of keys",
            found=leaf.dtype,
        ) from None
    type_ = array_type(leaf.shape, dtype, leaf.weak)
    if buffer_type(type_) is not type_:
        return _array(reader, parts, type_, None)
    return _read_whole(reader, parts, type_)
