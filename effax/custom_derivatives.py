"""Functions that bring derivatives of their own, under JAX's names."""

from __future__ import annotations

from effax.api.custom.decorators import custom_jvp, custom_rules, custom_vjp
from effax.api.custom.zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "custom_jvp",
    "custom_rules",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "zero_from_primal",
]
