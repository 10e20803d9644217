"""Conversion of Python scalars to arguments of compiled functions."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.ir.dtypes import FAMILY_RANKS, family
from effax.ir.errors import IllTyped
from effax.ir.types import ArrayType

Number = bool | int | float | complex


def number_as_array(x: Number, wanted: ArrayType, what: str) -> np.ndarray:
    """Return the number as a scalar array of ``wanted``'s dtype.

    Args:
        x: the number.
        wanted: the type; its shape is not used.
        what: the name of the argument in the message.

    Raises:
        IllTyped: the dtype does not represent the number: it is of a higher kind (bool, int,
            float, complex), or out of range.
    """
    kind = family(wanted.dtype)
    rank = 0 if isinstance(x, bool) else next(i for i in (1, 2, 3) if isinstance(x, _KINDS[i]))
    try:
        if rank <= FAMILY_RANKS.get(kind, -1):
            return np.asarray(x, wanted.dtype)
    except OverflowError:
        pass
    raise IllTyped(f"{what} is a number that its type does not represent", str(wanted), repr(x))


_KINDS: Final = (bool, int, float, complex)
