"""Python functions that compiled programs call, and their exceptions.

XLA's runtime reports an exception of such a function as a message. The exception itself is stored
until the call fails, and is then raised again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Condition, get_ident
from typing import TYPE_CHECKING, Final, TypeVar, final

import numpy as np

from effax.ir.state import cached
from effax.ir.types import ArrayType
from effax.lazy.dataclasses import dataclass

if TYPE_CHECKING:
    from jaxlib import _jax
    from jaxlib.mlir import ir

TARGET: Final = "xla_ffi_python_cpu_callback"
"""The custom call by which XLA's CPU runtime calls the Python function of attribute ``index``."""

S = TypeVar("S")
T = TypeVar("T")

HostCall = Callable[..., Sequence[np.ndarray]]

_MARK: Final = re.compile(r"effax host call (\d+) failed")


class _Failed(RuntimeError):
    """A reference to a stored exception, by number, while XLA unwinds."""

    def __init__(self, number: int) -> None:
        super().__init__(f"effax host call {number} failed")


@final
@dataclass(frozen=True, slots=True)
class Total:
    """A function of a program on several devices: where it raises, it returns zeros.

    Devices that wait for this one would wait without end. The call raises at its end.
    """

    function: HostCall
    types: tuple[ArrayType, ...]

    def __call__(self, *args: object) -> Sequence[np.ndarray]:
        return self.function(*args)

    def zeros(self) -> tuple[np.ndarray, ...]:
        """Return a result of each type."""
        return tuple([np.zeros(t.shape, t.dtype) for t in self.types])


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
                # Copy: XLA reuses the memory after the call.
                return tuple(function(*map(np.array, args)))
            except BaseException as error:  # noqa: BLE001  raised again where the call fails
                number = next(self._numbers)
                self._raised[number] = error
            if isinstance(function, Total):
                return function.zeros()
            raise _Failed(number)

        return guarded

    def finish(self, made: _jax.ExecuteResults) -> None:
        """Wait for the side effects of a call on several devices; raise its first exception."""
        made.consume_token().block_until_ready()
        found = self._raised.pop(min(self._raised)) if self._raised else None
        self._raised.clear()
        if found is not None:
            raise found

    def raised(self, message: str) -> BaseException | None:
        """Return the exception that made a call fail, from XLA's message."""
        found = _MARK.search(message)
        return None if found is None else self._raised.pop(int(found[1]), None)


@final
class _Running:
    """The number of running calls that may have side effects, by thread."""

    def __init__(self) -> None:
        self.changed: Condition = Condition()
        self.calls: dict[int, int] = {}

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one call while the block runs."""
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
        """Wait until no other thread has a running call."""
        me = get_ident()
        with self.changed:
            self.changed.wait_for(lambda: not self.calls.keys() - {me})


running: Final = _Running()


def counted(run: Callable[[S], T]) -> Callable[[S], T]:
    """Return a function whose calls count as running."""

    def inner(argument: S) -> T:
        with running.one():
            return run(argument)

    return inner


def effects_barrier() -> None:
    """Wait until the side effects of all calls are done.

    A call returns after its side effects, so this waits only for calls of other threads.
    """
    running.wait_for_others()


@cached(maxsize=1)
def context() -> ir.Context:
    """Return an MLIR context with the dialects of modules."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    made = ir.Context()
    made.append_dialect_registry(dialects)
    made.load_all_available_dialects()
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    sdy.register_dialect(made)
    return made


def parsed(text: str) -> ir.Module:
    """Parse a module; XLA does not compile modules with callbacks from text."""
    from jaxlib.mlir import ir

    return ir.Module.parse(text, context())
