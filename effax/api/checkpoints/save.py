"""Save trees: each process writes its parts, and the first one makes the checkpoint appear."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Final, final
from zlib import crc32

from effax.api.checkpoints import safetensors
from effax.api.checkpoints.errors import CheckpointError, CheckpointExists
from effax.api.checkpoints.index import (
    INDEX,
    SUFFIX,
    Contents,
    File,
    SavedPart,
    leaf_json,
    load_index,
    write_index,
)
from effax.api.checkpoints.leaves import Taken, taken
from effax.api.checkpoints.processes import Savers, savers
from effax.ir.errors import EffaxError

_OF_THIS_FORMAT: Final = re.compile(rf"\d{{5}}-of-\d{{5}}-[0-9a-f]{{16}}{SUFFIX}|{INDEX}(\.new)?")
_PARTS: Final = "effax.parts"


@final
class Saving:
    """A save in progress. A failed one that no call of ``wait`` reports is a warning."""

    def __init__(self, work: Callable[[], None], wait: bool) -> None:
        self._done: Final[Future[None]] = Future()
        self._seen = False
        if wait:
            self._run(work)
            self.wait()
        else:
            # The interpreter waits for the thread before it ends.
            Thread(target=self._run, args=(work,), name="effax.checkpoint").start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised by `wait`
            self._done.set_exception(error)
        else:
            self._done.set_result(None)

    def done(self) -> bool:
        """Return whether the save has ended, in a checkpoint or in an error."""
        return self._done.done()

    def wait(self) -> None:
        """Return when the checkpoint is on the disk. Raises the error of the save."""
        self._seen = True
        self._done.result()

    def __del__(self) -> None:
        failed = not self._seen and self._done.done() and self._done.exception()
        if failed:
            warnings.warn(f"a checkpoint was not saved: {failed}", RuntimeWarning, stacklevel=2)


def save(
    path: str | os.PathLike[str], tree: object, *, overwrite: bool = False, wait: bool = True
) -> Saving:
    """Save a tree as a checkpoint: a folder that appears whole, or not at all.

    Of arrays and references that are divided over devices, each process writes its parts; of all
    others, the first process writes its own. All processes save the same tree to one path, on a
    file system that they share.

    Args:
        path: the folder, created if needed.
        tree: a tree of arrays, references, Python numbers and strings.
        overwrite: whether a checkpoint in the folder is replaced, when the new one is written.
        wait: False to write the files in another thread, of copies that are made at once.

    Returns:
        The save: with ``wait=False``, call its method ``wait()``.

    Raises:
        CheckpointExists: the folder has a checkpoint, or files that are no checkpoint's.
        CheckpointError: the files cannot be written.
        BadArgument: a leaf of the tree cannot be saved; the error names it.
        RefError: a reference was consumed.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/step"
    >>> state = {"w": effax.new_ref(jnp.arange(3.0)), "step": 7}
    >>> _ = effax.checkpoint.save(folder, state)
    >>> state["w"][...] = jnp.zeros(3)
    >>> effax.checkpoint.restore(folder, like=state)
    {'w': Ref([0., 1., 2.], dtype=float32), 'step': 7}
    """
    processes = savers()
    return start_saving(Path(path), tree, processes, overwrite, wait, lambda: None)


def start_saving(
    folder: Path,
    tree: object,
    processes: Savers,
    overwrite: bool,
    wait: bool,
    after: Callable[[], None],
) -> Saving:
    """Save a tree as :func:`save`, and then call a function in the first process."""
    try:
        contents = taken(tree, processes.rank == 0, copy=not wait)
    except EffaxError as error:
        _together(processes, partial(_fail, error))
        raise

    def work() -> None:
        _together(processes, lambda: _prepare(folder, processes, overwrite))
        files = _together(processes, lambda: _write_parts(folder, contents, processes))
        _together(processes, lambda: _publish(folder, contents, files, processes, after))

    return Saving(work, wait)


def _together(processes: Savers, step: Callable[[], str]) -> list[str]:
    """Return what a step returns in all processes. Raises in all where it raises in one."""
    failure: Exception | None = None
    result = error = ""
    try:
        result = step()
    except EffaxError as found:
        failure, error = found, str(found)
    except OSError as found:
        failure = CheckpointError("a checkpoint cannot be written", found=str(found))
        failure.__cause__, error = found, str(failure)
    except Exception as found:  # noqa: BLE001  the other processes wait for a report
        failure, error = found, f"{type(found).__name__}: {found}"
    reports = [json.loads(text) for text in processes.gathered(json.dumps([result, error]))]
    if failure is not None:
        raise failure
    for rank, (_, error) in enumerate(reports):
        if error:
            raise CheckpointError(f"process {rank} cannot save its part", found=error)
    return [result for result, _ in reports]


def _fail(error: EffaxError) -> str:
    raise error


def is_of_this_format(name: str) -> bool:
    """Return whether a file is one of those that saving writes, finished or not."""
    return _OF_THIS_FORMAT.fullmatch(name) is not None


def _prepare(folder: Path, processes: Savers, overwrite: bool) -> str:
    if processes.rank:
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    names = [file.name for file in folder.iterdir()]
    foreign = [name for name in names if not is_of_this_format(name)]
    if foreign:
        raise CheckpointExists(
            f"{folder} has files that are no checkpoint's", "an empty folder", foreign[0]
        )
    if INDEX in names and not overwrite:
        raise CheckpointExists(
            f"{folder} has a checkpoint",
            expected="a new folder",
            remedy="save to another one, or pass `overwrite=True`",
        )
    if INDEX in names:
        load_index(folder)  # One of another program is refused.
    return ""


def _write_parts(folder: Path, contents: Taken, processes: Savers) -> str:
    """Write the file of this process; return its name. The header lists its parts."""
    name = f"{processes.rank:05}-of-{processes.count:05}-{token_hex(8)}{SUFFIX}"
    arrays, parts = {}, []
    for i, (leaf, own) in enumerate(zip(contents.leaves, contents.own, strict=True)):
        for part in own:
            whole = leaf.shape == part.elements.shape[: len(leaf.shape)]
            key = leaf.path if whole else f"{leaf.path} at {list(part.start)}"
            arrays[key] = part.elements
            parts.append([i, key, part.start, part.elements.shape])
    metadata = {_PARTS: json.dumps(parts), "effax.tree": str(_tree_checksum(contents))}
    try:
        header = safetensors.write_arrays(folder / name, arrays, metadata)
    except BaseException:
        (folder / name).unlink(missing_ok=True)
        raise
    return json.dumps([name, (folder / name).stat().st_size, header])


def _tree_checksum(contents: Taken) -> int:
    return crc32(json.dumps([leaf_json(x) for x in contents.leaves]).encode())


def _publish(
    folder: Path,
    contents: Taken,
    reports: list[str],
    processes: Savers,
    after: Callable[[], None],
) -> str:
    if processes.rank:
        return ""
    files: dict[str, File] = {}
    parts: list[list[SavedPart]] = [[] for _ in contents.leaves]
    tree = str(_tree_checksum(contents))
    for rank, report in enumerate(reports):
        name, size, header = json.loads(report)
        files[name] = File(size, header)
        _check_visible(folder / name, size, rank)
        metadata = safetensors.Container(folder / name).metadata
        if metadata["effax.tree"] != tree:
            raise CheckpointError(
                f"process {rank} saves another tree than process 0",
                expected="the same paths, shapes, dtypes and scalars in all processes",
            )
        for i, key, start, shape in json.loads(metadata[_PARTS]):
            parts[i].append(SavedPart(name, key, tuple(start), tuple(shape)))
    index = Contents(contents.leaves, parts, files)
    index.check_complete()
    write_index(folder, index)
    for file in folder.iterdir():
        if file.name != INDEX and file.name not in files:
            file.unlink()
    after()
    return ""


def _check_visible(file: Path, size: int, rank: int) -> None:
    if not file.is_file() or file.stat().st_size != size:
        raise CheckpointError(
            f"the file of process {rank} is not here",
            expected=f"{file}, of {size} bytes",
            remedy="save to a file system that all processes share",
        )
