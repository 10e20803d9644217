"""Entries of ``with_refs``, and the placeholders that results have for them."""

from __future__ import annotations

from effax import tree
from effax.lazy.dataclasses import dataclass
from effax.transforms.transpose.engine import GradRef


@dataclass(frozen=True)
class DidntWant:
    """The placeholder of a gradient that was not requested."""


# Placeholders have no arrays, so that traced functions can return them.
tree.register_pytree_node(GradRef, lambda _: ((), None), lambda _, __: GradRef())
tree.register_pytree_node(DidntWant, lambda _: ((), None), lambda _, __: DidntWant())
