"""Checks of derivatives, under JAX's name."""

from __future__ import annotations

from effax.testing.check_grads import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
