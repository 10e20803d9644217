"""effax: programs are immutable values, effects are types, transformations are pure functions."""

from __future__ import annotations

__version__ = "0.1.0"
