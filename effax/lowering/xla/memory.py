"""The memory of executables: its statistics, and its return to the operating system."""

from __future__ import annotations

import ctypes
from typing import final

from effax.lazy.dataclasses import dataclass


@final
@dataclass(frozen=True, slots=True)
class MemoryStats:
    """The memory of a call of an executable, in bytes, as XLA planned it.

    Attributes:
        argument_bytes: the arguments.
        output_bytes: the outputs; on CPU several outputs include the table of their addresses, 8
            bytes each.
        temp_bytes: the temporary buffers.
        alias_bytes: the part of the outputs that reuses the memory of arguments.
        code_bytes: the machine code, or 0 if XLA does not report it.
        peak_bytes: the maximum in use at once.
    """

    argument_bytes: int
    output_bytes: int
    temp_bytes: int
    alias_bytes: int
    code_bytes: int
    peak_bytes: int

    @property
    def argument_size_in_bytes(self) -> int:
        """Return ``argument_bytes``, under JAX's name."""
        return self.argument_bytes

    @property
    def output_size_in_bytes(self) -> int:
        """Return ``output_bytes``, under JAX's name."""
        return self.output_bytes

    @property
    def temp_size_in_bytes(self) -> int:
        """Return ``temp_bytes``, under JAX's name."""
        return self.temp_bytes

    @property
    def alias_size_in_bytes(self) -> int:
        """Return ``alias_bytes``, under JAX's name."""
        return self.alias_bytes

    @property
    def generated_code_size_in_bytes(self) -> int:
        """Return ``code_bytes``, under JAX's name."""
        return self.code_bytes


def trim() -> None:
    """Return the freed memory of C's heap, which glibc keeps otherwise; elsewhere do nothing.

    Executables consist of many small blocks. Freed one by one between others, they leave a heap
    that grows without end.
    """
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if found is not None:
        found(0)
