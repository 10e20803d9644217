"""The interface of JAX's profiler, without profiles: a trace runs its block and writes no file.

``python -m cProfile`` profiles Python code; ``effax.cost`` and ``Compiled.cost_analysis`` count
what a program does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar, final

from effax.ir.errors import BadArgument, EffaxError

P = ParamSpec("P")
R = TypeVar("R")


class NoProfiler(EffaxError, NotImplementedError):
    """A profile cannot be recorded."""


@final
class _Profiler:
    """The trace in progress."""

    log_dir: str | None = None


def start_trace(
    log_dir: object,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> None:
    """Start a trace, of which no file is written: warn about it.

    Raises BadArgument where a trace is in progress.
    """
    del create_perfetto_link, create_perfetto_trace, profiler_options
    if _Profiler.log_dir is not None:
        raise BadArgument(
            "a trace is in progress", found=f"trace to {_Profiler.log_dir}", remedy="`stop_trace()`"
        )
    _Profiler.log_dir = str(log_dir)
    warnings.warn(f"effax records no profile: no file is written to {log_dir}", stacklevel=2)


def stop_trace() -> None:
    """End a trace. Raises BadArgument where none is in progress."""
    if _Profiler.log_dir is None:
        raise BadArgument("no trace is in progress", remedy="`start_trace(log_dir)`")
    _Profiler.log_dir = None


@contextmanager
def trace(
    log_dir: object,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> Iterator[None]:
    """Run the block between :func:`start_trace` and :func:`stop_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A block with a name, which no profile shows."""

    def __init__(self, name: str, **kwargs: object) -> None:
        del kwargs
        self.name: str = name

    def __enter__(self) -> TraceAnnotation:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class StepTraceAnnotation(TraceAnnotation):
    """A block that is a step of a training loop, which no profile shows."""


def annotate_function(
    func: Callable[P, R], name: str | None = None, **decorator_kwargs: object
) -> Callable[P, R]:
    """Return a function whose calls are blocks with a name, which no profile shows."""
    label = name or str(getattr(func, "__qualname__", type(func).__name__))

    @wraps(func)
    def annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port: int) -> None:
    """Refuse a server of profiles. Raises NoProfiler."""
    raise _no_profiler(f"a server of profiles on port {port}")


def stop_server() -> None:
    """Refuse to end a server of profiles. Raises NoProfiler."""
    raise _no_profiler("a server of profiles")


def device_memory_profile(backend: str | None = None) -> bytes:
    """Refuse a profile of a device's memory. Raises NoProfiler."""
    raise _no_profiler(f"a profile of the memory of {backend or 'the devices'}")


def save_device_memory_profile(filename: object, backend: str | None = None) -> None:
    """Refuse a file with a profile of a device's memory. Raises NoProfiler."""
    raise _no_profiler(f"a profile of the memory of {backend or 'the devices'} in {filename}")


def _no_profiler(what: str) -> NoProfiler:
    return NoProfiler(
        "effax records no profiles",
        found=what,
        remedy="`jit(f).lower(...).compile().memory_analysis()` returns the memory of a call",
    )
