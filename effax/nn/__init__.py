"""Functions of neural networks, with JAX's names and signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.nn import initializers as initializers
    from effax.nn.activations import *
    from effax.nn.attention import *
    from effax.nn.normalization import *
    from effax.nn.scaled import *
else:
    __getattr__, __dir__ = _lazy(__name__)
