"""Primitives of functions with rules of their own, under JAX's names."""

from __future__ import annotations

from effax.drop_in.primitives import PRIMITIVES

__all__ = ["custom_jvp_call_p", "custom_vjp_call_p"]

custom_jvp_call_p = PRIMITIVES["custom_jvp_call_p"]
custom_vjp_call_p = PRIMITIVES["custom_vjp_call_p"]
