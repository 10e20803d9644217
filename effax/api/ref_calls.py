"""Runs of compiled calls that use references: each is atomic, and one that raises changes nothing.

The references that a call changes are taken for its duration (``effax.arrays.exclusive``). Those
that it only reads are not, so that calls which read them run at the same time. If another call
donates the buffer of one before XLA has seen it, XLA refuses the arguments; the call is repeated,
and the executable takes all of its references from then on.

The first call of an executable copies the contents that it changes: if XLA fails to run the
program, the references get the copies. Later calls make none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Final, NamedTuple, Protocol, cast

import numpy as np

from effax.arrays.config import config
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.exclusive import (
    Ticket,
    notify_waiting,
    release,
    sharing,
    take,
    wait_for_eager_operations,
)
from effax.arrays.ref import EagerRef, TracedRef
from effax.arrays.traced_array import TracedArray
from effax.ir.errors import LoweringError
from effax.ir.state import Cache, register_cache
from effax.ir.trace import leak_error, made_at
from effax.lowering import xla
from effax.lowering.xla import Buffer

MOST_NUMBERS: Final = 1024
"""The most buffers of Python numbers that are kept."""

_NUMBERS: Final = (float, int, bool)
_numbers: Final[dict[tuple[type, float, bool], Buffer]] = {}
"""Buffers of Python numbers other than zero, whose sign equality does not see."""

register_cache(
    Cache("effax.api.ref_calls._numbers", MOST_NUMBERS, _numbers.clear, lambda: len(_numbers))
)

PLAIN: Final = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "u1", "u2", "u4", "f2", "f4", "c8")))
"""The dtypes of NumPy arrays that no setting converts."""

Execute = Callable[[Sequence[object]], list[Buffer]]
"""A run of a program on operands: arrays, numbers and references."""


class _HasBuffer(Protocol):
    _buffer: Buffer


class _NotReady(Exception):
    """Another call has taken a reference."""


class RefProgram(NamedTuple):
    """An executable of a program with references.

    Attributes:
        executable: its last results are the new buffers of the references that change.
        refs: the positions of the references among the operands.
        changed: the positions of those that change.
        name_of: returns the user's name of an operand.
    """

    executable: xla.Executable
    refs: tuple[int, ...]
    changed: tuple[int, ...]
    name_of: Callable[[int], str]


def executor_with_refs(program: RefProgram) -> Execute:
    """Return the function that runs a program and replaces the buffers of its references."""
    return _updating(program) if program.changed else _reading(program)


def _reading(program: RefProgram) -> Execute:
    """Return the run of a program that changes no reference, which is not taken."""
    executable = program.executable
    execute = executable.run

    def read(operands: Sequence[object]) -> list[Buffer]:
        if executable.contended:
            return _run_carefully(program, operands)
        buffers: Sequence[Buffer] = ()
        try:
            buffers = [x._buffer for x in cast("Sequence[_HasBuffer]", operands)]
            # A callback may raise the same exceptions: then the buffers are made first.
            if executable.calls_python and None in buffers:
                buffers = [buffer_of(x) for x in operands]
            return execute(buffers)
        except (AttributeError, TypeError):
            if executable.calls_python and len(buffers) == len(operands):
                raise
        except LoweringError as error:
            _check_repeatable(program, operands, buffers, error)
        # Nothing ran: an argument has no buffer yet, or another call has taken it.
        return _run_carefully(program, operands)

    return read


def _updating(program: RefProgram) -> Execute:
    """Return the run of a program that changes references, which it takes."""
    executable, _, changed, _ = program
    execute, n_changed = executable.run_whole, len(changed)

    def update(operands: Sequence[EagerRef]) -> list[Buffer]:
        if executable.careful:
            return _run_carefully(program, operands)
        refs = [operands[i] for i in changed]
        ticket = (get_ident(),)
        buffers: Sequence[Buffer | None] = ()
        results: list[Buffer] = []
        failure: Exception | None = None
        try:
            for ref in refs:
                if ref._taken_by is not None:
                    raise _NotReady
                ref._taken_by = ticket
            if sharing.eager_operations:
                wait_for_eager_operations()
            buffers = [x._buffer for x in operands]
            for ref in refs:
                ref._buffer = None
            results = execute(buffers)  # type: ignore[arg-type]  # XLA refuses None
            # An interrupt of the call is raised here, where C code is called.
            len(results)
            # Inlined from `_finish`, with the same meaning.
            for ref, new in zip(refs, results[-n_changed:], strict=True):
                ref._buffer = new
                ref._memory = ref._taken_by = None
            if sharing.waiting:
                notify_waiting()
        except (_NotReady, AttributeError, TypeError, LoweringError) as error:
            _finish(refs, ticket, results, buffers, changed)
            failure = error
        except BaseException:
            _finish(refs, ticket, results, buffers, changed)
            raise
        if failure is None:
            return results
        if isinstance(failure, LoweringError):
            _check_repeatable(program, operands, buffers, failure)
        return _run_carefully(program, operands)

    return cast(Execute, update)


def _run_carefully(program: RefProgram, operands: Sequence[object]) -> list[Buffer]:
    """Run a program at any time: wait for references, and keep their contents if necessary."""
    executable, refs, changed, _ = program
    operands = [x if type(x) is EagerRef else _array_of(x) for x in operands]
    of_refs = cast("Sequence[EagerRef]", operands)
    changing = [of_refs[i] for i in changed]
    ours = [of_refs[i] for i in refs] if executable.contended else changing
    ticket = (get_ident(),)
    buffers: Sequence[Buffer | None] = ()
    results: list[Buffer] = []
    kept: Sequence[Buffer] = ()
    failure: LoweringError | None = None
    try:
        buffers = _taken_when_free(of_refs, ours, ticket)
        if not executable.calls_python:
            if executable.careful:
                kept = _copies([buffers[i] for i in changed])
            for ref in changing:
                ref._buffer = None
        results = executable.run_whole(buffers)
        len(results)
        executable.careful = executable.contended
    except LoweringError as error:
        failure = error
    finally:
        _finish(changing, ticket, results, buffers, changed, kept)
        release(ours, ticket)
    if failure is None:
        return results
    _check_repeatable(program, operands, buffers, failure)
    return _run_carefully(program, operands)


def _taken_when_free(
    operands: Sequence[EagerRef], ours: Sequence[EagerRef], ticket: Ticket
) -> list[Buffer]:
    """Take references once they are free, and return the buffers of all operands."""
    while True:
        for x in operands:
            # Waits for other calls, so it comes before any is taken.
            buffer_of(x)
        take(ours, ticket)
        buffers = [x._buffer for x in operands]
        if None not in buffers:
            return cast("list[Buffer]", buffers)
        release(ours, ticket)


def _array_of(x: object) -> DeviceArray:
    """Return an operand that is not a reference as an array. Raises LeakedTracer."""
    if isinstance(x, TracedArray | TracedRef):
        raise leak_error(x)
    value = as_value(x)
    assert isinstance(value, DeviceArray)
    return value


def buffer_of(x: object) -> Buffer:
    """Return the buffer of an array, a reference or a number. Raises LeakedTracer."""
    if type(x) is DeviceArray:
        buffer = x._buffer
        return x.buffer if buffer is None else buffer
    if type(x) is EagerRef:
        buffer = x._buffer
        return x.pinned() if buffer is None else buffer
    if type(x) is np.ndarray and x.dtype in PLAIN:
        return xla.put(x, copy=True)
    if isinstance(x, float | int) and type(x) in _NUMBERS and x:
        return _number_buffer(x)
    # A copy of a NumPy array, beside an array that has no buffer yet.
    kept: Buffer | None = getattr(x, "_buffer", None)
    return _array_of(x).buffer if kept is None else kept


def _number_buffer(x: float) -> Buffer:
    """Return the buffer of a number, shared by the calls that pass it."""
    key = type(x), x, config.enable_x64
    made = _numbers.get(key)
    if made is None or made.is_deleted():
        made = _array_of(x).buffer
        if len(_numbers) >= MOST_NUMBERS:
            _numbers.clear()
        _numbers[key] = made
    return made


def _copies(buffers: Sequence[Buffer]) -> Sequence[Buffer]:
    """Return copies of buffers; none where memory is short."""
    try:
        return [xla.new_ref_buffer(xla.raw_view(buffer)) for buffer in buffers]
    except (MemoryError, RuntimeError, LoweringError):
        return ()


def _finish(
    refs: Sequence[EagerRef],
    ticket: Ticket,
    results: Sequence[Buffer],
    buffers: Sequence[Buffer | None],
    changed: Sequence[int],
    kept: Sequence[Buffer] = (),
) -> None:
    """Replace the buffers of references by the last results, or restore them; release them.

    Done twice, it changes no more.
    """
    if results:
        for ref, new in zip(refs, results[len(results) - len(refs) :], strict=True):
            if ref._taken_by is ticket:
                ref._buffer = new
                ref._memory = ref._taken_by = None
    elif buffers:
        for k, (ref, i) in enumerate(zip(refs, changed, strict=True)):
            if ref._taken_by is ticket:
                _restore(ref, buffers[i], kept[k] if kept else None)
                ref._taken_by = None
    else:
        release(refs, ticket)
    if sharing.waiting:
        notify_waiting()


def _restore(ref: EagerRef, old: Buffer | None, kept: Buffer | None) -> None:
    """Return the contents to a reference of a call that failed; end it if they are lost."""
    if old is None or not old.is_deleted():
        ref._buffer = old
        return
    ref._memory = None
    ref._buffer = kept
    if kept is None:
        ref._ended = "a call that failed"


def _check_repeatable(
    program: RefProgram,
    operands: Sequence[object],
    buffers: Sequence[Buffer | None],
    error: LoweringError,
) -> None:
    """Return if another call had donated a buffer that this one reads. Raise the error otherwise.

    Raises:
        LoweringError: the call failed; the error names the references whose contents are lost.
    """
    executable, refs, changed, name_of = program
    of_refs = cast("Sequence[EagerRef]", operands)
    lost = [i for i in changed if of_refs[i]._ended is not None]
    if lost:
        names = [_named(of_refs[i], name_of(i)) for i in lost]
        raise LoweringError(
            error.what,
            error.expected,
            found=f"the contents of {len(names)} references are lost, which the call had donated: "
            + "; ".join(names),
            remedy="make them again from a saved copy, and run the call with more free memory",
        ) from error.__cause__
    moved = [i for i in refs if i not in changed and of_refs[i]._buffer is not buffers[i]]
    # Another call that took a buffer has run: to repeat this one ends, as often as it happens.
    if not moved:
        raise error
    executable.contended = executable.careful = True


def _named(ref: EagerRef, name: str) -> str:
    where = made_at(ref)
    return f"{name}, {ref.type}" + ("" if where is None else f", made at {where}")
