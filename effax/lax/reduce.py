"""Primitives that combine elements, by JAX's names: reductions, sorts, contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import counted_axis, plain_axes, plain_axis, static_int
from effax.arrays.binding import bind, bind1
from effax.arrays.complex_order import compared, extreme, position
from effax.arrays.config import allowed, config
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.shared_docs import shared_docs
from effax.ir import prims
from effax.ir.dtypes import DType, is_complex, promote
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import DotDimensionNumbers
from effax.ir.prims.reduce import Cumulative, Reduction
from effax.lax.associative import associative_scan
from effax.lax.precision import plain_precision

__all__ = [
    "argmax", "argmin", "batch_matmul", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum",
    "dot", "dot_general", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_sum", "sort", "sort_key_val", "top_k",
]  # fmt: skip


_OPERANDS: Final = {
    "operand": "array or scalar.",
    "axes": "axes to reduce.",
    "axis": "axis to accumulate along.",
    "reverse": "whether to start from the end.",
    "lhs": "left operand.",
    "rhs": "right operand.",
    "precision": 'precision of the products: None, "high", "highest" or a ``lax.Precision``.',
    "out_sharding": "sharding of the result.",
    "preferred_element_type": "dtype in which products accumulate, and of the result.",
}
"""Descriptions of the parameters that functions share."""


def _reduced(
    prim: type[Reduction], operand: ArrayLike, axes: Sequence[int], out_sharding: object = None
) -> Array:
    x = as_value(operand, "the operand of a reduction")
    places = plain_axes(tuple(axes), x.ndim, prim.name)
    if prim in (prims.ReduceMax, prims.ReduceMin):
        made = extreme(x, places, prim is prims.ReduceMax)
    else:
        made = bind1(prim(places), x)
    return on_device(made, out_sharding, prim.name)


@shared_docs(_OPERANDS, "Array of the dtype of ``operand``, without ``axes``.")
def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Return the sum of the elements along ``axes``.

    >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    return _reduced(prims.ReduceSum, operand, axes, out_sharding)


@shared_docs(_OPERANDS, "Array of the dtype of ``operand``, without ``axes``.")
def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the product of the elements along ``axes``.

    >>> lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([3, 8], dtype=int32)
    """
    return _reduced(prims.ReduceProd, operand, axes)


