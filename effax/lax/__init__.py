"""Primitives under JAX's names, and control flow.

Unlike ``effax.numpy``, functions here do not promote: operands must agree in dtype. A function
applies the primitive of its name, or a few.
"""

from __future__ import annotations

from effax.ir.prims.reduce import DotDimensionNumbers as DotDimensionNumbers
from effax.lax.associative import associative_scan as associative_scan
from effax.lax.branches import cond as cond
from effax.lax.branches import switch as switch
from effax.lax.control import map as map
from effax.lax.control import scan as scan
from effax.lax.convolution import *  # noqa: F403
from effax.lax.elementwise import *  # noqa: F403
from effax.lax.foreach import foreach as foreach
from effax.lax.index import *  # noqa: F403
from effax.lax.parallel import *  # noqa: F403
from effax.lax.reduce import *  # noqa: F403
from effax.lax.shape import *  # noqa: F403
from effax.lax.solvers import custom_linear_solve as custom_linear_solve
from effax.lax.solvers import custom_root as custom_root
from effax.lax.special import *  # noqa: F403
from effax.lax.whiles import fori_loop as fori_loop
from effax.lax.whiles import while_loop as while_loop
from effax.lax.windows import *  # noqa: F403
from effax.numpy.products import Precision as Precision
