"""Small libraries in the style of JAX's examples: optimizers and layers of neural networks."""

from __future__ import annotations

from effax.example_libraries import optimizers as optimizers
from effax.example_libraries import stax as stax

__all__ = ["optimizers", "stax"]
