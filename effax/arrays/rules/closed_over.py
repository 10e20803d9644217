"""The values that Python functions refer to: tracers, references and arrays that rules close over.

A rule is traced after the trace in which its function was called has ended. Values of that trace
must be arguments of the call by then, so they are looked for when the function is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Final

from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import EagerRef, TracedRef
from effax.arrays.rules.call_site import RuledFunction
from effax.arrays.traced_array import TracedArray

LARGE: Final = 64
"""The size from which a concrete array is an argument of the call, and not a constant in a rule."""

MOST: Final = 1000
"""The most objects that are looked at."""

_OWN: Final = ("effax", "numpy", "jaxlib")


def closed_over(*functions: object) -> tuple[list[object], tuple[object, ...]]:
    """Return the values that functions refer to, and all objects that decide what they compute.

    Followed are closures, defaults, globals, bound methods, partials and containers.

    Returns:
        The traced arrays, references and large concrete arrays, each once; and every object that
        was reached, in order: equal lists mean that the functions refer to the same objects.
    """
    values: list[object] = []
    reached: list[object] = []
    waiting = list(reversed(functions))
    seen: set[int] = set()
    while waiting and len(reached) < MOST:
        x = waiting.pop()
        reached.append(x)
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, TracedArray | TracedRef | EagerRef):
            values.append(x)
        elif isinstance(x, DeviceArray):
            if x.size >= LARGE:
                values.append(x)
        else:
            waiting += reversed(list(_parts(x)))
    return values, tuple(reached)


def _parts(x: object) -> Iterator[object]:
    """Yield the objects that an object refers to, as far as a function may use them."""
    match x:
        case FunctionType():
            yield from _parts_of_function(x)
        case MethodType():
            yield x.__func__
            yield x.__self__
        case partial():
            yield x.func
            yield from x.args
            yield from x.keywords.values()
        case tuple() | list():
            yield from x
        case dict():
            yield from x.values()
        case RuledFunction():
            yield x.fun
            yield from x.rule_functions()
        case type() | ModuleType():
            return
        case _ if hasattr(x, "__dict__"):
            yield from vars(x).values()
        case _:
            inner = getattr(x, "__wrapped__", None)
            if inner is not None:
                yield inner


def _parts_of_function(f: FunctionType) -> Iterator[object]:
    module: str | None = f.__module__
    if module is not None and module.partition(".")[0] in _OWN:
        # A function of a library may still be made of functions of the user.
        named: Iterator[str] = iter(())
    else:
        named = _names(f.__code__)
    for cell in f.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    yield from f.__defaults__ or ()
    yield from (f.__kwdefaults__ or {}).values()
    scope = f.__globals__
    for name in named:
        if name in scope:
            yield scope[name]


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in a function and the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
