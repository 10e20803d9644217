"""``checkpoint``, names of values for its policies, and the residuals that it saves."""

from __future__ import annotations

from effax import checkpoint_policies
from effax.api.remat import checkpoint, checkpoint_name
from effax.api.saved import print_saved_residuals, saved_residuals

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "saved_residuals",
]
