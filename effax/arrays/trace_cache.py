"""Traces of the functions that users pass to loops, branches and ``checkpoint``, kept.

A function is traced once for the types of its arguments, as JAX does. An entry is valid while the
names that the function uses itself, of enclosing functions and of its module, have the same values:
arrays, numbers, strings, tuples and functions. Contents of other objects are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import RLock
from types import FunctionType
from typing import Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary, ref

from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.config import config
from effax.arrays.device_array import DeviceArray
from effax.arrays.tracing import ABSTRACT, FlatFunction, TraceOptions, trace_flat
from effax.ir.scope import axes_in_scope, checked_axes
from effax.ir.state import Cache, register_cache
from effax.ir.trace import values_read
from effax.ir.types import RefType, Type
from effax.tree import PyTreeDef

BOUND: Final = 256
"""The number of functions with entries, and of entries of a function."""


_VALUES: Final = bool | int | str | bytes
"""Classes whose equal values are the same for a trace."""


class _Operands(Protocol):
    """Operands of a call, and the user's names of them."""

    @property
    def leaves(self) -> Sequence[Operand]: ...
    @property
    def names(self) -> Sequence[str]: ...


class _Entry(NamedTuple):
    flat: FlatFunction
    uses: tuple[object, ...]


_kept: Final[WeakKeyDictionary[object, dict[object, _Entry]]] = WeakKeyDictionary()
_lock: Final = RLock()


def _clear() -> None:
    with _lock:
        _kept.clear()


register_cache(Cache("effax.arrays.trace_cache._kept", BOUND, _clear, lambda: len(_kept)))


def trace_once(
    fun: Callable[..., object],
    treedef: PyTreeDef,
    types: Sequence[Type],
    names: Sequence[str],
    label: str,
    of: Callable[..., object] | None = None,
    constants: Hashable = (),
) -> FlatFunction:
    """Trace a function of values, or return its trace for the same types.

    Arguments and errors are those of :func:`effax.arrays.tracing.trace_flat`. Programs that close
    over references or symbols, and those of references, are not kept.

    Args:
        fun: the function.
        treedef: the structure of ``(args, kwargs)``.
        types: the types of the inputs.
        names: the user's names of the inputs.
        label: the name of the traced call in messages.
        of: the function under which the trace is kept, where ``fun`` has some of its arguments.
        constants: these arguments.
    """
    owner = fun if of is None else of
    if (
        type(owner) is not FunctionType
        or checked_axes()
        or any(isinstance(t, RefType) for t in types)
    ):
        return trace_flat(fun, treedef, types, names, label, ABSTRACT)
    key = (constants, treedef, tuple(types), tuple(names), config.call_key, axes_in_scope())
    found = _kept.get(owner, {}).get(key)
    if found is not None and _same(found.uses, _uses(owner)):
        return found.flat
    read = values_read()
    flat = trace_flat(fun, treedef, types, names, label, ABSTRACT)
    if values_read() == read and all(isinstance(c, DeviceArray) for c in flat.consts):
        _keep(owner, key, _Entry(flat, _uses(owner)))
    return flat


def trace_operands(
    fun: Callable[..., object],
    treedef: PyTreeDef,
    operands: _Operands,
    label: str,
    of: Callable[..., object] | None = None,
    constants: Hashable = (),
) -> FlatFunction:
    """Trace a function of operands, or return its trace for their types.

    References are known to the trace by their identity, and arrays by the axes along which they
    may vary, where these are checked.

    Args:
        fun: the function.
        treedef: the structure of ``(args, kwargs)``.
        operands: leaves, with their types and names.
        label: the name of the traced call in messages.
        of: the function under which the trace is kept, where ``fun`` has some of its arguments.
        constants: these arguments.
    """
    types = [x.type for x in operands.leaves]
    if checked_axes() or any(isinstance(t, RefType) for t in types):
        options = TraceOptions(operands.leaves)
        return trace_flat(fun, treedef, types, operands.names, label, options)
    return trace_once(fun, treedef, types, operands.names, label, of, constants)


def _keep(fun: FunctionType, key: object, entry: _Entry) -> None:
    with _lock:
        own = _kept.setdefault(fun, {})
        own[key] = entry
        for table in (own, _kept):
            if len(table) > BOUND:
                del table[next(iter(table))]


def _uses(fun: FunctionType) -> tuple[object, ...]:
    """Return what is compared of the values of the names that a function uses."""
    cells = [_content(cell) for cell in fun.__closure__ or ()]
    globals_ = fun.__globals__
    found = [*cells, *[globals_.get(name) for name in fun.__code__.co_names]]
    return tuple([_compared(x) for x in found])


def _content(cell: object) -> object:
    try:
        return getattr(cell, "cell_contents", None)
    except ValueError:
        return None


def _compared(x: object) -> object:
    """Return what is compared of a value: a function by a weak reference, others not at all."""
    if isinstance(x, FunctionType):
        return ref(x)
    if isinstance(x, _VALUES | Array | float | complex | tuple) or hasattr(x, "dtype"):
        return x
    return None


def _same(before: Sequence[object], now: Sequence[object]) -> bool:
    return len(before) == len(now) and all(map(_equal, before, now))


def _equal(x: object, y: object) -> bool:
    return x is y or (isinstance(x, _VALUES) and type(x) is type(y) and x == y)
