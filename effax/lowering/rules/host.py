"""Lowering of pure calls of Python functions.

Those that act on the world outside need no rule: ``Writer.in_order`` calls their evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims.host import PureCallback
from effax.lowering.writer import EMPTY_BOOK, Val, Writer


def pure(w: Writer, prim: PureCallback, ins: Sequence[Val]) -> Sequence[Val]:
    return w.host_call(prim.evaluate, ins, prim.result_avals)


HOST: Final = EMPTY_BOOK.extend(PureCallback, pure)
