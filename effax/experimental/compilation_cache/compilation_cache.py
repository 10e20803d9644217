"""The directory of the cache of executables, the setting ``compilation_cache_dir``."""

from __future__ import annotations

from os import PathLike, fspath

from effax.arrays.config import config

__all__ = ["is_initialized", "reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | PathLike[str]) -> None:
    """Keep executables in a directory, and look for them there.

    >>> from effax.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir("/tmp/executables")
    >>> compilation_cache.is_initialized()
    True
    >>> compilation_cache.reset_cache()
    """
    config.update("jax_compilation_cache_dir", fspath(path))


def reset_cache() -> None:
    """Keep no executables on disk; those in the directory stay."""
    config.update("jax_compilation_cache_dir", None)


def is_initialized() -> bool:
    """Return whether executables are kept on disk."""
    return config.compilation_cache_dir is not None
