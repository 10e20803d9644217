"""Python's numbers as arguments of what was compiled for arrays of certain types."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.ir.dtypes import FAMILY_RANKS, family
from effax.ir.errors import IllTyped
from effax.ir.types import ArrayType

Number = bool | int | float | complex


def number_as_array(x: Number, wanted: ArrayType, what: str) -> np.ndarray:
    """The number as an array of the dtype wanted.

    Args:
        x: the number.
        wanted: the type; only its dtype counts here.
        what: what the message calls the argument.

    Raises:
        IllTyped: the dtype has no such number: a fraction among integers, an imaginary part among
            real numbers, an integer out of its range.
    """
    kind = family(wanted.dtype)
    rank = 0 if isinstance(x, bool) else next(i for i in (1, 2, 3) if isinstance(x, _KINDS[i]))
    try:
        if rank <= FAMILY_RANKS.get(kind, -1):
            return np.asarray(x, wanted.dtype)
    except OverflowError:
        pass
    raise IllTyped(f"{what} is a number that its type does not have", str(wanted), repr(x))


_KINDS: Final = (bool, int, float, complex)
