"""Lowering of reductions, cumulative operations, sort and contraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from effax.ir import prims as p
from effax.ir.dtypes import FLOAT32, INT32, DType, family, is_inexact_dtype
from effax.ir.errors import LoweringError
from effax.ir.primitive import Primitive
from effax.ir.prims.reduce import Cumulative, Reduction, greatest, lowest, without_axes
from effax.ir.prims.sort import ArgReduction
from effax.ir.syntax import Scalar
from effax.ir.types import ArrayType, array_type
from effax.lowering import ops
from effax.lowering.rules.elementwise import is_narrow
from effax.lowering.writer import NO_RULES, LoweringRules, Rule, Val, Writer


def zero(dtype: DType) -> Scalar:
    """The neutral element of addition."""
    return 0


def one(dtype: DType) -> Scalar:
    """The neutral element of multiplication."""
    return 1


def all_bits(dtype: DType) -> Scalar:
    """The neutral element of a bitwise and."""
    return -1 if family(dtype) == "int" else greatest(dtype)


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
    """The operand in the dtype in which it is accumulated."""
    return ops.convert(w, x, FLOAT32) if is_narrow(x.type.dtype) else x


def operation(name: str, dtype: DType) -> str:
    """The operation on elements of the dtype: max and min of booleans are logical."""
    if family(dtype) == "bool":
        return {"maximum": "or", "minimum": "and"}.get(name, name)
    return name


def combined(w: Writer, prim: type[Primitive], x: Val, axes: Sequence[int]) -> Val:
    """Reduce along axes, as ``prim`` combines."""
    name, neutral = COMBINATIONS[prim]
    start = w.constant(neutral(x.type.dtype), x.type.update(shape=()))
    return ops.reduce(w, operation(name, x.type.dtype), x, start, axes)


def reduction(w: Writer, prim: Reduction, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if not prim.axes:
        return (x,)
    return (ops.convert(w, combined(w, type(prim), widened(w, x), prim.axes), x.type.dtype),)


def arg_rule(extreme: type[Reduction]) -> Rule[ArgReduction]:
    """The rule of argmax or argmin.

    Two plain reductions, which are vectorised: the extreme element, which is nan where there is
    one, then the least index at which it stands.
    """

    def rule(w: Writer, prim: ArgReduction, ins: Sequence[Val]) -> Sequence[Val]:
        x = widened(w, ins[0])
        kept = [i for i in range(len(x.shape)) if i != prim.axis]
        found = ops.broadcast(w, combined(w, extreme, x, [prim.axis]), x.shape, kept)
        here = ops.compare(w, "EQ", x, found)
        if is_inexact_dtype(x.type.dtype):
            here = ops.same(w, "or", here, ops.compare(w, "NE", x, x))
        size = x.shape[prim.axis]
        counted = ops.iota(
            w, x.type.update(dtype=ops.index_dtype([], (size,)), weak=False), prim.axis
        )
        places = ops.select(w, here, counted, ops.full(w, size, counted))
        last = w.constant(size, counted.type.update(shape=()))
        first = ops.reduce(w, "minimum", places, last, [prim.axis])
        return (ops.convert(w, first, prim.index_dtype),)

    return rule


def cumulative(w: Writer, prim: Cumulative, ins: Sequence[Val]) -> Sequence[Val]:
    """One window that reaches from each element to the start (or the end) of the axis.

    XLA recognises this form and does it in a number of operations that is linear in the size.
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
    """log(exp(x) + exp(y)) of scalars."""
    high, low = ops.same(w, "maximum", x, y), ops.same(w, "minimum", x, y)
    gap = ops.same(w, "subtract", low, high)
    fine = ops.same(w, "log_plus_one", ops.same(w, "exponential", gap))
    # Equal infinities have no difference.
    infinite = ops.compare(w, "EQ", ops.same(w, "abs", high), ops.full(w, float("inf"), high))
    return ops.select(w, infinite, high, ops.same(w, "add", high, fine))


def sort(w: Writer, prim: p.Sort, ins: Sequence[Val]) -> Sequence[Val]:
    elements = [x.type.update(shape=()) for x in ins]

    def before(*pairs: Val) -> Sequence[Val]:
        keys = [(pairs[2 * k], pairs[2 * k + 1]) for k in range(prim.num_keys)]
        return (_lexicographic(w, keys),)

    body = w.region([t for t in elements for _ in range(2)], before)
    names = ", ".join([x.name for x in ins])
    types = [x.type for x in ins]
    text = (
        f'"stablehlo.sort"({names}) <{{dimension = {prim.dimension} : i64, is_stable = true}}> '
        f"({body}) : {ops.signature(ins, *types)}"
    )
    return w.op(text, *types)


def top_k(w: Writer, prim: p.TopK, ins: Sequence[Val]) -> Sequence[Val]:
    """What comes first in descending order; sorting is stable, so that equal elements stay."""
    (x,) = ins
    at = ops.iota(w, x.type.update(dtype=INT32, weak=False), prim.axis)
    elements = [v.type.update(shape=()) for v in (x, at)]
    body = w.region([t for t in elements for _ in range(2)], lambda a, b, *_: (_less(w, b, a),))
    text = (
        f'"stablehlo.sort"({x}, {at}) <{{dimension = {prim.axis} : i64, is_stable = true}}> '
        f"({body}) : {ops.signature([x, at], x.type, at.type)}"
    )
    starts = (0,) * len(x.shape)
    limits = tuple([prim.k if i == prim.axis else n for i, n in enumerate(x.shape)])
    strides = (1,) * len(x.shape)
    return [ops.slice_(w, v, starts, limits, strides) for v in w.op(text, x.type, at.type)]


def _lexicographic(w: Writer, keys: Sequence[tuple[Val, Val]]) -> Val:
    (a, b), *rest = keys
    less = _less(w, a, b)
    if not rest:
        return less
    later = ops.same(w, "and", _equal(w, a, b), _lexicographic(w, rest))
    return ops.same(w, "or", less, later)


def _is_nan(w: Writer, x: Val) -> Val:
    return ops.compare(w, "NE", x, x)


def _less(w: Writer, a: Val, b: Val) -> Val:
    """Whether ``a`` sorts before ``b``: nan is the greatest."""
    less = ops.compare(w, "LT", a, b)
    if not is_inexact_dtype(a.type.dtype):
        return less
    number = ops.compare(w, "EQ", a, a)
    return ops.same(w, "or", less, ops.same(w, "and", number, _is_nan(w, b)))


def _equal(w: Writer, a: Val, b: Val) -> Val:
    equal = ops.compare(w, "EQ", a, b)
    if not is_inexact_dtype(a.type.dtype):
        return equal
    return ops.same(w, "or", equal, ops.same(w, "and", _is_nan(w, a), _is_nan(w, b)))


PRECISIONS: Final = {"default": "DEFAULT", "high": "HIGH", "highest": "HIGHEST"}


def precision_of(name: str | None, what: str) -> str:
    """What StableHLO calls a precision. Raises LoweringError for an unknown one."""
    precision = PRECISIONS.get((name or "default").lower())
    if precision is None:
        raise LoweringError(
            f"{what} has an unknown precision", expected=", ".join(PRECISIONS), found=str(name)
        )
    return precision


def dot_general(w: Writer, prim: p.DotGeneral, ins: Sequence[Val]) -> Sequence[Val]:
    lhs, rhs = ins
    wanted = prim.preferred_element_type or lhs.type.dtype
    work, result = _dot_dtypes(lhs.type.dtype, wanted)
    lhs, rhs = ops.convert(w, lhs, work), ops.convert(w, rhs, work)
    (lc, rc), (lb, rb) = prim.dimension_numbers
    precision = precision_of(prim.precision, prim.name)
    batch = f"batching_dims = {ops.numbers(lb)} x {ops.numbers(rb)}, " if lb else ""
    type_ = _dot_type(prim, lhs.type, rhs.type, result)
    text = (
        f"stablehlo.dot_general {lhs}, {rhs}, {batch}contracting_dims = {ops.numbers(lc)} x "
        f"{ops.numbers(rc)}, precision = [{precision}, {precision}] : "
        f"{ops.signature([lhs, rhs], type_)}"
    )
    return (ops.convert(w, w.op1(text, type_), wanted),)


def _dot_type(prim: p.DotGeneral, lhs: ArrayType, rhs: ArrayType, dtype: DType) -> ArrayType:
    (lc, rc), (lb, rb) = prim.dimension_numbers
    batch = tuple([lhs.shape[a] for a in lb])
    kept = (without_axes(lhs.shape, (*lc, *lb)), without_axes(rhs.shape, (*rc, *rb)))
    return array_type((*batch, *kept[0], *kept[1]), dtype)


def _dot_dtypes(operand: DType, wanted: DType) -> tuple[DType, DType]:
    """The dtypes of the operands and of the result of the operation that XLA gets."""
    if family(operand) == "bool":
        # Booleans: "and" of pairs, then "or". Counting is as good, and every backend counts.
        return (INT32, INT32) if family(wanted) == "bool" else (wanted, wanted)
    if is_narrow(operand):
        return operand, operand if wanted == operand else FLOAT32
    if family(operand) == family(wanted) != "float" and operand.itemsize <= wanted.itemsize:
        return operand, wanted
    both = np.promote_types(operand, wanted)
    return both, both


def _rules() -> LoweringRules:
    rules = NO_RULES
    for prim in (p.ReduceSum, p.ReduceProd, p.ReduceMax, p.ReduceMin, p.ReduceAnd, p.ReduceOr):
        rules = rules.extend(prim, reduction)
    for run in (p.CumSum, p.CumProd, p.CumMax, p.CumMin, p.CumLogSumExp):
        rules = rules.extend(run, cumulative)
    return (
        rules.extend(p.Argmax, arg_rule(p.ReduceMax))
        .extend(p.Argmin, arg_rule(p.ReduceMin))
        .extend(p.Sort, sort)
        .extend(p.TopK, top_k)
        .extend(p.DotGeneral, dot_general)
    )


REDUCE: Final = _rules()
