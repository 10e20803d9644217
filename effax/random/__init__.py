"""Random numbers from explicit keys. Keys, bits and samples are those of JAX.

A key is an array of two 32-bit words; equal keys yield equal samples. :func:`split` and
:func:`fold_in` derive new keys from a key::

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3,))
"""

from effax.arrays.namespace import public_names as _public_names
from effax.random.choices import *
from effax.random.distributions import *
from effax.random.keys import *

# Type checkers take names of star imports as public, and do not evaluate a computed `__all__`.
globals()["__all__"] = _public_names(globals())
