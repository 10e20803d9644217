"""Checks of derivatives, under JAX's name."""

from __future__ import annotations

from effax.testing.check_grads import check_grads

__all__ = ["check_grads"]
