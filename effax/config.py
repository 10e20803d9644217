"""Settings of the library: ``config.update("enable_x64", True)``."""

from __future__ import annotations

from effax.arrays.config import Config, config, enable_x64

__all__ = ["Config", "config", "enable_x64"]
