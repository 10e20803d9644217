"""The text of numbers that are not a number: ``nan``, ``-nan``, ``(nan+0.0j)``."""

from __future__ import annotations

import math
from typing import overload


@overload
def signed_nan(value: float) -> tuple[float, str]: ...


@overload
def signed_nan(value: complex) -> tuple[float | complex, str]: ...


def signed_nan(value: float | complex) -> tuple[float | complex, str]:
    """Return a number of which a nan keeps its sign only, and its text with that sign.

    Python's ``repr`` omits the sign of a nan.
    """
    if isinstance(value, complex):
        (real, first), (imag, second) = signed_nan(value.real), signed_nan(value.imag)
        joint = "" if second.startswith("-") else "+"
        return complex(real, imag), f"({first}{joint}{second}j)"
    if not math.isnan(value):
        return value, repr(value)
    return (-math.nan, "-nan") if math.copysign(1, value) < 0 else (math.nan, "nan")
