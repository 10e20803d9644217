"""Exclusive use of references by the threads of the process.

A compiled call that changes a reference takes it: ``_taken_by`` is then the call's ticket, and
other threads that need the reference wait until it is None again. An eager operation on a
reference has the lock, and begins when the reference is free.

A call takes references without the lock, which costs too much: the test of ``_taken_by`` and the
assignment that follows it are one step for other threads, since CPython switches threads in calls
and at the ends of loops only. After that it waits for the eager operation in progress, if
``eager_operations`` says that there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition, RLock, get_ident
from typing import Final, Protocol, TypeVar

from effax.effects import Rule
from effax.ir.errors import RefError
from effax.ir.trace import shown_ref

R = TypeVar("R")

Ticket = tuple[int]
"""The thread of a call; each call has another tuple."""


class Takeable(Protocol):
    """A reference, and the ticket of the call that has taken it."""

    _taken_by: Ticket | None


class _Sharing:
    """The lock of eager operations, and the numbers of those and of waiting threads."""

    def __init__(self) -> None:
        # Reentrant: a finalizer may use a reference while its thread has the lock.
        self.lock: Final = RLock()
        self.freed: Final = Condition(self.lock)
        self.waiting: int = 0
        self.eager_operations: int = 0


sharing: Final = _Sharing()


def exclusively(refs: Sequence[Takeable], operation: Callable[[], R]) -> R:
    """Return the result of an eager operation, during which no compiled call takes a reference.

    Args:
        refs: the references that it changes, which must be free when it begins.
        operation: the operation; it does not call the user's functions.

    Raises:
        RefError: a call of this thread has taken a reference: this is in a callback or a signal
            handler that runs within that call.
    """
    with sharing.lock:
        for ref in refs:
            if ref._taken_by is not None:
                wait_until_free(ref)
        sharing.eager_operations += 1
        try:
            return operation()
        finally:
            sharing.eager_operations -= 1


def wait_until_free(ref: Takeable) -> None:
    """Wait until no call has taken the reference. The caller has the lock.

    Raises:
        RefError: a call of this thread has taken it.
    """
    # Incremented before the test, so that a release after the test notifies.
    sharing.waiting += 1
    try:
        while ref._taken_by is not None:
            if is_taken_here(ref):
                raise _in_its_own_call(ref)
            sharing.freed.wait()
    finally:
        sharing.waiting -= 1


def is_taken_here(ref: Takeable) -> bool:
    """Return whether a call of this thread has taken the reference."""
    return ref._taken_by is not None and ref._taken_by[0] == get_ident()


def take(refs: Sequence[Takeable], ticket: Ticket) -> None:
    """Take references once they are all free, and no eager operation is in progress.

    None is taken while this waits for another, so that no two calls wait for each other.

    Raises:
        RefError: a call of this thread has taken one.
    """
    with sharing.lock:
        while any(ref._taken_by is not None for ref in refs):
            for ref in refs:
                wait_until_free(ref)
        for ref in refs:
            ref._taken_by = ticket


def wait_for_eager_operations() -> None:
    """Wait until the eager operation in progress is done."""
    with sharing.lock:
        pass


def release(refs: Sequence[Takeable], ticket: Ticket) -> None:
    """Release the references that a call has taken, and wake the threads that wait."""
    for ref in refs:
        if ref._taken_by is ticket:
            ref._taken_by = None
    notify_waiting()


def notify_waiting() -> None:
    """Wake the threads that wait, after references were released."""
    if sharing.waiting:
        with sharing.lock:
            sharing.freed.notify_all()


def _in_its_own_call(ref: object) -> RefError:
    return RefError.against(
        Rule.ALIAS,
        "a callback or a signal handler uses a reference that the interrupted call changes",
        "a reference that no call in progress changes",
        shown_ref(ref),
        "return the value from the callback, and write it in the compiled function",
    )
