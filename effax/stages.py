"""The stages of a jitted call: wrapped, traced, lowered, compiled."""

from __future__ import annotations

from effax.api.jit import JitFunction as Wrapped
from effax.api.jit_options import CompilerOptions
from effax.api.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
