"""The cache of executables on disk."""

from __future__ import annotations

from effax.experimental.compilation_cache import compilation_cache as compilation_cache

__all__ = ["compilation_cache"]
