"""Return memory that was freed to the operating system."""

from __future__ import annotations

import ctypes


def trim() -> None:
    """Return the freed memory of C's heap, which glibc keeps otherwise; elsewhere do nothing.

    Executables consist of many small blocks. Freed one by one between others, they leave a heap
    that grows without end.
    """
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if found is not None:
        found(0)
