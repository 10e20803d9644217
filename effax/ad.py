"""What may be asked about gradients: the entries of ``with_refs`` and what stands for them.

- a ``Ref``: add this argument's gradient into it; ``GradRef()`` stands in the result;
- ``GradValue()``: give the gradient as a value (the default);
- ``DontWant()``: do not compute it; ``DidntWant()`` stands in the result.

And what is kept for a gradient: ``saved_residuals``.
"""

from __future__ import annotations

from effax.api.saved import saved_residuals
from effax.api.with_refs import DidntWant
from effax.transforms.partial_eval.saved import SavedResidual
from effax.transforms.transpose.engine import DontWant, GradRef, GradValue

__all__ = [
    "DidntWant",
    "DontWant",
    "GradRef",
    "GradValue",
    "SavedResidual",
    "saved_residuals",
]
