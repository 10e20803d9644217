"""Lowering of special functions: their formulas, written as operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np

from effax.ir import prims as p
from effax.ir.dtypes import BOOL, FLOAT32, INT32
from effax.ir.prims.common.special.reals import RealOperations, RealValue
from effax.ir.prims.special import Formula
from effax.ir.types import array_type
from effax.lowering import ops
from effax.lowering.rules.common.pointwise import aligned, is_narrow
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


class WrittenOperations(RealOperations):
    """Operations that are written."""

    def __init__(self, w: Writer) -> None:
        self.w = w

    def apply(self, name: str, *xs: object) -> object:
        return ops.same(self.w, name, *map(_val, xs))

    def compare(self, direction: str, x: object, y: object) -> object:
        return ops.compare(self.w, direction, _val(x), _val(y))

    def select(self, which: object, yes: object, no: object) -> object:
        return ops.select(self.w, _val(which), _val(yes), _val(no))

    def number(self, value: float, like: object) -> object:
        return ops.full(self.w, value, _val(like))

    def loop(
        self,
        state: Sequence[object],
        again: Callable[..., object],
        step: Callable[..., Sequence[object]],
        bound: int,
    ) -> Sequence[object]:
        w = self.w
        first = w.constant(0, array_type((), INT32))

        def more(k: Val, *xs: Val) -> Sequence[Val]:
            mask = _val(again(*xs))
            none = w.constant(False, array_type((), BOOL))
            some = ops.reduce(w, "or", mask, none, range(len(mask.shape))) if mask.shape else mask
            below = ops.compare(w, "LT", k, ops.full(w, bound, k))
            return (ops.same(w, "and", some, below),)

        def onward(k: Val, *xs: Val) -> Sequence[Val]:
            return (ops.same(w, "add", k, ops.full(w, 1, k)), *map(_val, step(*xs)))

        return ops.while_(w, [first, *map(_val, state)], more, onward)[1:]

    def epsilon(self, x: object) -> float:
        return float(np.finfo(cast("np.dtype[np.float64]", _val(x).type.dtype)).eps)


def _val(x: object) -> Val:
    return cast(Val, x)


def written(w: Writer, prim: Formula, ins: Sequence[Val]) -> Sequence[Val]:
    xs = aligned(w, ins)
    dtype = xs[0].type.dtype
    if is_narrow(dtype):
        xs = [ops.convert(w, x, FLOAT32) for x in xs]
    arithmetic = WrittenOperations(w)
    found = type(prim).formula(*[RealValue(arithmetic, x) for x in xs])
    return (ops.convert(w, _val(found.value), dtype),)


def _rules() -> LoweringRules:
    rules = NO_RULES
    for prim in (
        *(p.Lgamma, p.Digamma, p.Polygamma, p.Zeta, p.ZetaGradX, p.BesselI0e, p.BesselI1e),
        *(p.Igamma, p.Igammac, p.IgammaGradA, p.RandomGammaGrad),
        *(p.RegularizedIncompleteBeta, p.RegularizedIncompleteBetaGradA),
        p.RegularizedIncompleteBetaGradB,
    ):
        rules = rules.extend(prim, written)
    return rules


RULES: Final[LoweringRules] = _rules()
