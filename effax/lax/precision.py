"""Precision of products of floats."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from effax.arrays.array import DTypeLike
from effax.arrays.config import config
from effax.ir.dtypes import FLOAT32, as_dtype, width
from effax.ir.errors import BadArgument

__all__ = ["AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "Precision", "Tolerance"]


class Precision(Enum):
    """Precision of products of floats on devices that trade it for speed."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


class AccuracyMode(Enum):
    """Implementation of a function, where a device has several."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Error of a function that a caller accepts: ``atol`` with ``rtol``, or with ``ulps``.

    Attributes:
        atol: absolute error.
        rtol: relative error.
        ulps: error in units of the last place.

    Raises:
        BadArgument: a tolerance is negative, or all are 0.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0 or not any((self.atol, self.rtol, self.ulps)):
            raise BadArgument("no tolerance", "a positive atol, rtol or ulps", repr(self))


Accuracy = AccuracyMode | Tolerance


def check_accuracy(accuracy: object, what: str) -> None:
    """Raise BadArgument for an unknown accuracy; all known ones compute the same here."""
    if accuracy is not None and not isinstance(accuracy, Accuracy):
        raise BadArgument(
            f"{what}: unknown accuracy", "a Tolerance or an AccuracyMode", f"{accuracy!r:.80}"
        )


@dataclass(frozen=True, slots=True)
class DotAlgorithm:
    """Dtypes and steps in which a product of arrays is computed.

    Attributes:
        lhs_precision_type: dtype to which the left operand is rounded.
        rhs_precision_type: dtype to which the right operand is rounded.
        accumulation_type: dtype of the sums.
        lhs_component_count: number of parts into which the left operand is split.
        rhs_component_count: number of parts into which the right operand is split.
        num_primitive_operations: number of products of parts.
        allow_imprecise_accumulation: whether sums may have fewer bits than their dtype.
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(Enum):
    """Algorithms of products: dtypes of the operands and of the sums, and the number of products.

    On devices that do not have an algorithm, a product has at least its precision.
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16


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
    """Return the name of a precision: a member or a value of ``lax.Precision``, or an algorithm.

    Of None, that of the setting ``default_matmul_precision``; of a pair, the higher one.

    Raises:
        BadArgument: an unknown precision.
    """
    if isinstance(precision, tuple | list) and len(precision) == 2:
        names = [plain_precision(p) for p in precision]
        return next((p for p in ("highest", "high") if p in names), None)
    if precision is None:
        default = config.default_matmul_precision
        return None if default is None else plain_precision(_of_preset(default))
    if isinstance(precision, DotAlgorithm):
        return plain_precision(_of_algorithm(precision))
    if isinstance(precision, DotAlgorithmPreset):
        precision = precision.name
    given = str(precision.value if isinstance(precision, Precision) else precision)
    name = (_of_preset(given) if given in DotAlgorithmPreset.__members__ else given).lower()
    name = _BY_ALGORITHM.get(name, name)
    known = [p.value for p in Precision]
    if name not in known:
        raise BadArgument("unknown precision", " or ".join(known), repr(precision))
    return None if name == "default" else name


def _of_algorithm(algorithm: DotAlgorithm) -> str:
    """Return the precision that computes at least as an algorithm."""
    if width(as_dtype(algorithm.lhs_precision_type)) >= width(FLOAT32):
        return "highest"
    return "default" if algorithm.num_primitive_operations == 1 else "highest"


def _of_preset(name: str) -> str:
    """Return the precision that computes as an algorithm of products, by its name in capitals."""
    if not name.isupper():
        return name
    if name.startswith(("F32", "F64")) or name.endswith(("X6", "X9")):
        return "highest"
    return "high" if name.startswith("TF32") or name.endswith("X3") else "default"
