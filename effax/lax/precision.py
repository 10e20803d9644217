"""Precision of products of floats."""

from __future__ import annotations

from enum import Enum

from effax.ir.errors import BadArgument

__all__ = ["Precision"]


class Precision(Enum):
    """Precision of products of floats on devices that trade it for speed."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


def plain_precision(precision: object) -> str | None:
    """Return the name of a precision, which may be a member of ``lax.Precision``."""
    if precision is None:
        return None
    name = str(precision.value if isinstance(precision, Precision) else precision).lower()
    names = [p.value for p in Precision]
    if name not in names:
        raise BadArgument("unknown precision", " or ".join(names), repr(precision))
    return None if name == "default" else name
