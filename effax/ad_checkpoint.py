"""Names for values, which policies of ``checkpoint`` know; ``checkpoint`` itself; what is kept."""

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
