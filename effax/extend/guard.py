"""Run user-defined rules, and check their results; errors name the rule and its source line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Final

import numpy as np

from effax.arrays.array import Array
from effax.arrays.config import config
from effax.arrays.ref import Ref
from effax.effects import Accum, Free, Read, Row, Write
from effax.extend.parameters import KINDS, is_frozen
from effax.ir.build import typing_of
from effax.ir.errors import (
    BadArgument,
    BadRule,
    EffaxError,
    IllTyped,
    TransformError,
    Unfinished,
)
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.regions.forms import check_fields
from effax.ir.source import defined_at, raised_at
from effax.ir.types import ArrayType, RefType, Type, array_type

NAME: Final = re.compile(r"[A-Za-z_]\w*")
"""The names of primitives that parse."""


@contextmanager
def annotate_errors(label: str, rule: object = None) -> Iterator[None]:
    """Raise errors of the block as BadRule of ``label``, except TransformError and Unfinished.

    They have the line of user code that raised them, or else that of ``rule``, a function.

    Raises:
        BadRule: in place of every other error.
    """
    try:
        yield
    except BadRule as error:
        error.at(None, defined_at(rule))
        raise
    except (TransformError, RecursionError, Unfinished):
        raise
    except EffaxError as error:
        what = error.what if label in error.what else f"{label}: {error.what}"
        annotated = BadRule(what, error.expected, error.found, error.remedy)
        where = raised_at(error) or defined_at(rule) or error.source
        raise annotated.at(error.equation, where) from error
    except Exception as error:
        annotated = BadRule(f"{label} raises {shown_error(error)}")
        raise annotated.at(None, raised_at(error) or defined_at(rule)) from error


@contextmanager
def located(rule: object) -> Iterator[None]:
    """Add the line of ``rule``, a function, to a BadRule that the block raises."""
    try:
        yield
    except BadRule as error:
        error.at(None, defined_at(rule))
        raise


def shown_error(error: Exception) -> str:
    """Return the error's class and message."""
    return f"{type(error).__name__}: {error}"


def listed(
    label: str, what: str, found: object, count: int | None = None, rule: object = None
) -> Sequence[object]:
    """Return the results of a rule. Raise BadRule unless they are a list of ``count``."""
    if not isinstance(found, list | tuple):
        raise BadRule(
            f"{label}: {what} are not a list",
            expected=f"a list or a tuple of {what}",
            found=shown(found),
            source=defined_at(rule),
        )
    if count is not None and len(found) != count:
        raise BadRule(
            f"{label}: wrong number of {what}",
            expected=str(count),
            found=str(len(found)),
            source=defined_at(rule),
        )
    return found


