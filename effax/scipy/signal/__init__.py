"""Convolution, correlation and spectra of signals, with SciPy's names."""

from effax.arrays.namespace import public_names as _public_names
from effax.scipy.signal.convolution import *
from effax.scipy.signal.spectra import *

# Type checkers take names of star imports as public, and do not evaluate a computed `__all__`.
globals()["__all__"] = _public_names(globals())
