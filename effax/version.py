"""The version of the library."""

from __future__ import annotations

__version__: str = "0.1.0"
__version_info__: tuple[int, int, int] = (0, 1, 0)

__all__ = ["__version__", "__version_info__"]