def paired(label: str, what: str, found: object) -> tuple[object, object]:
    """Return the two results of a rule. Raise BadRule if they are not a pair."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise BadRule(
            f"{label} does not return a pair", expected=f"two lists, of {what}", found=shown(found)
        )
    return found[0], found[1]


def shown(x: object) -> str:
    """Return a description of a value for messages."""
    if isinstance(x, Array | Ref):
        return f"a value of type {x.type}"
    if isinstance(x, list | tuple):
        return f"a {type(x).__name__} of {len(x)}"
    return "None" if x is None else f"{type(x).__name__}: {x!r:.60}"


def check_parameters(prim: Primitive) -> None:
    """Raise BadArgument unless a primitive has a valid name and hashable fields."""
    name: object = getattr(prim, "name", None)
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        own = type(prim).__name__
        raise BadArgument(
            f"the class {own} has no valid name",
            expected=f'`name: ClassVar[str] = "{own.lower()}"`: letters, digits and underscores',
            found=repr(name),
        )
    _check_class(prim)
    try:
        hash(prim)
    except TypeError as error:
        raise BadArgument(
            f"a field of {prim.name} is not hashable",
            expected=KINDS,
            found=str(error),
            remedy="use a tuple instead of a list; pass an array as an operand",
        ) from error


def _check_class(prim: Primitive) -> None:
    """Raise BadArgument unless the state of a primitive is in fields of a frozen dataclass."""
    cls: type = type(prim)
    frozen = f"declare {cls.__name__} with `@dataclass(frozen=True, slots=True)`"
    if is_dataclass(cls):
        if not is_frozen(cls):
            raise BadArgument(
                f"the fields of {prim.name} are mutable",
                expected="a frozen dataclass",
                found=f"the dataclass {cls.__name__}, which is not frozen",
                remedy=frozen,
            )
        return
    made = next(c for c in cls.__mro__ if "__init__" in vars(c))
    if made is not object:
        raise BadArgument(
            f"the parameters of {prim.name} are not fields",
            expected="a frozen dataclass, whose fields are the parameters",
            found=f"the class {cls.__name__}, which has an `__init__` and is not a dataclass",
            remedy=frozen,
        )


def results_of(label: str, found: object, types: Sequence[Type]) -> list[Value]:
    """Return the results of ``evaluate`` as arrays. Raise BadRule for other types."""
    outs = [np.asarray(x) for x in listed(label, "results", found, len(types))]
    for j, (x, t) in enumerate(zip(outs, types, strict=True)):
        weak = isinstance(t, ArrayType) and t.weak
        if isinstance(t, ArrayType) and array_type(x.shape, x.dtype, weak) != t:
            raise BadRule(
                f"result {j} of {label} is of another type than its typing declares",
                expected=str(t),
                found=str(array_type(x.shape, x.dtype, weak)),
                remedy=wide_remedy(t, x.dtype.itemsize),
            )
    return outs


def least_wide(type_: Type) -> int:
    """Return the bytes of an element of the dtypes of 64 bits, or more, of this kind."""
    return 16 if type_.dtype.kind == "c" else 8


def wide_remedy(wanted: Type, itemsize: int) -> str | None:
    """Return the remedy for a result that is narrower than a type of 64 bits."""
    least = least_wide(wanted)
    if config.enable_x64 or itemsize >= wanted.dtype.itemsize or wanted.dtype.itemsize < least:
        return None
    return (
        'enable types of 64 bits, `effax.config.update("enable_x64", True)`, or declare types of '
        "32: by default `zeros`, `astype` and others return 32"
    )


def typed(prim: Primitive, types: Sequence[Type]) -> Typing:
    """Return the typing of an application.

    Raises:
        IllTyped: the operands do not fit; or ``typing`` raises another error, or does not return a
            ``Typing``.
        BadArgument: a field of the primitive is not hashable.
    """
    check_parameters(prim)
    check_fields(prim)
    try:
        found: object = typing_of(prim, tuple(types))
    except (EffaxError, RecursionError):
        raise
    except Exception as error:
        raise IllTyped(
            f"{prim.name} does not take these arguments: its typing raises {shown_error(error)}",
            expected="a `Typing`, or an `IllTyped` that states the expected types",
            found=f"({', '.join(map(str, types))})",
            source=raised_at(error) or defined_at(prim.typing),
        ) from error
    if not isinstance(found, Typing):
        raise IllTyped(
            f"the typing of {prim.name} does not return a `Typing`",
            expected="`Typing((type of a result, ...), effects)`",
            found=shown(found),
            source=defined_at(prim.typing),
        )
    with located(prim.typing):
        check_typing(f"the typing of {prim.name}", found, types)
    return found


def check_typing(label: str, found: Typing, types: Sequence[Type]) -> None:
    """Raise BadRule unless a typing has a tuple of types, and effects on references only."""
    outs: object = found.outs
    if not isinstance(outs, tuple) or not all(isinstance(t, ArrayType | RefType) for t in outs):
        alone = isinstance(outs, ArrayType | RefType)
        raise BadRule(
            f"{label} does not return a tuple of types",
            expected="`Typing((type, ...))`",
            found=f"Typing({outs})" if alone else repr(outs),
            remedy="for one result: `Typing((x,))`" if alone else None,
        )
    effects: object = found.effects
    if not isinstance(effects, Row):
        raise BadRule(f"the effects of {label} are not a `Row`", "`Row([...])`", repr(effects))
    for effect in found.effects:
        if not isinstance(effect, Read | Write | Accum | Free):
            continue
        i = effect.ref
        if not 0 <= i < len(types) or not isinstance(types[i], RefType):
            refs = [f"ArgIndex({j})" for j, t in enumerate(types) if isinstance(t, RefType)]
            raise BadRule(
                f"{label} has an effect on an operand that is not a reference",
                expected=f"effects on references: {' or '.join(refs)}" if refs else "no effects",
                found=f"{type(effect).__name__}(ArgIndex({i})), where "
                + (f"argument {i} is {types[i]}" if 0 <= i < len(types) else "it does not exist"),
            )
