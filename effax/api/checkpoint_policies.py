"""Policies of ``checkpoint``: the residuals that it may save, under JAX's names.

A policy is a value: programs with policies can be compared, printed and parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from effax.api.remat import as_rule
from effax.ir.errors import BadArgument
from effax.ir.prims import Kept, SaveEither, SavePolicy, SaveRule
from effax.ir.prims.remat import NOTHING

__all__ = [
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]

everything_saveable: Final = SavePolicy(Kept.EVERYTHING)
nothing_saveable: Final = NOTHING
dots_saveable: Final = SavePolicy(Kept.DOTS)
checkpoint_dots: Final = dots_saveable
dots_with_no_batch_dims_saveable: Final = SavePolicy(Kept.DOTS_WITHOUT_BATCH)
checkpoint_dots_with_no_batch_dims: Final = dots_with_no_batch_dims_saveable


def save_only_these_names(*names_which_can_be_saved: str) -> SavePolicy:
    """Save the values with these names only."""
    return SavePolicy(Kept.THESE_NAMES, names_which_can_be_saved)


def save_anything_except_these_names(*names_not_to_save: str) -> SavePolicy:
    """Save all values except those with these names."""
    return SavePolicy(Kept.ANYTHING_BUT_THESE_NAMES, names_not_to_save)


def save_any_names_but_these(*names_not_to_save: str) -> SavePolicy:
    """Save the values that have a name, except these."""
    return SavePolicy(Kept.NAMES_BUT_THESE, names_not_to_save)


def save_from_both_policies(
    policy_1: SaveRule | Callable[..., bool], policy_2: SaveRule | Callable[..., bool]
) -> SaveRule:
    """Save the union of two policies' values. Raises BadArgument for other arguments."""
    first = as_rule(policy_1, "save_from_both_policies")
    second = as_rule(policy_2, "save_from_both_policies")
    if everything_saveable in (first, second):
        return everything_saveable
    if NOTHING in (first, second):
        return second if first == NOTHING else first
    return SaveEither(first, second)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> NoReturn:
    """Raises BadArgument: residuals stay in the memory of their device."""
    raise _no_offloading(
        "offload_dot_with_no_batch_dims",
        offload_src,
        offload_dst,
        "dots_with_no_batch_dims_saveable",
    )


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: object,
    names_which_can_be_offloaded: object,
    offload_src: str,
    offload_dst: str,
) -> NoReturn:
    """Raises BadArgument: residuals stay in the memory of their device."""
    raise _no_offloading(
        "save_and_offload_only_these_names", offload_src, offload_dst, "save_only_these_names(...)"
    )


def _no_offloading(what: str, source: str, target: str, instead: str) -> BadArgument:
    return BadArgument(
        f"{what}: residuals cannot be moved to another memory",
        expected="a policy without a transfer to another memory",
        found=f"from {source!r} to {target!r}",
        remedy=f"use `{instead}` to save the values in place, or recompute them",
    )
