"""Special functions, with SciPy's names."""

from effax.arrays.namespace import public_names as _public_names
from effax.scipy.special.bessel import *
from effax.scipy.special.entropy import *
from effax.scipy.special.gammas import *
from effax.scipy.special.integrals import *
from effax.scipy.special.normal import *
from effax.scipy.special.plane import *
from effax.scipy.special.powers import *
from effax.scipy.special.series import *
from effax.scipy.special.sums import *

# Type checkers take names of star imports as public, and do not evaluate a computed `__all__`.
globals()["__all__"] = _public_names(globals())
