"""Checks of what custom rules return."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.promotion import yields
from effax.ir.errors import IllTyped
from effax.ir.types import Type


def cast_result(value: object, type_: Type, what: str) -> Array:
    """Cast a result of a rule to the type of the function's. Raises IllTyped."""
    x = as_value(value, what)
    fits = x.dtype == type_.dtype or yields(x.type, type_.dtype, x, rounds=True)
    if x.shape != type_.shape or not fits:
        raise IllTyped(f"{what} has the wrong type", expected=str(type_), found=str(x.type))
    return jnp.astype(x, type_.dtype)


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
