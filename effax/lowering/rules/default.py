"""The library's own lowering book: the families together."""

from __future__ import annotations

from typing import Final

from effax.lowering.ordering import ORDERING
from effax.lowering.rules.collective import COLLECTIVES
from effax.lowering.rules.control import CONTROL
from effax.lowering.rules.conv import CONVOLUTION
from effax.lowering.rules.custom import CUSTOM
from effax.lowering.rules.elementwise import ELEMENTWISE
from effax.lowering.rules.fft import FOURIER
from effax.lowering.rules.greatest import GREATEST
from effax.lowering.rules.host import HOST
from effax.lowering.rules.index import INDEX
from effax.lowering.rules.lapack import LAPACK
from effax.lowering.rules.linalg import LINALG
from effax.lowering.rules.reduce import REDUCE
from effax.lowering.rules.remat import REMAT
from effax.lowering.rules.shape import SHAPE
from effax.lowering.rules.shard import SHARD
from effax.lowering.tokens import TOKENS
from effax.lowering.writer import LoweringRules

DEFAULT: Final[LoweringRules] = (
    ELEMENTWISE.union(SHAPE)
    .union(REDUCE)
    .union(CONVOLUTION)
    .union(LINALG)
    .union(FOURIER)
    .union(INDEX)
    .union(CONTROL)
    .union(CUSTOM)
    .union(REMAT)
    .union(COLLECTIVES)
    .union(SHARD)
    .union(ORDERING)
    .union(HOST)
    .union(TOKENS)
)
"""Rules for modules that run on every platform."""

HOST_LIBRARIES: Final[LoweringRules] = DEFAULT.union(LAPACK).union(GREATEST)
"""Rules for modules that run in this process, on the host's processor: libraries are called."""
