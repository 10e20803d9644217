"""``debug.print`` and ``debug.callback``: side effects of a program for debugging."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import overload

import numpy as np

from effax.api.host_functions import TreeFunction, array_leaves
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import bind
from effax.arrays.tracing import label_of
from effax.ir.errors import BadArgument, BadFormat
from effax.ir.prims import DebugCallback
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTree


@overload
def debug_callback(
    callback: Callable[..., object],
    *args: object,
    ordered: bool = ...,
    partitioned: bool = ...,
    **kwargs: object,
) -> None: ...
@overload
def debug_callback(*, ordered: bool = ..., partitioned: bool = ...) -> Callable[..., None]: ...
def debug_callback(
    callback: Callable[..., object] | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Call ``callback(*args, **kwargs)`` when the program runs; its result is dropped.

    It is called once each run, also in functions that are differentiated (with primal values),
    rematerialized, or batched (once a batch element, in order). Without a callback, as in
    ``debug.callback(ordered=True)(f, x)``, a function that takes one is returned.

    Args:
        callback: a function of trees. Leaves that are not arrays are passed unchanged.
        *args: its arguments.
        ordered: whether ordered calls run in program order.
        partitioned: has no effect.
        **kwargs: its arguments by name.

    Raises:
        BadArgument: ``callback`` is not callable, or there are arguments without one.
        IllTyped: an argument is a reference.
    """

    def called(callback: Callable[..., object], *args: object, **kwargs: object) -> None:
        check_callable(callback, "debug.callback")
        _show(callback, args, kwargs, ordered, "debug.callback", label_of(callback))

    if callback is None:
        _check_options_alone(args, kwargs, "debug.callback")
        return called
    called(callback, *args, **kwargs)
    return None


@overload
def debug_print(
    fmt: str,
    *args: object,
    ordered: bool = ...,
    partitioned: bool = ...,
    skip_format_check: bool = ...,
    **kwargs: object,
) -> None: ...
@overload
def debug_print(
    *, ordered: bool = ..., partitioned: bool = ..., skip_format_check: bool = ...
) -> Callable[..., None]: ...
def debug_print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Print ``fmt.format(*args, **kwargs)`` when the program runs.

    An f-string would be formatted while the function is traced: write
    ``debug.print("x = {x}", x=x)``. Without a format, as in ``debug.print(ordered=True)("{}", x)``,
    a function that takes one is returned.

    Args:
        fmt: a format string, as of ``str.format``.
        *args: trees of arrays, and of other objects, which are formatted unchanged.
        ordered: whether ordered calls run in program order.
        partitioned: has no effect.
        skip_format_check: whether the check that the format fits the arguments is skipped. After a
            format without replacement fields, arguments are printed in sequence.
        **kwargs: the same, by name.

    Raises:
        BadFormat: the format does not fit the arguments.
        IllTyped: an argument is a reference.
    """

    def printed(fmt: str, *args: object, **kwargs: object) -> None:
        if not isinstance(fmt, str):
            raise BadArgument(
                "debug.print takes a format",
                expected="a string",
                found=f"{type(fmt).__name__}: {fmt!r:.60}",
                remedy="debug.print('{}', x)",
            )
        if not skip_format_check:
            _check_format(fmt, args, kwargs)
        shown = _Print(fmt, tuple(np.get_printoptions().items()))
        _show(shown, args, kwargs, ordered, "debug.print", "print")

    if fmt is None:
        _check_options_alone(args, kwargs, "debug.print")
        return printed
    printed(fmt, *args, **kwargs)
    return None


def _show(
    callback: Callable[..., object],
    args: Sequence[object],
    kwargs: dict[str, object],
    ordered: bool,
    what: str,
    label: str,
) -> None:
    operands, treedef, fixed = array_leaves(args, kwargs, what, others=True)
    bind(DebugCallback(TreeFunction(callback, treedef, fixed, label), bool(ordered)), *operands)


def _check_options_alone(args: Sequence[object], kwargs: dict[str, object], what: str) -> None:
    if args or kwargs:
        raise BadArgument(
            f"{what} has arguments without a function or a format",
            expected="a function or a format before them, or options alone",
            found=", ".join([*map(repr, args), *kwargs]),
        )


@dataclass(frozen=True, slots=True)
class _Print:
    """Formats its arguments and prints them."""

    fmt: str
    options: tuple[tuple[str, PyTree], ...]

    def __call__(self, *args: object, **kwargs: object) -> None:
        with np.printoptions(**dict(self.options)):
            if args and all(name is None for _, name, _, _ in string.Formatter().parse(self.fmt)):
                text = " ".join([self.fmt, *map(str, args)])
            else:
                text = self.fmt.format(*args, **kwargs)
        sys.stdout.write(f"{text}\n")


class _FormatChecker(string.Formatter):
    """Find the arguments that a format uses, without formatting them."""

    def __init__(self) -> None:
        self.used: set[int | str] = set()

    def format_field(self, value: object, format_spec: str) -> str:
        return ""

    def convert_field(self, value: object, conversion: object) -> object:
        return value

    def check_unused_args(
        self, used_args: set[int | str], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        self.used = used_args


def _check_format(fmt: str, args: Sequence[object], kwargs: dict[str, object]) -> None:
    """Raise BadFormat where the format does not fit the arguments."""
    used = used_fields("debug.print", fmt, args, kwargs)
    names = [*range(len(args)), *kwargs]
    unused = [str(name) for name in names if name not in used]
    if unused:
        raise BadFormat(
            "debug.print: the format does not use all arguments",
            expected=f"a place for each of {', '.join(map(str, names))}",
            found=f"{fmt!r}, which leaves out {', '.join(unused)}",
            remedy="write `debug.print('{x}', x=x)`, and not an f-string",
        )


def used_fields(
    what: str, fmt: str, args: Sequence[object], kwargs: Mapping[str, object]
) -> set[int | str]:
    """Return the arguments that a format uses. Raises BadFormat where it has others."""
    checker = _FormatChecker()
    try:
        checker.vformat(fmt, args, kwargs)
    except (IndexError, KeyError, ValueError, AttributeError) as error:
        raise BadFormat(
            f"{what}: the format does not fit the arguments",
            expected=f"a format of {len(args)} arguments by position and {sorted(kwargs)} by name",
            found=f"{fmt!r} ({type(error).__name__}: {error})",
        ) from None
    return checker.used
