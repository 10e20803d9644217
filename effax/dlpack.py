"""Exchange of arrays with other libraries by DLPack, without copies where memory permits."""

from __future__ import annotations

from effax.arrays.dlpack import from_dlpack, is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]
