"""Random numbers from explicit keys. Keys, bits and samples are those of JAX.

A key is an element of an array of dtype ``key<fry>``; equal keys yield equal samples. :func:`split`
and :func:`fold_in` derive new keys from a key::

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3,))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = _lazy(__name__)
