"""Requests for gradients: the entries of ``with_refs``, and the markers that it returns.

- a ``Ref``: accumulate this argument's gradient into it; ``GradRef()`` is returned in its place;
- ``GradValue()``: return the gradient as a value (the default);
- ``DontWant()``: skip the gradient; ``DidntWant()`` is returned in its place.

``saved_residuals`` lists the residuals that a gradient keeps.
"""

from __future__ import annotations

from effax.api.args_residuals import NotNeeded, NotSaveable
from effax.api.saved import saved_residuals
from effax.api.with_refs import DidntWant
from effax.transforms.partial_eval.saved import SavedResidual
from effax.transforms.transpose.engine import DontWant, GradRef, GradValue

__all__ = [
    "DidntWant",
    "DontWant",
    "GradRef",
    "GradValue",
    "NotNeeded",
    "NotSaveable",
    "SavedResidual",
    "saved_residuals",
]
