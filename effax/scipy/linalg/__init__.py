"""Linear algebra, with SciPy's names: systems, factorizations, and matrices of special form."""

from effax.arrays.namespace import public_names as _public_names
from effax.scipy.linalg.factors import *
from effax.scipy.linalg.functions import *
from effax.scipy.linalg.schur_functions import *
from effax.scipy.linalg.special_matrices import *
from effax.scipy.linalg.systems import *

# Type checkers take names of star imports as public, and do not evaluate a computed `__all__`.
globals()["__all__"] = _public_names(globals())
