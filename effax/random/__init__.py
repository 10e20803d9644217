"""Random numbers from explicit keys. Keys, bits and samples are those of JAX.

A key is an element of an array of dtype ``key<fry>``; equal keys yield equal samples. :func:`split`
and :func:`fold_in` derive new keys from a key::

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3,))
"""

from effax.arrays.namespace import public_names as _public_names
from effax.random.ball import *
from effax.random.binomial import *
from effax.random.choices import *
from effax.random.distributions import *
from effax.random.families import *
from effax.random.gamma import *
from effax.random.keys import *
from effax.random.poisson import *
from effax.random.uniform import *
from effax.random.vectors import *

# Type checkers take names of star imports as public, and do not evaluate a computed `__all__`.
globals()["__all__"] = _public_names(globals())
