"""What ``checkpoint`` may keep for the backward pass, under JAX's names.

A policy is a value: programs that hold one can be compared, printed and parsed.
"""

from __future__ import annotations

from typing import Final

from effax.ir.prims.remat import NOTHING, Kept, SavePolicy

everything_saveable: Final = SavePolicy(Kept.EVERYTHING)
nothing_saveable: Final = NOTHING
dots_saveable: Final = SavePolicy(Kept.DOTS)
checkpoint_dots: Final = dots_saveable
dots_with_no_batch_dims_saveable: Final = SavePolicy(Kept.DOTS_WITHOUT_BATCH)
checkpoint_dots_with_no_batch_dims: Final = dots_with_no_batch_dims_saveable


def save_only_these_names(*names_which_can_be_saved: str) -> SavePolicy:
    """Keep the values with these names, and nothing else."""
    return SavePolicy(Kept.THESE_NAMES, names_which_can_be_saved)


def save_anything_except_these_names(*names_not_to_save: str) -> SavePolicy:
    """Keep everything, named or not, apart from the values with these names."""
    return SavePolicy(Kept.ANYTHING_BUT_THESE_NAMES, names_not_to_save)


def save_any_names_but_these(*names_not_to_save: str) -> SavePolicy:
    """Keep the values that have a name, apart from those with these names."""
    return SavePolicy(Kept.NAMES_BUT_THESE, names_not_to_save)
