"""Primitives under JAX's names, and control flow.

Unlike ``effax.numpy``, functions here do not promote: operands must agree in dtype. A function
applies the primitive of its name, or a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.ir.prims import DotDimensionNumbers as DotDimensionNumbers
    from effax.lax import linalg as linalg
    from effax.lax.associative import *
    from effax.lax.barriers import *
    from effax.lax.bits import *
    from effax.lax.branches import *
    from effax.lax.composites import *
    from effax.lax.control import *
    from effax.lax.convolution import *
    from effax.lax.creation import *
    from effax.lax.elementwise import *
    from effax.lax.exchange import *
    from effax.lax.fft import *
    from effax.lax.foreach import *
    from effax.lax.gather_scatter import *
    from effax.lax.index import *
    from effax.lax.nearest import *
    from effax.lax.parallel import *
    from effax.lax.patches import *
    from effax.lax.placement import *
    from effax.lax.polynomials import *
    from effax.lax.precision import *
    from effax.lax.ragged import *
    from effax.lax.reduce import *
    from effax.lax.rng import *
    from effax.lax.shape import *
    from effax.lax.solvers import *
    from effax.lax.special import *
    from effax.lax.whiles import *
    from effax.lax.windows import *
else:
    __getattr__, __dir__ = _lazy(__name__)
