"""Primitives of functions with rules of their own, under JAX's names."""

from __future__ import annotations

from effax.drop_in.primitives import PRIMITIVES
from effax.ir.operation import Operation

__all__ = ["custom_jvp_call_p", "custom_vjp_call_p"]

custom_jvp_call_p: Operation = PRIMITIVES["custom_jvp_call_p"]
custom_vjp_call_p: Operation = PRIMITIVES["custom_vjp_call_p"]
