"""What users write, run so that what it does wrong is told in its name: which rule, of what."""

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
from effax.ir.errors import BadArgument, BadRule, EffaxError, IllTyped, TransformError
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.source import defined_at, raised_at
from effax.ir.types import ArrayType, RefType, Type, array_type

NAME: Final = re.compile(r"[A-Za-z_]\w*")
"""What a primitive may be called, so that its text is read back."""


@contextmanager
def blamed(label: str, rule: object = None) -> Iterator[None]:
    """Errors in the block are those of a rule, ``label``; what says why it does not apply is not.

    They name the line of ``rule``, a function, where nothing that the user wrote raised them.

    Raises:
        BadRule: in the place of every error but ``TransformError``.
    """
    try:
        yield
    except BadRule as error:
        error.at(None, defined_at(rule))
        raise
    except (TransformError, RecursionError):
        raise
    except EffaxError as error:
        what = error.what if label in error.what else f"{label}: {error.what}"
        told = BadRule(what, error.expected, error.found, error.remedy)
        where = raised_at(error) or defined_at(rule) or error.source
        raise told.at(error.equation, where) from error
    except Exception as error:
        told = BadRule(f"{label} raises {shown_error(error)}")
        raise told.at(None, raised_at(error) or defined_at(rule)) from error


@contextmanager
def located(rule: object) -> Iterator[None]:
    """What is found wrong in the block is told with the line of ``rule``, a function."""
    try:
        yield
    except BadRule as error:
        error.at(None, defined_at(rule))
        raise


def shown_error(error: Exception) -> str:
    """The error's class and message."""
    return f"{type(error).__name__}: {error}"


def listed(
    label: str, what: str, found: object, count: int | None = None, rule: object = None
) -> Sequence[object]:
    """What a rule gives as a list of so many. Raises BadRule."""
    if not isinstance(found, list | tuple):
        raise BadRule(
            f"{label} gives {what} that are no list",
            expected=f"a list or a tuple of {what}",
            found=shown(found),
            source=defined_at(rule),
        )
    if count is not None and len(found) != count:
        raise BadRule(
            f"{label} gives another number of {what}",
            expected=str(count),
            found=str(len(found)),
            source=defined_at(rule),
        )
    return found