@shared_docs(_OPERANDS, "Array of the dtype of ``operand``, without ``axes``.")
def reduce_max(operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Return the largest element along ``axes``.

    >>> lax.reduce_max(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([3, 4], dtype=int32)
    """
    return _reduced(prims.ReduceMax, operand, axes, out_sharding)


@shared_docs(_OPERANDS, "Array of the dtype of ``operand``, without ``axes``.")
def reduce_min(operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Return the smallest element along ``axes``.

    >>> lax.reduce_min(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return _reduced(prims.ReduceMin, operand, axes, out_sharding)


@shared_docs(_OPERANDS, "Array of the dtype of ``operand``, without ``axes``.")
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the bitwise and of integers, logical and of booleans, along ``axes``.

    >>> lax.reduce_and(jnp.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return _reduced(prims.ReduceAnd, operand, axes)


@shared_docs(_OPERANDS, "Array of the dtype of ``operand``, without ``axes``.")
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the bitwise or of integers, logical or of booleans, along ``axes``.

    >>> lax.reduce_or(jnp.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return _reduced(prims.ReduceOr, operand, axes)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the first largest element along ``axis``.

    Args:
        operand: array or scalar.
        axis: axis to reduce.
        index_dtype: integer dtype of the result.

    Returns:
        Array without ``axis``.

    >>> lax.argmax(jnp.array([1, 5, 3]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    x = as_value(operand, "the operand of argmax")
    return position(x, counted_axis(axis, x.ndim, "argmax"), True, allowed(index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the first smallest element along ``axis``.

    Args:
        operand: array or scalar.
        axis: axis to reduce.
        index_dtype: integer dtype of the result.

    Returns:
        Array without ``axis``.

    >>> lax.argmin(jnp.array([4, 1, 3]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    x = as_value(operand, "the operand of argmin")
    return position(x, counted_axis(axis, x.ndim, "argmin"), False, allowed(index_dtype))


def _cumulative(prim: type[Cumulative], operand: ArrayLike, axis: int, reverse: bool) -> Array:
    x = as_value(operand, f"the operand of {prim.name}")
    place = plain_axis(axis, x.ndim, prim.name)
    if is_complex(x.dtype) and prim in (prims.CumMax, prims.CumMin):
        of_two = prims.Max() if prim is prims.CumMax else prims.Min()
        return associative_scan(lambda a, b: compared(of_two, a, b), x, reverse, place)
    return bind1(prim(place, reverse), x)


@shared_docs(_OPERANDS, "Array of the shape and dtype of ``operand``.")
def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the cumulative sum along ``axis``.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumulative(prims.CumSum, operand, axis, reverse)


@shared_docs(_OPERANDS, "Array of the shape and dtype of ``operand``.")
def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the cumulative product along ``axis``.

    >>> lax.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative(prims.CumProd, operand, axis, reverse)


@shared_docs(_OPERANDS, "Array of the shape and dtype of ``operand``.")
def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the cumulative maximum along ``axis``.

    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _cumulative(prims.CumMax, operand, axis, reverse)


@shared_docs(_OPERANDS, "Array of the shape and dtype of ``operand``.")
def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the cumulative minimum along ``axis``.

    >>> lax.cummin(jnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return _cumulative(prims.CumMin, operand, axis, reverse)


@shared_docs(_OPERANDS, "Array of the shape and dtype of ``operand``.")
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the cumulative ``log(sum(exp(x)))`` along ``axis``, for floats.

    >>> lax.cumlogsumexp(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return _cumulative(prims.CumLogSumExp, operand, axis, reverse)


def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array | tuple[Array, ...]:
    """Return the operand, or several operands together, sorted along an axis.

    Args:
        operand: array, or sequence of arrays of one shape.
        dimension: axis to sort along.
        is_stable: ignored; the sort is always stable.
        num_keys: number of leading operands to sort by, lexicographically.

    Returns:
        Array, or tuple of arrays for a sequence.

    Raises:
        BadArgument: there are no operands.

    >>> lax.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    several = isinstance(operand, Sequence)
    given = operand if isinstance(operand, Sequence) else [operand]
    values = [as_value(x, f"operand {i} of sort") for i, x in enumerate(given)]
    if not values:
        raise BadArgument("sort takes at least one operand", "at least one operand", "none")
    axis = plain_axis(dimension, values[0].ndim, "sort")
    found = _sorted(values, axis, num_keys)
    return tuple(found) if several else found[0]


def _sorted(values: Sequence[Array], axis: int, num_keys: int) -> list[Array]:
    """Sort; a complex key is two keys: its real part, then its imaginary part."""
    if not any(is_complex(x.dtype) for x in values[:num_keys]):
        return cast("list[Array]", bind(prims.Sort(axis, num_keys), *values))
    parts: list[Array] = []
    for x in values[:num_keys]:
        split = is_complex(x.dtype)
        parts += [bind1(prims.Real(), x), bind1(prims.Imag(), x)] if split else [x]
    found = cast("list[Array]", bind(prims.Sort(axis, len(parts)), *parts, *values))
    return found[len(parts) :]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Return the keys sorted along an axis, and the values in the same order.

    Args:
        keys: array to sort by.
        values: array of the same shape.
        dimension: axis to sort along.
        is_stable: ignored; the sort is always stable.

    Returns:
        Pair of arrays.

    >>> lax.sort_key_val(jnp.array([3, 1]), jnp.array([30, 10]))
    (Array([1, 3], dtype=int32), Array([10, 30], dtype=int32))
    """
    k, v = cast("tuple[Array, Array]", sort((keys, values), dimension, is_stable))
    return k, v


def top_k(
    operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Return the ``k`` largest elements along ``axis`` in descending order, and their indices.

    nan counts as largest, and of equal elements the first comes first.

    Args:
        operand: array or scalar.
        k: number of elements.
        axis: axis to select along.
        is_stable: ignored; of equal elements the first comes first.

    Returns:
        Pair of arrays with size ``k`` along ``axis``; indices are int32.

    Raises:
        BadArgument: ``k`` is out of range.

    >>> lax.top_k(jnp.array([1, 5, 3]), 2)
    (Array([5, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x = as_value(operand, "the operand of top_k")
    place = plain_axis(axis, x.ndim, "top_k")
    size = x.shape[place]
    if not 0 <= static_int(k, "k of top_k") <= size:
        raise BadArgument("`k` of top_k is out of range", f"k from 0 to {size}", str(k))
    values, positions = cast("list[Array]", bind(prims.TopK(k, place), x))
    return values, positions


@shared_docs(
    _OPERANDS,
    "Array of the batch axes, the remaining axes of ``lhs``, then those of ``rhs``.",
    dimension_numbers="((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)).",
)
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Contract two arrays, as StableHLO's ``dot_general``.

    Raises:
        IllTyped: sizes or dtypes do not fit.

    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
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
    if a.dtype != b.dtype:
        dtype = _dtype_of_product(a.dtype, b.dtype, wanted)
        a, b = pr.converted(a, dtype, False), pr.converted(b, dtype, False)
    made = bind1(prims.DotGeneral(numbers, wanted, plain_precision(precision)), a, b)
    return on_device(made, out_sharding, "dot_general")


def _dtype_of_product(x: DType, y: DType, wanted: DType | None) -> DType:
    """Return the dtype in which operands of different dtypes are multiplied. Raises IllTyped."""
    try:
        return promote([(x, False), (y, False)], config.enable_x64)[0]
    except TypeError as error:
        if wanted is not None:
            return wanted
        raise IllTyped(
            f"dot_general: {error}",
            found=f"{x}, {y}",
            remedy="pass `preferred_element_type`, in which they are multiplied",
        ) from None


@shared_docs(
    _OPERANDS,
    "Array of the remaining axes.",
    dimension_numbers="as in :func:`dot_general`; last axis with first by default.",
)
def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Return the product of vectors or matrices, or the contraction by ``dimension_numbers``.

    Raises:
        IllTyped: sizes, dtypes or ranks do not fit.

    >>> lax.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    a, b = as_value(lhs, "the left operand of dot"), as_value(rhs, "the right operand of dot")
    if dimension_numbers is None:
        if not (a.ndim in (1, 2) and b.ndim in (1, 2)):
            raise IllTyped("dot takes vectors and matrices", "1 or 2 axes", f"{a.type}, {b.type}")
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    made = dot_general(a, b, dimension_numbers, precision, preferred_element_type)
    return on_device(made, out_sharding, "dot")


@shared_docs(_OPERANDS, "Array of shape (..., n, m).")
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: object = None) -> Array:
    """Return the matrix product over the last two axes; all others are batch axes.

    Raises:
        IllTyped: ranks differ or are below 2, or sizes do not fit.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    a, b = as_value(lhs, "the left operand"), as_value(rhs, "the right operand")
    if a.ndim < 2 or a.ndim != b.ndim:
        raise IllTyped(
            "batch_matmul takes matrices", "equal ranks of at least 2", f"{a.type}, {b.type}"
        )
    batch = tuple(range(a.ndim - 2))
    return dot_general(a, b, (((a.ndim - 1,), (a.ndim - 2,)), (batch, batch)), precision)
