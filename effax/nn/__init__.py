"""Functions of neural networks, with JAX's names and signatures."""

from effax.arrays.namespace import public_names as _public_names
from effax.nn import initializers as initializers
from effax.nn.activations import *
from effax.nn.attention import *
from effax.nn.normalization import *

# Type checkers take names of star imports as public, and do not evaluate a computed `__all__`.
globals()["__all__"] = _public_names(globals(), "initializers")
