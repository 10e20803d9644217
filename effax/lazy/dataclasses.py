"""Dataclasses whose methods are generated when one of them is first used.

To generate the methods of a dataclass takes fifty times as long as to create the class, and a
process uses few of the primitives and records. For type checkers, ``dataclass`` here is the
standard library's. At run time the class has descriptors in the place of what that one generates;
the first that is read has it generate everything.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  for other modules
else:

    def dataclass(cls=None, /, *, slots=False, **options):
        """Declare a dataclass; see the module. Options are those of the standard library."""
        if cls is None:
            return lambda cls: dataclass(cls, slots=slots, **options)
        own = _own_fields(cls)
        defaults = {name: vars(cls)[name] for name in own if name in vars(cls)}
        if slots:
            cls = _with_slots(cls, own, options)
        else:
            for name, value in defaults.items():
                _set_default(cls, name, value)
        _declare(cls, options, defaults)
        return cls


_FIELDS: Final = "__dataclass_fields__"
_PARAMS: Final = "__dataclass_params__"
_ALWAYS: Final = (_FIELDS, _PARAMS, "__init__", "__repr__", "__match_args__")
_OF_FROZEN: Final = ("__setattr__", "__delattr__")
_READ: Final = (*_ALWAYS, *_OF_FROZEN, "__eq__", "__hash__", "__module__", "__doc__")
"""The attributes of a class that decide what is generated, apart from its fields."""

_lock: Final = threading.RLock()


class _Pending:
    """An attribute of a dataclass that is not generated yet."""

    __slots__ = ("declared", "name")

    def __init__(self, name: str, declared: tuple[type, dict[str, Any], dict[str, Any]]) -> None:
        self.name = name
        self.declared = declared

    def __get__(self, instance: object, owner: type) -> object:
        _generate(*self.declared)
        return getattr(owner if instance is None else instance, self.name)


def _own_fields(cls: type) -> list[str]:
    """Return the names of the fields that the class itself annotates."""
    annotations = vars(cls).get("__annotations__", {})
    return [name for name, type_ in annotations.items() if not type_.startswith("ClassVar")]


def _with_slots(cls: type, own: list[str], options: dict[str, bool]) -> type:
    """Return the class with slots for its own fields."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    dropped = {"__dict__", "__weakref__", *own}
    namespace = {name: value for name, value in vars(cls).items() if name not in dropped}
    namespace["__slots__"] = tuple([name for name in own if name not in inherited])
    if options.get("frozen"):
        namespace.setdefault("__getstate__", _state)
        namespace.setdefault("__setstate__", _set_state)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    for value in namespace.values():
        _refer(value, cls, made)
    return made


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _declare(cls: type, options: dict[str, bool], defaults: dict[str, Any]) -> None:
    """Set what is pending, and what does not wait: the absence of a hash."""
    names = [*_ALWAYS, *(_OF_FROZEN if options.get("frozen") else ())]
    if options.get("eq", True):
        names.append("__eq__")
        if vars(cls).get("__hash__") is None:
            if options.get("frozen"):
                names.append("__hash__")
            else:
                cls.__hash__ = None  # type: ignore[assignment]  # as equality without a hash has it
    for name in names:
        if vars(cls).get(name) is None and options.get(name.strip("_"), True):
            setattr(cls, name, _Pending(name, (cls, options, defaults)))


def _set_default(cls: type, name: str, value: object) -> None:
    """Set the default of a field as an attribute of the class; a factory is none."""
    if isinstance(value, dataclasses.Field):
        if value.default is dataclasses.MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, value.default)


def _generate(cls: type, options: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Set all pending attributes of a class.

    They are generated on a copy, so that other threads find either what is pending or what is
    generated.
    """
    with _lock:
        pending = [name for name, value in vars(cls).items() if isinstance(value, _Pending)]
        if not pending:
            return
        copy: type = dataclasses.dataclass(**options)(_copy(cls, defaults))
        for name in pending:
            value = vars(copy)[name]
            _refer(value, copy, cls)
            setattr(cls, name, value)


def _copy(cls: type, defaults: dict[str, Any]) -> type:
    """Return a class with the same fields, which inherits those of the class's bases."""
    base: dict[str, Any] = {}
    for each in reversed(cls.__mro__[1:]):
        if hasattr(each, _FIELDS):
            base[_FIELDS] = base.get(_FIELDS, {}) | getattr(each, _FIELDS)
            base[_PARAMS] = getattr(each, _PARAMS)
    if hasattr(cls, "__post_init__"):
        base["__post_init__"] = None
    own = {
        name: value
        for name, value in vars(cls).items()
        if name in _READ and not isinstance(value, _Pending)
    }
    own |= defaults | {"__annotations__": vars(cls).get("__annotations__", {})}
    return type(cls.__name__, (type("Base", (), base),), own | {"__qualname__": cls.__qualname__})


def _refer(method: object, copy: type, cls: type) -> None:
    """Have a method refer to the class in the place of its copy, as by ``super()``."""
    function = getattr(method, "fget", getattr(method, "__func__", method))
    for cell in getattr(function, "__closure__", None) or ():
        if cell.cell_contents is copy:
            cell.cell_contents = cls
