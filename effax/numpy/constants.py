"""Constants, and the types that have NumPy's names."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.arrays.array import Array
from effax.numpy.dtypes import ScalarType, bool_

__all__ = ["bool", "dtype", "e", "euler_gamma", "inf", "nan", "ndarray", "newaxis", "pi"]

bool: Final[ScalarType] = bool_
dtype = np.dtype
ndarray = Array
e: Final[float] = np.e
euler_gamma: Final[float] = np.euler_gamma
inf: Final[float] = np.inf
nan: Final[float] = np.nan
newaxis: Final[None] = None
pi: Final[float] = np.pi
