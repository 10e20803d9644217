"""What may be asked about gradients: the entries of ``with_refs`` and what stands for them.

- a ``Ref``: add this argument's gradient into it; ``GradRef()`` stands in the result;
- ``GradValue()``: give the gradient as a value (the default);
- ``DontWant()``: do not compute it; ``DidntWant()`` stands in the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from effax.transforms.transpose import DontWant, GradRef, GradValue


@dataclass(frozen=True)
class DidntWant:
    """Stands in the place of a gradient that was not asked for."""


__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
