"""The library's passes, as values; each is a function of :mod:`effax.transforms`."""

from __future__ import annotations

from typing import Final

from effax.ir.errors import BadArgument
from effax.passes.guarantees import EXACT, SIMPLIFIES, Guarantee
from effax.passes.pipeline import Fixpoint, Pass, fixpoint, pipeline
from effax.transforms.optimize.accumulate import accumulate as _accumulate
from effax.transforms.optimize.accumulate import fuse_accumulations as _fuse_accumulations
from effax.transforms.optimize.cse import cse as _cse
from effax.transforms.optimize.dce import dce as _dce
from effax.transforms.optimize.dead_stores import dead_stores as _dead_stores
from effax.transforms.optimize.fold import fold as _fold
from effax.transforms.optimize.forward_stores import forward_stores as _forward_stores
from effax.transforms.optimize.inline import inline as _inline
from effax.transforms.optimize.licm import hoist as _hoist
from effax.transforms.optimize.licm import loop_carries as _loop_carries
from effax.transforms.optimize.simplify import simplify as _simplify
from effax.transforms.optimize.unroll import unroll as _unroll

dce: Final = Pass("dce", lambda jaxpr: _dce(jaxpr).map(lambda made: made.jaxpr), EXACT)
cse: Final = Pass("cse", _cse, EXACT)
fold: Final = Pass("fold", _fold, EXACT)
inline: Final = Pass("inline", _inline, EXACT)
simplify: Final = Pass("simplify", _simplify, EXACT)
hoist: Final = Pass("hoist", _hoist, EXACT)
loop_carries: Final = Pass("loop_carries", _loop_carries, EXACT)
forward_stores: Final = Pass("forward_stores", _forward_stores, EXACT)
dead_stores: Final = Pass("dead_stores", _dead_stores, EXACT)
accumulate: Final = Pass("accumulate", _accumulate, EXACT)
fuse_accumulations: Final = Pass("fuse_accumulations", _fuse_accumulations, SIMPLIFIES)
unroll: Final = Pass("unroll", _unroll, EXACT)

ALL: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, Pass))
"""The passes above."""


def unroll_to(growth: int) -> Pass:
    """Return :data:`unroll` with a limit of ``growth`` additional equations for each loop.

    Raises:
        BadArgument: the growth is negative.
    """
    if growth < 0:
        raise BadArgument("the growth of unroll is negative", "at least 0", str(growth))
    return Pass(
        f"unroll_to({growth})",
        lambda jaxpr: _unroll(jaxpr, growth),
        (Guarantee.SAME_BITS,),
    )


optimize: Final[Fixpoint] = fixpoint(
    pipeline(
        inline,
        fold,
        simplify,
        cse,
        forward_stores,
        dead_stores,
        accumulate,
        loop_carries,
        hoist,
        unroll,
        dce,
    )
)
"""All passes that do not change rounding, repeated until a fixpoint."""
