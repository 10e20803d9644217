"""Functions of Python that compiled programs call, what becomes of their errors, and waiting.

XLA's runtime tells of an exception in such a function by a message. Here the exception itself is
kept until the call has failed, and is raised from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Condition, get_ident
from typing import TYPE_CHECKING, Final, final

import numpy as np

from effax.ir.state import cached

if TYPE_CHECKING:
    from jaxlib.mlir import ir

TARGET: Final = "xla_ffi_python_cpu_callback"
"""The custom call by which XLA's CPU runtime calls Python; its attribute ``index`` says which."""

HostCall = Callable[..., Sequence[np.ndarray]]

_MARK: Final = re.compile(r"effax host call (\d+) failed")


class _Failed(RuntimeError):
    """Stands for the exception of that number while XLA unwinds."""

    def __init__(self, number: int) -> None:
        super().__init__(f"effax host call {number} failed")


@final
class HostCalls:
    """The functions that one executable calls, and the exceptions that they raised."""

    __slots__ = ("_numbers", "_raised", "functions")

    def __init__(self, functions: Sequence[HostCall]) -> None:
        self.functions: tuple[HostCall, ...] = tuple(map(self._guarded, functions))
        self._raised: dict[int, BaseException] = {}
        self._numbers = count()

    def _guarded(self, function: HostCall) -> HostCall:
        def guarded(*args: object) -> tuple[np.ndarray, ...]:
            try:
                # XLA's memory is its own again when the call is over.
                return tuple(function(*map(np.array, args)))
            except BaseException as error:  # noqa: BLE001  raised again where the call fails
                number = next(self._numbers)
                self._raised[number] = error
            raise _Failed(number)

        return guarded

    def raised(self, message: str) -> BaseException | None:
        """The exception that made a call fail, by XLA's message."""
        found = _MARK.search(message)
        return None if found is None else self._raised.pop(int(found[1]), None)


@final
class _Running:
    """How many calls that may act on the world outside are under way, by thread."""

    def __init__(self) -> None:
        self.changed: Condition = Condition()
        self.calls: dict[int, int] = {}

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call, while the block runs."""
        me = get_ident()
        with self.changed:
            self.calls[me] = self.calls.get(me, 0) + 1
        try:
            yield
        finally:
            with self.changed:
                self.calls[me] -= 1
                if not self.calls[me]:
                    del self.calls[me]
                self.changed.notify_all()

    def wait_for_others(self) -> None:
        """Wait until no other thread has a call under way."""
        me = get_ident()
        with self.changed:
            self.changed.wait_for(lambda: not self.calls.keys() - {me})


running: Final = _Running()


def effects_barrier() -> None:
    """Wait until all that calls do to the world outside is done.

    A call returns when it has done all of it, so there is only something to wait for where other
    threads are in the middle of one.
    """
    running.wait_for_others()


@cached(maxsize=1)
def context() -> ir.Context:
    """A context of MLIR that knows the dialects of modules."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    made = ir.Context()
    made.append_dialect_registry(dialects)
    made.load_all_available_dialects()
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    return made


def parsed(text: str) -> ir.Module:
    """A module of text: those that call Python are not compiled from text."""
    from jaxlib.mlir import ir

    return ir.Module.parse(text, context())
