"""Checks of what custom rules return, and of references in calls on values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from effax import tree
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.promotion import converted, yields
from effax.arrays.ref import Ref
from effax.arrays.tracing import arg_names, label_of
from effax.effects import Rule
from effax.ir.errors import IllTyped, RefError
from effax.ir.trace import alias_error, identity, shown_ref
from effax.ir.types import ArrayType, Type


def cast_result(value: object, type_: Type, what: str) -> Array:
    """Cast a result of a rule to the type of the function's. Raises IllTyped."""
    x = as_value(value, what)
    fits = x.dtype == type_.dtype or yields(x.type, type_.dtype, x, rounds=True)
    if x.shape != type_.shape or not fits:
        raise IllTyped(f"{what} has the wrong type", expected=str(type_), found=str(x.type))
    return converted(x, type_.dtype, isinstance(type_, ArrayType) and type_.weak)


def check_pair(result: object, what: str, pair: str) -> tuple[object, object]:
    """Return the two parts of a rule's result. Raises IllTyped where it is not a pair."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise IllTyped(
            f"{what} must return {pair}",
            expected="a pair",
            found=f"{type(result).__name__}: {result!r:.60}",
        )
    first, second = result
    return first, second


def check_distinct_refs(
    fun: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object], what: str
) -> None:
    """Raise RefError where one reference is two arguments, as a trace would."""
    leaves = tree.leaves((args, kwargs))
    seen: dict[int, int] = {}
    for i, x in enumerate(leaves):
        if isinstance(x, Ref):
            first = seen.setdefault(identity(x), i)
            if first != i:
                names = arg_names(fun, args, kwargs, len(leaves))
                called = f"{what}({label_of(fun)})"
                raise alias_error(
                    f"{called} gets one reference as {names[first]} and as {names[i]}", x
                )


def check_no_ref(result: object, label: str) -> None:
    """Raise RefError where a reference is returned, as a trace would."""
    for x in tree.leaves(result):
        if isinstance(x, Ref):
            what = f"{label}: the result is a reference"
            raise RefError.against(Rule.ESCAPE, what, "an array", shown_ref(x))
