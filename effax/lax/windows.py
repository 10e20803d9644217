"""Reductions of axes and of windows by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeVar, overload

from effax import tree
from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes, plain_shape
from effax.arrays.conversion import as_value
from effax.arrays.joining import concatenate, stack
from effax.arrays.operators import ops
from effax.arrays.promotion import promoted
from effax.ir.errors import BadArgument, IllTyped
from effax.lax import elementwise as el
from effax.lax.convolution import padtype_to_pads
from effax.lax.reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
)
from effax.lax.shape import pad, slice_
from effax.tree import PyTree

__all__ = [
    "reduce", "reduce_window", "reduce_xor",
]  # fmt: skip

T = TypeVar("T")

Computation = Callable[[PyTree, PyTree], PyTree]
"""A function of two elements, or of two trees of them."""

_OWN: dict[Computation, Callable[[ArrayLike, Sequence[int]], Array]] = {
    el.add: reduce_sum,
    el.mul: reduce_prod,
    el.max: reduce_max,
    el.min: reduce_min,
    el.bitwise_and: reduce_and,
    el.bitwise_or: reduce_or,
}
"""Functions with a primitive reduction."""


@overload
def reduce(
    operands: ArrayLike,
    init_values: ArrayLike,
    computation: Callable[[Array, Array], Array],
    dimensions: Sequence[int],
) -> Array: ...
@overload
def reduce(
    operands: T, init_values: T, computation: Callable[[T, T], T], dimensions: Sequence[int]
) -> T: ...
def reduce(
    operands: object, init_values: object, computation: Computation, dimensions: Sequence[int]
) -> PyTree:
    """Combine the elements along axes by an associative function, adjacent ones first.

    Args:
        operands: array, or tree of arrays of one shape.
        init_values: tree of scalars, combined once with each result.
        computation: associative function of two elements, or of two trees of them.
        dimensions: axes to reduce.

    Returns:
        Tree of arrays without ``dimensions``.

    Raises:
        IllTyped: shapes differ, initial values are missing, or results or they have other dtypes.

    >>> lax.reduce(jnp.array([1, 2, 3]), 0, lax.add, (0,))
    Array(6, dtype=int32)
    """
    xs, start, treedef = _operands(operands, init_values, "reduce")
    axes = plain_axes(tuple(dimensions), xs[0].ndim, "reduce")
    own = _own(computation) if len(xs) == 1 else None
    if own is not None:
        return tree.unflatten(treedef, [computation(own(xs[0], axes), start[0])])
    kept = [n for i, n in enumerate(xs[0].shape) if i not in axes]
    rows = [
        sh.reshape(sh.moveaxis(x, axes, range(len(axes))), (-1, *kept)) if x.size else x for x in xs
    ]
    start = [sh.broadcast_to(v, kept) for v in start]
    if 0 in xs[0].shape:
        return tree.unflatten(treedef, start)

    def combine(left: list[Array], right: list[Array]) -> list[Array]:
        made = computation(tree.unflatten(treedef, left), tree.unflatten(treedef, right))
        results, structure = tree.flatten(made)
        if structure != treedef:
            raise IllTyped(
                "the computation of reduce returns another tree than its operands",
                expected=str(treedef),
                found=str(structure),
            )
        what = "the result of the computation of reduce"
        return [promoted(a, x.dtype, what) for a, x in zip(results, xs, strict=True)]

    return tree.unflatten(treedef, combine(start, combined_rows(rows, combine)))


def _operands(
    operands: object, init_values: object, what: str
) -> tuple[list[Array], list[Array], tree.PyTreeDef]:
    """Return the arrays, their initial values, and the structure of both."""
    leaves, treedef = tree.flatten(operands)
    xs = [as_value(x, f"operand {i} of {what}") for i, x in enumerate(leaves)]
    inits = [as_value(x, f"initial value {i}") for i, x in enumerate(tree.leaves(init_values))]
    if not xs or len(inits) != len(xs) or any(x.shape != xs[0].shape for x in xs):
        raise IllTyped(
            f"{what} takes arrays of one shape, and an initial value for each",
            expected="equal shapes",
            found=", ".join(str(x.type) for x in (*xs, *inits)),
        )
    if tree.structure(init_values) != treedef:
        raise IllTyped(
            f"{what} takes an initial value for each operand, in the same tree",
            expected=str(treedef),
            found=str(tree.structure(init_values)),
        )
    return xs, [_init(v, x, what) for v, x in zip(inits, xs, strict=True)], treedef


def _own(computation: Computation) -> Callable[[ArrayLike, Sequence[int]], Array] | None:
    # The functions of numpy, which is built on this package, are known when they are installed.
    if computation is ops.maximum:
        return reduce_max
    if computation is ops.minimum:
        return reduce_min
    try:
        return _OWN.get(computation)
    except TypeError:
        return None


def _init(value: ArrayLike, x: Array, what: str) -> Array:
    return promoted(value, x.dtype, f"the initial value of {what}")


def combined_rows(
    rows: list[Array], combine: Callable[[list[Array], list[Array]], list[Array]]
) -> list[Array]:
    """Return the combination of the rows of arrays, of adjacent pairs in log2(n) steps."""
    n = rows[0].shape[0]
    while n > 1:
        half = n // 2
        left, right = (
            [slice_(x, (k, *_zeros(x)), (2 * half, *x.shape[1:]), (2, *_ones(x))) for x in rows]
            for k in (0, 1)
        )
        made = combine(left, right)
        if n % 2:
            made = [
                concatenate([a, slice_(x, (n - 1, *_zeros(x)), x.shape)])
                for a, x in zip(made, rows, strict=True)
            ]
        rows, n = made, half + n % 2
    return [sh.squeeze(x, 0) for x in rows]


def _zeros(x: Array) -> tuple[int, ...]:
    return (0,) * (x.ndim - 1)


def _ones(x: Array) -> tuple[int, ...]:
    return (1,) * (x.ndim - 1)


Padding = str | Sequence[tuple[int, int]]


@overload
def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Callable[[Array, Array], Array],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array: ...
@overload
def reduce_window(
    operand: T,
    init_value: object,
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> T: ...
def reduce_window(
    operand: object,
    init_value: object,
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> PyTree:
    """Combine the elements of each window by an associative function.

    Args:
        operand: array, or tree of arrays of one shape.
        init_value: tree of scalars, combined once with each result; the padding.
        computation: associative function of two elements, such as ``lax.add`` or ``lax.max``, or
            of two trees of them.
        window_dimensions: sizes of the windows.
        window_strides: distance of the windows, 1 by default.
        padding: (low, high) per axis, or "SAME", "SAME_LOWER" or "VALID".
        base_dilation: distance of adjacent elements of the operand, 1 by default.
        window_dilation: distance of the elements of a window, 1 by default.

    Returns:
        Tree of arrays of the rank and dtypes of ``operand``, one element per window.

    Raises:
        IllTyped: shapes differ, initial values are missing, or results or they have other dtypes.
        BadArgument: there is not one positive number per axis, or an unknown padding.

    >>> lax.reduce_window(jnp.array([1, 2, 3]), 0, lax.add, (2,))
    Array([3, 5], dtype=int32)
    """
    xs, values, treedef = _operands(operand, init_value, "reduce_window")
    ndim = xs[0].ndim
    ones = (1,) * ndim
    window, strides, apart, steps = (
        ones if given is None else plain_shape(given, "reduce_window")
        for given in (window_dimensions, window_strides, base_dilation, window_dilation)
    )
    numbers = (window, strides, apart, steps)
    if any(len(given) != ndim or min(given, default=1) < 1 for given in numbers):
        raise BadArgument(
            "reduce_window takes one positive size and step per axis",
            f"{ndim} each",
            str(numbers),
        )
    spread = [(k - 1) * s + 1 for k, s in zip(window, steps, strict=True)]
    if isinstance(padding, str):
        # As in JAX, the number of windows is that of the operand without holes.
        padding = padtype_to_pads(xs[0].shape, spread, strides, padding)
    config = [(low, high, a - 1) for (low, high), a in zip(padding, apart, strict=True)]
    xs = [pad(x, value, config) for x, value in zip(xs, values, strict=True)]
    counts = [
        max(0, (n - k) // stride + 1)
        for n, k, stride in zip(xs[0].shape, spread, strides, strict=True)
    ]
    start = tree.unflatten(treedef, values)
    if 0 in counts:
        return tree.map(lambda value: sh.broadcast_to(value, counts), start)
    parts: list[list[Array]] = []
    for at in product(*map(range, window)):
        starts = [k * s for k, s in zip(at, steps, strict=True)]
        limits = [
            start + (n - 1) * stride + 1
            for start, n, stride in zip(starts, counts, strides, strict=True)
        ]
        parts.append([slice_(x, starts, limits, strides) for x in xs])
    stacked = [stack(list(column)) for column in zip(*parts, strict=True)]
    return reduce(tree.unflatten(treedef, stacked), start, computation, (0,))


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the exclusive or of the elements along ``axes``, bit by bit.

    Args:
        operand: array of booleans or integers.
        axes: axes to reduce.

    Returns:
        Array of the dtype of ``operand``, without ``axes``.

    Raises:
        IllTyped: ``operand`` has another dtype.

    >>> lax.reduce_xor(jnp.array([6, 3]), (0,))
    Array(5, dtype=int32)
    """
    x = as_value(operand, "the operand of reduce_xor")
    return reduce(x, el.convert_element_type(0, x.dtype), el.bitwise_xor, axes)
