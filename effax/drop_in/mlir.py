"""Lowering rules, under the names of ``jax.interpreters.mlir``."""

from __future__ import annotations

from effax.drop_in.lowering import (
    LoweringRuleContext,
    ModuleContext,
    emit_python_callback,
    lower_fun,
    register_lowering,
)

__all__ = [
    "LoweringRuleContext",
    "ModuleContext",
    "emit_python_callback",
    "lower_fun",
    "register_lowering",
]
