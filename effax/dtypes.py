"""Dtypes: their limits, categories and promotion."""

from __future__ import annotations

from typing import Final as _Final

from effax.arrays.config import allowed as canonicalize_dtype
from effax.ir.dtypes import FLOAT0
from effax.ir.dtypes import DType as _DType
from effax.ir.key_dtype import extended, prng_key
from effax.numpy.dtypes import bfloat16, finfo, iinfo, issubdtype, result_type

float0: _Final[_DType] = FLOAT0

__all__ = [
    "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "prng_key", "result_type",
]  # fmt: skip
