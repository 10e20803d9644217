"""Special values: zeros of both signs, infinities, nan, extremes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, isqrt, nan, prod, sqrt
from typing import Final

import ml_dtypes
import numpy as np

from effax.ir.dtypes import DType, family, int_bounds
from effax.ir.syntax import Scalar
from effax.ir.types import Type

SPECIAL: Final[dict[str, tuple[Scalar, ...]]] = {
    "bool": (False, True),
    "int": (0, 1, -1, 2, -7),
    "uint": (0, 1, 2, 7),
    "float": (0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 1000.0, inf, -inf, nan),
    "complex": (0j, 1 + 0j, -0.0 - 1j, complex(inf, -2.0), complex(0.5, nan), -0.3 + 0.7j),
    "void": (0,),
}
"""By family of dtypes, values that every dtype of it represents, or rounds."""


def special(dtype: DType, extremes: bool = True) -> np.ndarray:
    """Return the special values of a dtype.

    Args:
        dtype: the dtype.
        extremes: whether the least, the greatest and the smallest floats are included, and those
            whose squares overflow or underflow. Integers do not round: theirs always are.
    """
    kind = family(dtype)
    values = [*SPECIAL[kind]]
    if kind in ("int", "uint"):
        values += _middle(*int_bounds(dtype))
        values += int_bounds(dtype)
    if extremes and kind == "float":
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # its stub has no annotation
        values += [float(info.max), float(info.min), float(info.smallest_subnormal)]
        # Numbers whose squares overflow and underflow.
        root = 2.0 ** (int(info.maxexp) // 2 + 1)
        values += [root, -root, 0.25 / root / sqrt(2.0 ** int(info.nmant))]
    if kind == "void":
        return np.zeros(1, dtype)
    with np.errstate(all="ignore"):
        return np.array(values).astype(dtype)


def _middle(least: int, greatest: int) -> list[int]:
    """Return the greatest integer whose square does not overflow, the next, and powers of two.

    One more than a power of two is an integer that no float of its width represents.
    """
    root, bits = isqrt(greatest), greatest.bit_length()
    found = [root, root + 1, 1 << (bits + 1) // 2, (1 << (bits - 1)) + 1]
    return [*found, -root - 1] if least < 0 else found


def special_values(rng: np.random.Generator, type_: Type, extremes: bool = True) -> np.ndarray:
    """Return an array of special values, in random order."""
    values = special(type_.dtype, extremes)
    return values[rng.integers(0, len(values), prod(type_.shape))].reshape(type_.shape)


TIED: Final = (0, 1, -1, 2, 0.5, -0.5, 1.5, -2.5)
"""Few numbers, at which comparisons tie and roundings jump; integers have the whole ones."""


def tied_values(rng: np.random.Generator, type_: Type) -> np.ndarray:
    """Return an array of few different numbers, in random order."""
    kind = family(type_.dtype)
    if kind == "void":
        return np.zeros(type_.shape, type_.dtype)
    few = [c for c in TIED if isinstance(c, int)] if rng.random() < 0.5 or kind in _WHOLE else TIED
    values = np.asarray([abs(c) if kind == "uint" else c for c in few]).astype(type_.dtype)
    values = values[rng.integers(0, len(values), 3)]
    return values[rng.integers(0, len(values), prod(type_.shape))].reshape(type_.shape)


_WHOLE: Final = ("bool", "int", "uint")


def all_together(dtypes: Sequence[DType], extremes: bool = True) -> list[np.ndarray]:
    """Return an array of one axis a dtype: together, all combinations of special values."""
    values = [special(d, extremes) for d in dtypes]
    rows = [*product(*[range(len(some)) for some in values])]
    return [some[np.array([row[i] for row in rows], np.intp)] for i, some in enumerate(values)]


def identical(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether two arrays have one type and equal bits; all nan are equal."""
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return False
    if family(x.dtype) == "complex":
        return all(identical(part(x), part(y)) for part in (np.real, np.imag))
    if family(x.dtype) == "float":
        x, y = x.astype(np.float64), y.astype(np.float64)
        same_sign = np.signbit(x) == np.signbit(y)
        return bool(np.all(((x == y) & same_sign) | (np.isnan(x) & np.isnan(y))))
    return bool(np.array_equal(x, y))
