"""What may be asked about gradients: the entries of ``with_refs`` and what stands for them.

- a ``Ref``: add this argument's gradient into it; ``GradRef()`` stands in the result;
- ``GradValue()``: give the gradient as a value (the default);
- ``DontWant()``: do not compute it; ``DidntWant()`` stands in the result.

And what is kept for a gradient: ``saved_residuals``.
"""

from __future__ import annotations

from dataclasses import dataclass

from effax import tree
from effax.api.saved import saved_residuals
from effax.transforms.partial_eval.saved import SavedResidual
from effax.transforms.transpose.engine import DontWant, GradRef, GradValue


@dataclass(frozen=True)
class DidntWant:
    """Stands in the place of a gradient that was not asked for."""


# Placeholders hold no arrays, so that results with them leave traced functions.
tree.register_pytree_node(GradRef, lambda _: ((), None), lambda _, __: GradRef())
tree.register_pytree_node(DidntWant, lambda _: ((), None), lambda _, __: DidntWant())

__all__ = [
    "DidntWant",
    "DontWant",
    "GradRef",
    "GradValue",
    "SavedResidual",
    "saved_residuals",
]
