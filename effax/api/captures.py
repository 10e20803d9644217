"""Find the user's names of values that a function closes over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Final

from effax.arrays.array import Array
from effax.arrays.ref import Ref
from effax.arrays.tracing import FlatFunction, argument_names
from effax.ir.syntax import Jaxpr

MOST: Final = 10_000
"""The most values that are visited: a function may reach every object of the process."""


def capture_names(
    fun: Callable[..., object], values: Sequence[object], taken: Sequence[str]
) -> list[str]:
    """Return the name by which ``fun`` reaches each value; ``captured[i]`` for the others.

    Searched are the closure of the function, the globals that it names, its defaults, the arguments
    of a ``partial``, and the attributes of the object that a method is bound to; then containers
    and functions among these.

    Args:
        fun: the function.
        values: the captured values.
        taken: names that are in use.
    """
    wanted = {id(value): i for i, value in enumerate(values)}
    names = [f"captured[{i}]" for i in range(len(values))]
    used = {*taken}
    for name, value in _reachable(fun) if values else ():
        i = wanted.get(id(value))
        if i is not None and name not in used:
            names[i] = name
            used.add(name)
            del wanted[id(value)]
            if not wanted:
                break
    return names


def named_captures(fun: Callable[..., object], flat: FlatFunction) -> Jaxpr:
    """Return a traced program, its captured references named as ``fun`` reaches them."""
    jaxpr, names = flat.jaxpr, list(flat.jaxpr.names)
    at = [i for i, const in enumerate(flat.consts) if isinstance(const, Ref)]
    if not at:
        return jaxpr
    found = capture_names(fun, [flat.consts[i] for i in at], names[len(flat.consts) :])
    for i, name in zip(at, found, strict=True):
        if not name.startswith("captured["):
            names[i] = name
    return jaxpr.replace(names=names)


def _reachable(fun: object) -> Iterator[tuple[str, object]]:
    """Yield named values, the nearest first."""
    waiting: deque[tuple[str, object]] = deque([("", fun)])
    seen: set[int] = set()
    while waiting and len(seen) < MOST:
        name, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Array | Ref):
            yield name, value
        else:
            waiting.extend(_inside(name, value))


def _inside(name: str, value: object) -> Iterator[tuple[str, object]]:
    match value:
        case partial():
            yield "", value.func
            yield from zip(argument_names(value.func, len(value.args)), value.args, strict=False)
            yield from value.keywords.items()
        case MethodType():
            yield from _attributes("self", value.__self__)
            yield "", value.__func__
        case FunctionType():
            yield from _closed_over(value)
        case Mapping():
            yield from ((f"{name}[{key!r}]", x) for key, x in value.items())
        case list() | tuple():
            parts = getattr(value, "_fields", None)
            if parts is None:
                yield from ((f"{name}[{i}]", x) for i, x in enumerate(value))
            else:
                yield from ((f"{name}.{part}", getattr(value, part)) for part in parts)
        case _ if isinstance(value, type):
            return
        case _:
            wrapped = getattr(value, "__wrapped__", None)
            if wrapped is not None:
                yield name, wrapped
            yield from _attributes(name or "self", value)
            call = type(value).__dict__.get("__call__")
            if not name and call is not None:
                yield "", call


def _closed_over(fun: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            # The cell is not bound yet.
            continue
    yield from ((n, fun.__globals__[n]) for n in _named(fun.__code__) if n in fun.__globals__)
    yield from (fun.__kwdefaults__ or {}).items()
    defaults = fun.__defaults__ or ()
    last = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    yield from zip(last[len(last) - len(defaults) :], defaults, strict=True)
    wrapped = getattr(fun, "__wrapped__", None)
    if wrapped is not None:
        yield "", wrapped


def _named(code: CodeType) -> Iterator[str]:
    """Yield the names that a function, and those nested in it, may read from the globals."""
    waiting = deque([code])
    while waiting:
        code = waiting.popleft()
        yield from code.co_names
        waiting.extend(x for x in code.co_consts if isinstance(x, CodeType))


def _attributes(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the attributes of an object, except of modules, which have too many."""
    found = getattr(value, "__dict__", None)
    if isinstance(found, dict) and not hasattr(value, "__file__"):
        yield from ((f"{name}.{key}", x) for key, x in found.items())
