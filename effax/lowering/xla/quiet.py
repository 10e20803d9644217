"""The verbosity of jaxlib, which is set before its import."""

from __future__ import annotations

import os


def quieten(level: str = "1") -> None:
    """Keep XLA from reporting its devices on standard error, as jax does, before its import.

    Args:
        level: the least severe reports: 1 for warnings, 2 for errors.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
