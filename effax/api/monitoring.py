"""Events of a program, and listeners that are called for each.

Traces and compilations of jitted functions are events: their durations, in seconds, under
``/jax/core/compile/jaxpr_trace_duration`` and ``/jax/core/compile/backend_compile_duration``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from effax.arrays.config import config

Listener = Callable[..., object]
"""A function of the event's name, its number (if it has one) and keyword arguments."""

TRACE: Final = "/jax/core/compile/jaxpr_trace_duration"
COMPILE: Final = "/jax/core/compile/backend_compile_duration"

_listeners: Final[dict[str, list[Listener]]] = {
    "event": [],
    "duration": [],
    "time_span": [],
    "scalar": [],
}


def _call(kind: str, *args: object, **kwargs: object) -> None:
    for listener in tuple(_listeners[kind]):
        listener(*args, **kwargs)


def _remove(kind: str, callback: Listener) -> None:
    if callback in _listeners[kind]:
        _listeners[kind].remove(callback)


def record_event(event: str, **kwargs: str | int) -> None:
    """Call the listeners of events with a name and keyword arguments."""
    _call("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call the listeners of durations with a name, a number of seconds and keyword arguments."""
    _call("duration", event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Call the listeners of time spans with a name, two times and keyword arguments."""
    _call("time_span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Call the listeners of numbers with a name, a number and keyword arguments."""
    _call("scalar", event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Add a listener of :func:`record_event`.

    >>> effax.monitoring.register_event_listener(print)
    >>> effax.monitoring.record_event("step")
    step
    >>> effax.monitoring.unregister_event_listener(print)
    """
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Add a listener of :func:`record_event_duration_secs`."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Add a listener of :func:`record_event_time_span`."""
    _listeners["time_span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Add a listener of :func:`record_scalar`."""
    _listeners["scalar"].append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Remove a listener of :func:`record_event`."""
    _remove("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Remove a listener of :func:`record_event_duration_secs`."""
    _remove("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Remove a listener of :func:`record_event_time_span`."""
    _remove("time_span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Remove a listener of :func:`record_scalar`."""
    _remove("scalar", callback)


def clear_event_listeners() -> None:
    """Remove all listeners."""
    for listeners in _listeners.values():
        listeners.clear()


@contextmanager
def timed(event: str, what: str) -> Iterator[None]:
    """Record the duration of a block as an event, and log it under the name ``what``."""
    start = perf_counter()
    try:
        yield
    finally:
        seconds = perf_counter() - start
        log(f"Finished {what} in {seconds:.6f} sec")
        if _listeners["duration"]:
            record_event_duration_secs(event, seconds)


def warn(message: str) -> None:
    """Log a warning."""
    import logging

    logging.getLogger("effax").warning(message)


def log(message: str) -> None:
    """Log a message of a trace or compilation, as a warning where ``log_compiles`` is on."""
    # A process that has not imported logging does not show debugging messages.
    if config.log_compiles or "logging" in sys.modules:
        import logging

        level = logging.WARNING if config.log_compiles else logging.DEBUG
        logging.getLogger("effax").log(level, message)
