"""The stages of a jitted call: wrapped, lowered, compiled."""

from __future__ import annotations

from effax.api.jit import JitFunction as Wrapped
from effax.api.stages import Compiled, Lowered

__all__ = ["Compiled", "Lowered", "Wrapped"]
