"""Functions with user-defined derivatives, under JAX's names."""

from __future__ import annotations

from effax.api.custom.closures import closure_convert, custom_gradient
from effax.api.custom.decorators import custom_jvp, custom_rules, custom_vjp
from effax.api.custom.zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from effax.api.linear import linear_call

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_rules",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
