"""Checks of values that were read from text against the annotations of a class's fields."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from effax.ir.state import cached
from effax.ir.symbolic import SymbolicDim
from effax.ir.text.format import fields_of


def type_mismatch(owner: type, field: str, value: object) -> str | None:
    """Return the annotation of a field, as text, if the value does not match it, or None.

    None also for annotations that cannot be checked at run time: a type variable, a protocol, a
    name that exists for type checkers only.
    """
    hint = annotations_of(owner).get(field)
    if hint is None or _fits(value, hint):
        return None
    written = {f.name: f.type for f in fields_of(owner)}.get(field)
    if isinstance(written, str):
        return written
    return hint.__name__ if isinstance(hint, type) else str(hint)


@cached(maxsize=None)
def annotations_of(owner: type) -> Mapping[str, object]:
    """Return the annotations of a class; none where one of them exists for type checkers only."""
    try:
        return get_type_hints(owner)
    except NameError:
        return {}


def _fits(value: object, hint: object) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is Literal:
        return any(value == arg and type(value) is type(arg) for arg in args)
    if origin is Annotated:
        return _fits(value, args[0])
    if origin is tuple:
        return isinstance(value, tuple) and _fits_each(value, args)
    if origin is frozenset:
        return isinstance(value, frozenset) and all(_fits(v, args[0]) for v in value)
    return _is_instance(value, hint if origin is None else origin)


def _fits_each(value: tuple[object, ...], args: tuple[object, ...]) -> bool:
    if len(args) == 2 and args[1] is Ellipsis:
        return all(_fits(v, args[0]) for v in value)
    return len(value) == len(args) and all(map(_fits, value, args))


def _is_instance(value: object, kind: object) -> bool:
    if not isinstance(kind, type):
        return True
    if isinstance(value, bool) and kind in (int, float, complex):
        return False
    # As for type checkers, an integer is accepted as a float, and both as a complex number.
    if kind is float and isinstance(value, int):
        return True
    if kind is complex and isinstance(value, int | float):
        return True
    if kind is int and isinstance(value, SymbolicDim):
        return True
    try:
        return isinstance(value, kind)
    except TypeError:
        # A protocol that does not support isinstance.
        return True
