"""The boundary of a pass: results, errors, and the collector."""

from __future__ import annotations

import gc
from threading import Event, Thread

from returns.result import Failure, Success

from effax.ir.errors import IllTyped, TransformError
from effax.transforms.framework.runner import as_result, without_collector


def test_errors_become_failures() -> None:
    def fails() -> None:
        raise IllTyped("what", "expected", "found", "remedy")

    result = as_result(fails)()
    assert isinstance(result, Failure)
    error = result.failure()
    assert isinstance(error, TransformError)
    assert (error.what, error.remedy) == ("what", "remedy")
    assert as_result(lambda: 3)() == Success(3)


def test_passes_in_two_threads_leave_the_collector_on() -> None:
    inside, leave = Event(), Event()

    def other() -> None:
        with without_collector():
            inside.set()
            leave.wait(10)

    thread = Thread(target=other)
    with without_collector():
        thread.start()
        assert inside.wait(10)
        assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
