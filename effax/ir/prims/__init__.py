"""All built-in primitives, and the types of their parameters.

Each is defined in the module of its family::

    from effax.ir.prims import Add, Mul, Sin
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.ir.prims.arith import *
    from effax.ir.prims.check import *
    from effax.ir.prims.collective import *
    from effax.ir.prims.common.operands import Binary as Binary
    from effax.ir.prims.common.operands import Elementwise as Elementwise
    from effax.ir.prims.common.operands import Nullary as Nullary
    from effax.ir.prims.common.operands import Unary as Unary
    from effax.ir.prims.compare import *
    from effax.ir.prims.cond import *
    from effax.ir.prims.contract import *
    from effax.ir.prims.conv import *
    from effax.ir.prims.convert import *
    from effax.ir.prims.custom import *
    from effax.ir.prims.fft import *
    from effax.ir.prims.host import *
    from effax.ir.prims.index import *
    from effax.ir.prims.jit import *
    from effax.ir.prims.keys import *
    from effax.ir.prims.linalg import *
    from effax.ir.prims.math import *
    from effax.ir.prims.reduce import *
    from effax.ir.prims.refs import *
    from effax.ir.prims.remat import *
    from effax.ir.prims.scan import *
    from effax.ir.prims.shape import *
    from effax.ir.prims.shard import *
    from effax.ir.prims.solve import *
    from effax.ir.prims.sort import *
    from effax.ir.prims.special import *
    from effax.ir.prims.while_ import *
else:
    __getattr__, __dir__ = _lazy(__name__)
