"""NumPy's functions, with JAX's argument names, defaults, dtypes and promotion.

Arrays are immutable: updates return new arrays (see ``Array.at``). Lists are converted by
:func:`array` only; references are read first (``ref[...]``). All functions raise IllTyped for
operands that are not arrays or numbers, and where dtypes do not promote or shapes do not broadcast;
and BadArgument for axes out of range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.arrays.creation import *
    from effax.arrays.shapes import *
    from effax.numpy import fft as fft
    from effax.numpy import linalg as linalg
    from effax.numpy.accumulation import *
    from effax.numpy.arithmetic import *
    from effax.numpy.array_api import *
    from effax.numpy.bits import *
    from effax.numpy.choices import *
    from effax.numpy.comparison import *
    from effax.numpy.constants import *
    from effax.numpy.convolution import *
    from effax.numpy.covariance import *
    from effax.numpy.diagonals import *
    from effax.numpy.differences import *
    from effax.numpy.dtypes import *
    from effax.numpy.einstein import *
    from effax.numpy.files import *
    from effax.numpy.grids import *
    from effax.numpy.histograms import *
    from effax.numpy.index import *
    from effax.numpy.insertion import *
    from effax.numpy.join import *
    from effax.numpy.lift import *
    from effax.numpy.matrix_positions import *
    from effax.numpy.nanreduce import *
    from effax.numpy.padding import *
    from effax.numpy.partitions import *
    from effax.numpy.polynomial_fits import *
    from effax.numpy.polynomials import *
    from effax.numpy.positions import *
    from effax.numpy.predicates import *
    from effax.numpy.printing import *
    from effax.numpy.products import *
    from effax.numpy.properties import *
    from effax.numpy.quantiles import *
    from effax.numpy.ranges import *
    from effax.numpy.reduce import *
    from effax.numpy.sets import *
    from effax.numpy.sorting import *
    from effax.numpy.special import *
    from effax.numpy.statistics import *
    from effax.numpy.tensor_products import *
    from effax.numpy.ufuncs import *
    from effax.numpy.universal import *
    from effax.numpy.updates import *
    from effax.numpy.windows import *
else:
    __getattr__, __dir__ = _lazy(__name__)
