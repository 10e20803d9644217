"""Checks of the subjaxprs of a primitive: argument types, result types, no returned references."""

from __future__ import annotations

from collections.abc import Sequence

from effax.effects import Rule
from effax.ir.errors import IllTyped, RefError
from effax.ir.primitive import Primitive
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type


def check_call(prim: Primitive, what: str, body: Jaxpr, ins: Sequence[Type]) -> None:
    """Raise IllTyped unless ``body`` takes arguments of these types (weakness aside)."""
    wanted = body.in_types
    if len(wanted) != len(ins):
        raise IllTyped(
            f"{prim.name}: {what} takes another number of arguments",
            expected=str(len(wanted)),
            found=str(len(ins)),
        )
    for i, (want, have) in enumerate(zip(wanted, ins, strict=True)):
        if want is not have and not fits(have, want):
            raise IllTyped(
                f"{prim.name}: {body.name_of(i)} of {what} has the wrong type",
                expected=str(want),
                found=str(have),
            )


def check_counts(prim: Primitive, ins: Sequence[Type], *counts: int) -> None:
    """Raise IllTyped unless these numbers of leading operands are those of some operands."""
    if min(counts) < 0 or sum(counts) > len(ins):
        raise IllTyped(
            f"{prim.name}: the numbers of constants and carries do not fit the operands",
            expected=f"at least 0, and {len(ins)} at most together",
            found=", ".join(map(str, counts)),
        )


def fits(have: Type, want: Type) -> bool:
    """Return whether a value of type ``have`` can be bound to a binder of type ``want``."""
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return have.shape == want.shape and have.dtype == want.dtype
    return have is want


def check_no_ref_results(prim: Primitive, what: str, body: Jaxpr) -> None:
    """Raise RefError if the program returns a reference."""
    for i, type_ in enumerate(body.out_types):
        if isinstance(type_, RefType):
            error = f"{prim.name}: result {i} of {what} is a reference"
            raise RefError.against(Rule.ESCAPE, error, "an array", str(type_))


def check_results(prim: Primitive, what: str, body: Jaxpr, wanted: Sequence[Type]) -> None:
    """Raise IllTyped unless the program's results have these types (weakness aside)."""
    found = body.out_types
    if len(found) != len(wanted) or not all(map(fits, found, wanted)):
        raise IllTyped(
            f"{prim.name}: {what} returns results of the wrong type",
            expected=", ".join(map(str, wanted)) or "no results",
            found=", ".join(map(str, found)) or "no results",
        )