def paired(label: str, what: str, found: object) -> tuple[object, object]:
    """What a rule gives as two. Raises BadRule."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise BadRule(
            f"{label} gives no pair", expected=f"two lists, of {what}", found=shown(found)
        )
    return found[0], found[1]


def shown(x: object) -> str:
    """What something is, in a message."""
    if isinstance(x, Array | Ref):
        return f"one of the type {x.type}"
    if isinstance(x, list | tuple):
        return f"a {type(x).__name__} of {len(x)}"
    return "None" if x is None else f"{type(x).__name__}: {x!r:.60}"


def check_parameters(prim: Primitive) -> None:
    """Raises BadArgument unless a primitive has a name, and fields that can be hashed."""
    name: object = getattr(prim, "name", None)
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        own = type(prim).__name__
        raise BadArgument(
            f"the class {own} has no name that prints",
            expected=f'`name: ClassVar[str] = "{own.lower()}"`: letters, digits and underscores',
            found=repr(name),
        )
    _check_class(prim)
    try:
        hash(prim)
    except TypeError as error:
        raise BadArgument(
            f"the fields of {prim.name} are its parameters, and one cannot be hashed",
            expected=KINDS,
            found=str(error),
            remedy="a tuple in the place of a list; an array is an argument of the primitive",
        ) from error


def _check_class(prim: Primitive) -> None:
    """Raises BadArgument unless all that a primitive is are fields of a frozen dataclass."""
    cls: type = type(prim)
    frozen = f"declare {cls.__name__} with `@dataclass(frozen=True, slots=True)`"
    if is_dataclass(cls):
        if not is_frozen(cls):
            raise BadArgument(
                f"{prim.name} is equal to its fields, and these can be changed",
                expected="a frozen dataclass",
                found=f"the dataclass {cls.__name__}, which is not frozen",
                remedy=frozen,
            )
        return
    made = next(c for c in cls.__mro__ if "__init__" in vars(c))
    if made is not object:
        raise BadArgument(
            f"{prim.name} is equal to its fields, and its class has none",
            expected="a frozen dataclass, whose fields are the parameters",
            found=f"the class {cls.__name__}, which is no dataclass and has an `__init__`",
            remedy=frozen,
        )


def results_of(label: str, given: object, types: Sequence[Type]) -> list[Value]:
    """What ``evaluate`` gives, as arrays of the types that the typing says. Raises BadRule."""
    outs = [np.asarray(x) for x in listed(label, "results", given, len(types))]
    for j, (x, t) in enumerate(zip(outs, types, strict=True)):
        weak = isinstance(t, ArrayType) and t.weak
        if isinstance(t, ArrayType) and array_type(x.shape, x.dtype, weak) != t:
            raise BadRule(
                f"result {j} of {label} is of another type than its typing says",
                expected=str(t),
                found=str(array_type(x.shape, x.dtype, weak)),
                remedy=wide_remedy(t, x.dtype.itemsize),
            )
    return outs


def wide_remedy(wanted: Type, itemsize: int) -> str | None:
    """What to do where something is narrower than a type of 64 bits, and these are not enabled."""
    least = 16 if wanted.dtype.kind == "c" else 8
    if config.enable_x64 or itemsize >= wanted.dtype.itemsize or wanted.dtype.itemsize < least:
        return None
    return (
        'types of 64 bits need `effax.config.update("enable_x64", True)`: else what `zeros`, '
        "`astype` and the like give has 32; enable them, or give types of 32"
    )


def typed(prim: Primitive, types: Sequence[Type]) -> Typing:
    """The typing of an application.

    Raises:
        IllTyped: the arguments do not fit; or ``typing`` raises something else, or gives no
            ``Typing``.
        BadArgument: a field of the primitive cannot be hashed.
    """
    check_parameters(prim)
    try:
        found: object = typing_of(prim, tuple(types))
    except (EffaxError, RecursionError):
        raise
    except Exception as error:
        raise IllTyped(
            f"{prim.name} does not take these arguments: its typing raises {shown_error(error)}",
            expected="a `Typing`, or an `IllTyped` that says what it takes",
            found=f"({', '.join(map(str, types))})",
            source=raised_at(error) or defined_at(prim.typing),
        ) from error
    if not isinstance(found, Typing):
        raise IllTyped(
            f"the typing of {prim.name} gives no `Typing`",
            expected="`Typing((type of a result, ...), effects)`",
            found=shown(found),
            source=defined_at(prim.typing),
        )
    with located(prim.typing):
        check_typing(f"the typing of {prim.name}", found, types)
    return found


def check_typing(label: str, found: Typing, types: Sequence[Type]) -> None:
    """Raises BadRule unless a typing has a tuple of types, and effects on what is a reference."""
    outs: object = found.outs
    if not isinstance(outs, tuple) or not all(isinstance(t, ArrayType | RefType) for t in outs):
        alone = isinstance(outs, ArrayType | RefType)
        raise BadRule(
            f"{label} gives no tuple of types",
            expected="`Typing((type, ...))`",
            found=f"Typing({outs})" if alone else repr(outs),
            remedy="of one result too: `Typing((x,))`" if alone else None,
        )
    effects: object = found.effects
    if not isinstance(effects, Row):
        raise BadRule(f"{label} gives effects that are no `Row`", "`Row([...])`", repr(effects))
    for effect in found.effects:
        if not isinstance(effect, Read | Write | Accum | Free):
            continue
        i = effect.ref
        if not 0 <= i < len(types) or not isinstance(types[i], RefType):
            refs = [f"ArgIndex({j})" for j, t in enumerate(types) if isinstance(t, RefType)]
            raise BadRule(
                f"{label} gives an effect on what is no reference",
                expected=f"effects on references: {' or '.join(refs)}" if refs else "no effects",
                found=f"{type(effect).__name__}(ArgIndex({i})), where "
                + (f"argument {i} is {types[i]}" if 0 <= i < len(types) else "there is none"),
            )
