"""Precision of products of floats."""

from __future__ import annotations

from enum import Enum
from typing import Final

from effax.arrays.config import config
from effax.ir.errors import BadArgument

__all__ = ["Precision"]


class Precision(Enum):
    """Precision of products of floats on devices that trade it for speed."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


_BY_ALGORITHM: Final = {
    None: "default",
    "fastest": "default",
    "bfloat16": "default",
    "bfloat16_3x": "high",
    "tensorfloat32": "high",
    "float32": "highest",
}
"""The precision of a dtype or an algorithm of products; of others, see :func:`_of_preset`."""


def plain_precision(precision: object) -> str | None:
    """Return the name of a precision, which may be a member of ``lax.Precision``.

    Of None, that of the setting ``default_matmul_precision``; of a pair, the higher one.
    """
    if isinstance(precision, tuple | list) and len(precision) == 2:
        names = [plain_precision(p) for p in precision]
        return next((p for p in ("highest", "high") if p in names), None)
    if precision is None:
        default = config.default_matmul_precision
        return None if default is None else plain_precision(_of_preset(default))
    name = str(precision.value if isinstance(precision, Precision) else precision).lower()
    name = _BY_ALGORITHM.get(name, name)
    known = [p.value for p in Precision]
    if name not in known:
        raise BadArgument("unknown precision", " or ".join(known), repr(precision))
    return None if name == "default" else name


def _of_preset(name: str) -> str:
    """Return the precision that computes as an algorithm of products, by its name in capitals."""
    if not name.isupper():
        return name
    if name.startswith(("F32", "F64")) or name.endswith(("X6", "X9")):
        return "highest"
    return "high" if name.startswith("TF32") or name.endswith("X3") else "default"
