"""Compiled programs in a directory, so that later processes do not compile them again.

An entry is a file named after its key: a hash of the module's text and of all that its machine code
depends on. It begins with a checksum of the key and the executable. A file with another checksum
was damaged, or was not written for this key: it is ignored with a warning, and written anew.

Files appear whole, by renaming, so that processes share a directory. A read renews the time of a
file, and a write removes the files that were not read for longest while the directory is too large.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter, time
from typing import Final, NamedTuple

from effax.ir.errors import LoweringError
from effax.ir.state import cached
from effax.lowering import xla
from effax.lowering.stablehlo import Module

FORMAT: Final = b"effax executable 1\n"
"""The first bytes of an entry; the checksum follows."""

SUFFIX: Final = ".xla"
ABANDONED: Final = 3600.0
"""The age in seconds of a temporary file that no process is writing any more."""


class PersistentCache(NamedTuple):
    """A directory of executables.

    Attributes:
        directory: the directory, which is created if necessary.
        min_seconds: the least time of a compilation whose executable is written.
        min_bytes: the least size of an executable that is written.
        max_bytes: the size of the directory's executables from which on the least recently used
            are removed; -1 for no limit.
        raises: whether errors of the directory raise; else they are warnings.
    """

    directory: str
    min_seconds: float = 0.0
    min_bytes: int = 0
    max_bytes: int = -1
    raises: bool = False

    def executable(
        self,
        module: Module,
        options: Sequence[tuple[str, object]],
        compile_: Callable[[], xla.Executable],
        devices: tuple[xla.Device, ...] = (),
    ) -> xla.Executable:
        """Return the executable of a module: read from the directory, else compiled and written.

        Programs that call Python functions are compiled, and programs of several processes, which
        agree on each that they compile.
        """
        if module.host_calls or xla.spanning(devices) is not None:
            return compile_()
        key = _key(module.text, [*options, *[("device", d.id) for d in devices]])
        found = self._read(key, module, devices)
        if found is not None:
            return found
        start = perf_counter()
        made = compile_()
        if perf_counter() - start >= self.min_seconds:
            self._write(key, made)
        return made

    def _read(
        self, key: str, module: Module, devices: tuple[xla.Device, ...]
    ) -> xla.Executable | None:
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report(error)
            return None
        start = len(_head(key, b""))
        try:
            if data[:start] != _head(key, data[start:]):
                raise LoweringError(f"{path.name} is damaged, or no executable of this program")
            n_args = len(module.in_types)
            found = xla.load_executable(
                data[start:], n_args, module.out_types, devices, module.in_types
            )
        except LoweringError as error:
            self._report(error)
            return None
        with suppress(OSError):
            os.utime(path)
        return found

    def _write(self, key: str, made: xla.Executable) -> None:
        """Write a file whole, under a temporary name first: other processes may read it."""
        import tempfile

        try:
            data = made.serialize()
            if len(data) < self.min_bytes or 0 <= self.max_bytes < len(data):
                return
            path = self._path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_PART, delete=False) as file:
                try:
                    file.write(_head(key, data))
                    file.write(data)
                    file.close()
                    Path(file.name).replace(path)
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
            if self.max_bytes >= 0:
                self._trim(path)
        except (OSError, LoweringError) as error:
            self._report(error)

    def _path(self, key: str) -> Path:
        return Path(self.directory) / f"{key}{SUFFIX}"

    def _trim(self, newest: Path) -> None:
        """Remove the least recently used entries but one until the rest is small enough."""
        entries = sorted(_entries(newest.parent), reverse=True)
        total = 0
        for entry in entries:
            total += entry.size
            if total > self.max_bytes and entry.path != newest:
                # Another process may have removed it; one that reads it has opened it already.
                entry.path.unlink(missing_ok=True)

    def _report(self, error: Exception) -> None:
        if self.raises:
            raise error
        warnings.warn(f"the compilation cache {self.directory} failed: {error}", stacklevel=3)


_PART: Final = "part-"
"""The beginning of the names of files that are being written."""


class _Entry(NamedTuple):
    """A file, and when it was last used."""

    used: float
    size: int
    path: Path


def _entries(directory: Path) -> Iterator[_Entry]:
    """Yield the executables of a directory, and remove files that a process began and left."""
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            status = path.stat()
            if path.name.endswith(SUFFIX):
                yield _Entry(status.st_mtime, status.st_size, path)
            elif path.name.startswith(_PART) and time() - status.st_mtime > ABANDONED:
                path.unlink()


def _head(key: str, data: bytes) -> bytes:
    """Return the format and the checksum of an entry, which begin its file."""
    from hashlib import sha256

    return FORMAT + sha256(key.encode() + data).digest()


def _key(text: str, options: Sequence[tuple[str, object]]) -> str:
    """Return a hash of all that the machine code of a module depends on."""
    from hashlib import sha256

    parts = [text, repr(sorted(options)), *_environment()]
    parts += [os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    return sha256("\0".join(parts).encode()).hexdigest()


@cached(maxsize=1)
def _environment() -> tuple[str, ...]:
    """Return the versions, the devices and the processor of this process."""
    from importlib.metadata import version

    every = (xla.first_device(), *xla.devices())
    devices = [f"{d.platform} {d.device_kind} {d.id}" for d in every]
    return (FORMAT.decode(), version("jaxlib"), xla.platform_version(), *devices, _processor())


def _processor() -> str:
    """Return the kind of the processor, its instructions included where the system lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    flags = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    return "\n".join([platform.machine(), platform.processor(), *flags])
