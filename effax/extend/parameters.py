"""Parameters of primitives: equality by kind and bits, and checks that they print and parse."""

from __future__ import annotations

import types
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from effax.ir.errors import BadArgument
from effax.ir.field_types import annotations_of, type_mismatch
from effax.ir.indexing import Indexer
from effax.ir.primitive import ByReference, Primitive
from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import fields_of
from effax.ir.text.lexer import LEAST, UNSIGNED
from effax.ir.text.parameter_parser import classes_of
from effax.ir.types import ArrayType, RefType

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

KINDS: Final = (
    "numbers, booleans, strings, bytes, None, dtypes, types, programs, tuples and frozensets of "
    "these; enums, named tuples and frozen dataclasses that the annotations name"
)
"""The kinds of parameters, for messages."""

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(...))
_WRITTEN: Final = (Jaxpr, ByReference, np.dtype, ArrayType, RefType, Indexer)


class Exact:
    """A base class whose instances are equal if their fields are equal in kind and bits.

    In Python ``2 == 2.0 == True`` and ``0.0 == -0.0``, though a program of them differs, and nan is
    not equal to itself; caches need an equality of programs.
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # Set on the class itself: `dataclass` replaces inherited methods.
        for name, method in (("__eq__", _equal), ("__hash__", _hash)):
            if name not in vars(cls):
                setattr(cls, name, method)


def _equal(self: object, other: object) -> bool:
    return self is other or (type(self) is type(other) and _key(self) == _key(other))


def _hash(self: object) -> int:
    return hash((type(self), _key(self)))


def _key(self: object) -> tuple[Hashable, ...]:
    return tuple([_exact(getattr(self, f.name)) for f in fields_of(self) if f.compare])


def _exact(value: object) -> Hashable:
    """Return a key that is equal for identical values only."""
    kind = type(value)
    if isinstance(value, float) and kind is float:
        return kind, value.hex()
    if isinstance(value, complex) and kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, tuple):
        return kind, tuple([_exact(x) for x in value])
    if isinstance(value, frozenset):
        return kind, frozenset([_exact(x) for x in value])
    own = is_dataclass(value) and not isinstance(value, type) and not isinstance(value, Enum)
    if own and not kind.__module__.startswith("effax."):
        # `hash` raises for values that are not hashable.
        return kind, hash(value), _key(value)
    return kind, value


P = TypeVar("P", bound=Primitive)


def normalised(prim: P) -> P:
    """Return the primitive with integers converted to float in fields that are declared float."""
    changed = {}
    for name, hint in _inexact(type(prim)).items():
        value: object = getattr(prim, name)
        fitted = _fitted(value, hint)
        if fitted is not value:
            changed[name] = fitted
    if not changed:
        return prim
    made: object = replace(cast("DataclassInstance", prim), **changed)
    return cast(P, made)


@cached(maxsize=None)
def _inexact(cls: type) -> Mapping[str, object]:
    """Return the fields whose annotation contains float or complex, with their annotations."""
    hints = annotations_of(cls)
    return {
        f.name: hints[f.name]
        for f in (fields(cls) if is_dataclass(cls) else ())
        if f.init and f.name in hints and {float, complex} & set(_named(hints[f.name]))
    }


def _named(hint: object) -> Iterator[object]:
    yield hint
    for arg in get_args(hint):
        yield from _named(arg)


def _fitted(value: object, hint: object) -> object:
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kind = type(value)
    if isinstance(value, int | float) and kind in (int, float) and kind not in kinds:
        wider: tuple[type[float] | type[complex], ...] = (float, complex)
        for other in wider[kind is float :]:
            if other in kinds:
                # The integer may exceed all floats.
                with suppress(OverflowError):
                    return other(value)
    if isinstance(value, tuple) and kind is tuple:
        for each in kinds:
            parts = get_args(each)
            if get_origin(each) is tuple and parts:
                return _fitted_tuple(value, parts)
    return value


def _fitted_tuple(value: tuple[object, ...], hints: tuple[object, ...]) -> tuple[object, ...]:
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        return value
    found = tuple([_fitted(x, hint) for x, hint in zip(value, hints, strict=True)])
    return value if all(x is y for x, y in zip(found, value, strict=True)) else found


def check_written(prim: Primitive) -> None:
    """Raise BadArgument unless each parameter prints as text that parses."""
    for field in fields_of(prim):
        value: object = getattr(prim, field.name)
        what = f"the parameter {field.name} of {prim.name}"
        bad = unwritten(value, type(prim))
        if bad is not None:
            found, remedy = bad
            raise BadArgument(
                f"{what} cannot be printed and parsed",
                expected=KINDS,
                found=f"`{field.name}` is {found}",
                remedy=remedy,
            )
        wanted = type_mismatch(type(prim), field.name, value)
        if wanted is not None:
            raise BadArgument(
                f"{what} is of another kind than its class declares",
                expected=wanted,
                found=f"{type(value).__name__}: {value!r:.60}",
            )


def unwritten(value: object, owner: type) -> tuple[str, str | None] | None:
    """Return the part of a parameter that does not parse, and a remedy; None if all of it does.

    ``owner`` is the class whose annotations name enums and records.
    """
    kind = type(value)
    found = f"{kind.__name__}: {value!r:.60}"
    if isinstance(value, int) and not LEAST <= value <= UNSIGNED:
        return found, "use integers of 64 bits, or a string"
    if kind in _PLAIN or isinstance(value, _WRITTEN):
        return None
    if isinstance(value, np.generic):
        python = type(value.item()).__name__
        return found, f"convert it to a Python scalar: `{python}(...)`"
    if isinstance(value, Enum):
        return _unnamed(kind, owner, found)
    if kind in (tuple, frozenset):
        items = cast("tuple[object, ...]", value)
        return next((bad for x in items if (bad := unwritten(x, owner)) is not None), None)
    if isinstance(value, type) or callable(value):
        return found, "use a string or an enum, or another class of primitive"
    names = getattr(kind, "_fields", None) if isinstance(value, tuple) else None
    if names is None and is_dataclass(value):
        names = [f.name for f in fields(value)]
    if names is None:
        return found, "use a tuple instead of another sequence"
    if is_dataclass(kind) and not is_frozen(kind):
        return found, f"declare {kind.__name__} with `@dataclass(frozen=True)`"
    inside = (unwritten(getattr(value, name), kind) for name in names)
    return _unnamed(kind, owner, found) or next((bad for bad in inside if bad), None)


def _unnamed(kind: type, owner: type, found: str) -> tuple[str, str | None] | None:
    if classes_of(owner).get(kind.__name__) is kind:
        return None
    return found, (
        f"annotate the field with the class, `{kind.__name__}`, defined at the top of a module, "
        "for the parser"
    )


def is_frozen(cls: type) -> bool:
    """Return whether a dataclass is frozen."""
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))
