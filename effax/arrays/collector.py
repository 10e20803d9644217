"""A pause of Python's cycle collector while the front door transforms a program.

Programs are immutable and contain no cycles, but each full collection visits all of their
equations. For 10,000 equations ``jvp`` and ``linearize`` take twice as long without the pause.
Passes themselves change no state of the process, so only the front door pauses.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final


class _Pauses:
    """The number of pauses in progress, in all threads; the last one enables the collector."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = 0
        self.was_enabled = False

    def begin(self) -> None:
        with self.lock:
            if self.count == 0:
                self.was_enabled = gc.isenabled()
                gc.disable()
            self.count += 1

    def end(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0 and self.was_enabled:
                gc.enable()


_pauses: Final = _Pauses()


@contextmanager
def paused_collector() -> Iterator[None]:
    """Disable the cycle collector inside the ``with`` block; restore its state after it."""
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()
