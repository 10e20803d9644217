"""Compiled programs in a directory, so that later processes do not compile them again."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from effax.ir.errors import LoweringError
from effax.ir.state import cached
from effax.lowering import xla
from effax.lowering.stablehlo import Module


class PersistentCache(NamedTuple):
    """A directory of executables, by the module, the options, jaxlib and the processor.

    Attributes:
        directory: the directory, which is created if necessary.
        min_seconds: the least time of a compilation whose executable is written.
        raises: whether errors of the directory raise; else they are warnings.
    """

    directory: str
    min_seconds: float = 0.0
    raises: bool = False

    def executable(
        self,
        module: Module,
        options: Sequence[tuple[str, object]],
        compile_: Callable[[], xla.Executable],
    ) -> xla.Executable:
        """Return the executable of a module: read from the directory, else compiled and written.

        Programs that call Python functions are compiled.
        """
        if module.host_calls:
            return compile_()
        path = Path(self.directory) / f"{_key(module.text, options)}.xla"
        found = self._read(path, module)
        if found is not None:
            return found
        start = perf_counter()
        made = compile_()
        if perf_counter() - start >= self.min_seconds:
            self._write(path, made.serialize())
        return made

    def _read(self, path: Path, module: Module) -> xla.Executable | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report(error)
            return None
        try:
            return xla.load_executable(data, len(module.in_types), module.out_types)
        except LoweringError as error:
            self._report(error)
            return None

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file whole, under a temporary name first: other processes may read it."""
        import tempfile

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(data)
            Path(file.name).replace(path)
        except OSError as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        if self.raises:
            raise error
        warnings.warn(f"the compilation cache {self.directory} failed: {error}", stacklevel=3)


def _key(text: str, options: Sequence[tuple[str, object]]) -> str:
    from hashlib import sha256
    from importlib.metadata import version

    parts = [text, repr(sorted(options)), version("jaxlib"), _processor()]
    parts.append(os.environ.get("XLA_FLAGS", ""))
    return sha256("\0".join(parts).encode()).hexdigest()


@cached(maxsize=1)
def _processor() -> str:
    """Return the kind of the processor, its instructions included where the system lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    flags = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    return "\n".join([platform.machine(), platform.processor(), *flags])
