"""Partial evaluation of ``custom_vmap``."""

from __future__ import annotations

from effax.ir.prims import CustomVmap, Jit
from effax.ir.types import Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import (
    PartialEvalOut,
    Policy,
    RuleSet,
)
from effax.transforms.rules.jit.partial_eval import jit_split


def custom_vmap_split(
    rules: RuleSet,
    prim: CustomVmap,
    in_types: tuple[Type, ...],
    known: Mask,
    policy: Policy | None,
) -> PartialEvalOut | None:
    """Split the function by the rule of ``jit``: both jaxprs are plain calls."""
    return jit_split(rules, Jit(prim.call, prim.label), in_types, known, policy)
