"""Dtypes: their limits, categories and promotion."""

from __future__ import annotations

from typing import Final as _Final

from effax.arrays.config import allowed as canonicalize_dtype
from effax.arrays.promotion import scalar_type_of
from effax.ir.dtypes import FLOAT0, itemsize_bits
from effax.ir.dtypes import DType as _DType
from effax.ir.errors import IllTyped as _IllTyped
from effax.ir.key_dtype import extended, prng_key
from effax.numpy.dtypes import bfloat16, finfo, iinfo, issubdtype, result_type

TypePromotionError = _IllTyped
float0: _Final[_DType] = FLOAT0

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip
