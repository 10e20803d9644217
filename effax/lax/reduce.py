"""Primitives that combine elements, under JAX's names: reductions, sorts, contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from effax.arrays.binding import bind, bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DTypeLike, as_value
from effax.ir import prims
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import DotDimensionNumbers
from effax.ir.prims.reduce import Cumulative, Reduction
from effax.numpy.axes import plain_axes, plain_axis, static_int
from effax.numpy.products import plain_precision

__all__ = [
    "argmax", "argmin", "batch_matmul", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum",
    "dot", "dot_general", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_sum", "sort", "sort_key_val", "top_k",
]  # fmt: skip


def _reduced(prim: type[Reduction], operand: ArrayLike, axes: Sequence[int]) -> Array:
    x = as_value(operand, "the operand of a reduction")
    return bind1(prim(plain_axes(tuple(axes), x.ndim, prim.name)), x)


def reduce_sum(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The sum along axes."""
    return _reduced(prims.ReduceSum, operand, axes)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product along axes."""
    return _reduced(prims.ReduceProd, operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The greatest element along axes."""
    return _reduced(prims.ReduceMax, operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The least element along axes."""
    return _reduced(prims.ReduceMin, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """``all`` of booleans, bitwise and of integers."""
    return _reduced(prims.ReduceAnd, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """``any`` of booleans, bitwise or of integers."""
    return _reduced(prims.ReduceOr, operand, axes)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the first greatest element along an axis."""
    x = as_value(operand, "the operand of argmax")
    return bind1(prims.Argmax(plain_axis(axis, x.ndim, "argmax"), allowed(index_dtype)), x)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the first least element along an axis."""
    x = as_value(operand, "the operand of argmin")
    return bind1(prims.Argmin(plain_axis(axis, x.ndim, "argmin"), allowed(index_dtype)), x)


def _cumulative(prim: type[Cumulative], operand: ArrayLike, axis: int, reverse: bool) -> Array:
    x = as_value(operand, f"the operand of {prim.name}")
    return bind1(prim(plain_axis(axis, x.ndim, prim.name), reverse), x)


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running sums."""
    return _cumulative(prims.CumSum, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running products."""
    return _cumulative(prims.CumProd, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running greatest elements."""
    return _cumulative(prims.CumMax, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running least elements."""
    return _cumulative(prims.CumMin, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running logarithms of sums of exponentials, of floats."""
    return _cumulative(prims.CumLogSumExp, operand, axis, reverse)


def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array | tuple[Array, ...]:
    """The operand in order along an axis; several are ordered by the first ``num_keys``."""
    several = isinstance(operand, Sequence)
    given = operand if isinstance(operand, Sequence) else [operand]
    values = [as_value(x, f"operand {i} of sort") for i, x in enumerate(given)]
    if not values:
        raise BadArgument("sort of nothing", "at least one operand", "none")
    axis = plain_axis(dimension, values[0].ndim, "sort")
    found = cast("list[Array]", bind(prims.Sort(axis, num_keys), *values))
    return tuple(found) if several else found[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """The keys in order along an axis, and the values in the same order."""
    k, v = cast("tuple[Array, Array]", sort((keys, values), dimension, is_stable))
    return k, v


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The ``k`` greatest elements along an axis, in descending order, and their positions.

    nan is the greatest, and of equal elements the first comes first.
    """
    x = as_value(operand, "the operand of top_k")
    place = plain_axis(axis, x.ndim, "top_k")
    size = x.shape[place]
    if not 0 <= static_int(k, "k of top_k") <= size:
        raise BadArgument("top_k takes elements that there are", f"k from 0 to {size}", str(k))
    values, positions = cast("list[Array]", bind(prims.TopK(k, place), x))
    return values, positions


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Contraction by ``((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))``.

    Result axes: batch axes, what is left of the left operand, what is left of the right one.
    """
    a, b = as_value(lhs, "the left operand"), as_value(rhs, "the right operand")
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = (
        (
            plain_axes(tuple(lc), a.ndim, "dot_general"),
            plain_axes(tuple(rc), b.ndim, "dot_general"),
        ),
        (
            plain_axes(tuple(lb), a.ndim, "dot_general"),
            plain_axes(tuple(rb), b.ndim, "dot_general"),
        ),
    )
    wanted = None if preferred_element_type is None else allowed(preferred_element_type)
    return bind1(prims.DotGeneral(numbers, wanted, plain_precision(precision)), a, b)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of vectors or matrices, or the contraction that ``dimension_numbers`` names."""
    a, b = as_value(lhs, "the left operand of dot"), as_value(rhs, "the right operand of dot")
    if dimension_numbers is None:
        if not (a.ndim in (1, 2) and b.ndim in (1, 2)):
            raise IllTyped("dot takes vectors and matrices", "1 or 2 axes", f"{a.type}, {b.type}")
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return dot_general(a, b, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: object = None) -> Array:
    """The matrix product of the last two axes; all others are batch axes."""
    a, b = as_value(lhs, "the left operand"), as_value(rhs, "the right operand")
    if a.ndim < 2 or a.ndim != b.ndim:
        raise IllTyped(
            "batch_matmul takes matrices", "equal ranks of at least 2", f"{a.type}, {b.type}"
        )
    batch = tuple(range(a.ndim - 2))
    return dot_general(a, b, (((a.ndim - 1,), (a.ndim - 2,)), (batch, batch)), precision)
