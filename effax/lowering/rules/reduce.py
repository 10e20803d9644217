"""Lowering of reductions and cumulative operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import FLOAT32, DType, family
from effax.ir.primitive import Primitive
from effax.ir.prims.reduce import Cumulative, Reduction, all_bits, greatest, lowest
from effax.ir.syntax import Scalar
from effax.lowering import ops
from effax.lowering.rules.common.pointwise import is_narrow
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def zero(dtype: DType) -> Scalar:
    """Return the neutral element of addition."""
    return 0


def one(dtype: DType) -> Scalar:
    """Return the neutral element of multiplication."""
    return 1


COMBINATIONS: Final[dict[type[Primitive], tuple[str, Callable[[DType], Scalar]]]] = {
    p.ReduceSum: ("add", zero),
    p.ReduceProd: ("multiply", one),
    p.ReduceMax: ("maximum", lowest),
    p.ReduceMin: ("minimum", greatest),
    p.ReduceAnd: ("and", all_bits),
    p.ReduceOr: ("or", zero),
    p.CumSum: ("add", zero),
    p.CumProd: ("multiply", one),
    p.CumMax: ("maximum", lowest),
    p.CumMin: ("minimum", greatest),
    p.CumLogSumExp: ("log_sum", lowest),
}
"""The operation that combines two elements, and its neutral element."""


def widened(w: Writer, x: Val) -> Val:
    """Return the operand in the dtype in which it is accumulated."""
    return ops.convert(w, x, FLOAT32) if is_narrow(x.type.dtype) else x


def operation(name: str, dtype: DType) -> str:
    """Return the operation on elements of the dtype: max and min of booleans are logical."""
    if family(dtype) == "bool":
        return {"maximum": "or", "minimum": "and"}.get(name, name)
    return name


def combined(
    w: Writer, prim: type[Primitive], x: Val, axes: Sequence[int], dtype: DType | None = None
) -> Val:
    """Reduce along axes by the operation of ``prim``; from its neutral element in ``dtype``.

    The neutral element of a widened operand is that of its own dtype, which may have no infinity.
    """
    name, neutral = COMBINATIONS[prim]
    start = w.constant(neutral(dtype or x.type.dtype), x.type.update(shape=()))
    return ops.reduce(w, operation(name, x.type.dtype), x, start, axes)


def reduction(w: Writer, prim: Reduction, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if not prim.axes:
        return (x,)
    dtype = x.type.dtype
    found = combined(w, type(prim), widened(w, x), prim.axes, dtype)
    return (ops.convert(w, found, dtype),)


def cumulative(w: Writer, prim: Cumulative, ins: Sequence[Val]) -> Sequence[Val]:
    """Reduce a window from each element to the start (or the end) of the axis.

    XLA recognizes this form, and computes it in time linear in the size.
    """
    (operand,) = ins
    if operand.type.size == 0:
        return (operand,)
    x = widened(w, operand)
    name, neutral = COMBINATIONS[type(prim)]
    element = x.type.update(shape=())
    start = w.constant(neutral(x.type.dtype), element)
    combine = partial(log_sum, w) if name == "log_sum" else partial(ops.same, w, name)
    body = w.region([element, element], lambda a, b: (combine(a, b),))
    n, ndim = x.shape[prim.axis], len(x.shape)
    window = [n if i == prim.axis else 1 for i in range(ndim)]
    reach = [0, n - 1] if prim.reverse else [n - 1, 0]
    padding = ", ".join([str(reach if i == prim.axis else [0, 0]) for i in range(ndim)])
    text = (
        f'"stablehlo.reduce_window"({x}, {start}) <{{padding = dense<[{padding}]> : '
        f"tensor<{ndim}x2xi64>, window_dimensions = {ops.array(window)}}}> ({body}) : "
        f"{ops.signature([x, start], x.type)}"
    )
    return (ops.convert(w, w.op1(text, x.type), operand.type.dtype),)


def log_sum(w: Writer, x: Val, y: Val) -> Val:
    """Return log(exp(x) + exp(y)) of scalars: max + log1p(exp(min - max))."""
    high, low = ops.same(w, "maximum", x, y), ops.same(w, "minimum", x, y)
    gap = ops.same(w, "subtract", low, high)
    fine = ops.same(w, "log_plus_one", ops.same(w, "exponential", gap))
    # The difference of equal infinities is nan.
    infinite = ops.compare(w, "EQ", ops.same(w, "abs", high), ops.full(w, float("inf"), high))
    return ops.select(w, infinite, high, ops.same(w, "add", high, fine))


def _rules() -> LoweringRules:
    rules = NO_RULES
    for prim in (p.ReduceSum, p.ReduceProd, p.ReduceMax, p.ReduceMin, p.ReduceAnd, p.ReduceOr):
        rules = rules.extend(prim, reduction)
    for scan in (p.CumSum, p.CumProd, p.CumMax, p.CumMin, p.CumLogSumExp):
        rules = rules.extend(scan, cumulative)
    return rules


RULES: Final[LoweringRules] = _rules()
