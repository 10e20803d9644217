"""Products of arrays whose rows belong to groups, and of arrays with scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axes
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import family
from effax.ir.errors import IllTyped, NotSupported
from effax.ir.prims import DotDimensionNumbers
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.creation import broadcasted_iota
from effax.lax.reduce import cumsum, dot_general, reduce_or

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"]

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RaggedDotDimensionNumbers:
    """Axes of :func:`ragged_dot_general`.

    Attributes:
        dot_dimension_numbers: contracted and batch axes, as in :func:`dot_general`.
        lhs_ragged_dimensions: the axis of the left operand that is divided into groups.
        rhs_group_dimensions: the axis of the right operand that has one entry a group; none where
            the ragged axis is contracted, or a batch axis.
    """

    dot_dimension_numbers: Sequence[Sequence[Sequence[int]]]
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


_RAGGED: Final = {
    "lhs": "left operand.",
    "rhs": "right operand.",
    "group_sizes": "integers, (g,): the numbers of adjacent elements of each group.",
    "ragged_dot_dimension_numbers": "a :class:`RaggedDotDimensionNumbers`.",
    "precision": 'precision of the products: None, "high", "highest" or a ``lax.Precision``.',
    "preferred_element_type": "dtype in which products accumulate, and of the result.",
    "group_offset": "None: groups are counted from the first.",
    "out_sharding": "sharding of the result.",
}
"""Descriptions of the parameters that functions share."""


@shared_docs(
    _RAGGED,
    "Array (m, n); zero in rows beyond the last group.",
    lhs="array (m, k).",
    rhs="array (g, k, n).",
)
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Return the product of each row of ``lhs`` with the matrix of its group.

    Raises:
        IllTyped: shapes or dtypes do not fit.
        NotSupported: ``group_offset`` is given.

    >>> x, w = jnp.ones((3, 1)), jnp.array([[[1.0]], [[2.0]]])
    >>> lax.ragged_dot(x, w, jnp.array([1, 2]))
    Array([[1.],
           [2.],
           [2.]], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
        out_sharding,
    )


@shared_docs(
    _RAGGED,
    "Array of the axes of :func:`dot_general`, after one of groups where the ragged axis is\n"
    "    contracted.",
    group_sizes="integers, (g,), or (..., g) with the ragged axis's outer axes of its kind.",
)
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Contract two arrays, of which the first has an axis that is divided into groups.

    The ragged axis may be one that

    - is kept: each group is contracted with its entry of ``rhs``;
    - is contracted: there is a result for each group;
    - is a batch axis: what is beyond the last group counts as zero.

    Raises:
        IllTyped: shapes, dtypes or axes do not fit.
        NotSupported: ``group_offset`` is given.

    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> lax.ragged_dot_general(jnp.ones(3), jnp.arange(3.0), jnp.array([1, 2]), numbers)
    Array([0., 3.], dtype=float32)
    """
    if group_offset is not None:
        raise NotSupported("ragged_dot with an offset of groups", "None", "group_offset")
    x, y = as_value(lhs, "the left operand"), as_value(rhs, "the right operand")
    sizes = as_value(group_sizes, "the group sizes")
    plan = _planned(x.shape, y.shape, sizes, ragged_dot_dimension_numbers)
    mask = _members(x.shape, sizes, plan)
    if plan.kind == "batch":
        kept = el.select(reduce_or(mask, (0,)), x, 0)
        made = dot_general(kept, y, plan.numbers, precision, preferred_element_type)
        return on_device(made, out_sharding, "ragged_dot_general")
    parts = el.select(mask, sh.broadcast_to(x, mask.shape), 0)
    (lc, rc), (lb, rb) = plan.numbers
    left, batch = [a + 1 for a in lc], tuple(a + 1 for a in lb)
    if plan.kind == "kept":
        numbers = (((0, *left), (plan.group, *rc)), (batch, rb))
        made = dot_general(parts, y, numbers, precision, preferred_element_type)
    else:
        numbers = ((tuple(left), rc), (batch, rb))
        made = dot_general(parts, y, numbers, precision, preferred_element_type)
        made = sh.moveaxis(made, len(batch), 0)
    return on_device(made, out_sharding, "ragged_dot_general")


class _Plan(NamedTuple):
    """The axes of a ragged product, checked.

    Attributes:
        kind: of the ragged axis: "kept", "contracted" or "batch".
        ragged: that axis.
        outer: the axes of the left operand along which the sizes of groups may differ.
        group: the axis of groups of the right operand, -1 for none.
    """

    numbers: DotDimensionNumbers
    kind: str
    ragged: int
    outer: Axes
    group: int


def _planned(lhs: Shape, rhs: Shape, sizes: Array, given: RaggedDotDimensionNumbers) -> _Plan:
    what = "ragged_dot_general"
    (lc, rc), (lb, rb) = (
        (plain_axes(tuple(a), len(lhs), what), plain_axes(tuple(b), len(rhs), what))
        for a, b in given.dot_dimension_numbers
    )
    ragged, groups = tuple(given.lhs_ragged_dimensions), tuple(given.rhs_group_dimensions)
    if len(ragged) != 1 or not 0 <= ragged[0] < len(lhs):
        raise IllTyped(f"{what} takes one ragged axis of lhs", f"of {len(lhs)}", str(ragged))
    (at,) = ragged
    kept = tuple(i for i in range(len(lhs)) if i not in (*lc, *lb))
    kind, mine = next(
        (k, axes) for k, axes in (("kept", kept), ("contracted", lc), ("batch", lb)) if at in axes
    )
    outer = (*(lb if kind != "batch" else ()), *mine[: mine.index(at)])
    if len(groups) != (kind == "kept") or any(a in (*rc, *rb) for a in groups):
        raise IllTyped(
            f"{what}: the axis of groups of rhs does not fit",
            expected="one that is neither contracted nor batch" if kind == "kept" else "none",
            found=str(groups),
        )
    n = sizes.shape[-1] if sizes.shape else -1
    lead = tuple(lhs[i] for i in outer)
    if family(sizes.dtype) not in ("int", "uint") or sizes.shape not in ((n,), (*lead, n)):
        raise IllTyped(
            f"{what}: the sizes of groups do not fit", f"integers {(*lead, 'g')}", str(sizes.type)
        )
    if groups and rhs[groups[0]] != n:
        raise IllTyped(f"{what}: another number of groups in rhs", str(n), str(rhs[groups[0]]))
    return _Plan(((lc, rc), (lb, rb)), kind, at, outer, groups[0] if groups else -1)


def _members(shape: Shape, sizes: Array, plan: _Plan) -> Array:
    """Return whether each element of the left operand is in a group; groups are the first axis."""
    ends = sh.moveaxis(cumsum(sizes, sizes.ndim - 1), -1, 0)
    starts = el.sub(ends, sh.moveaxis(sizes, -1, 0))
    full = (sizes.shape[-1], *shape)
    axes = [0, *(a + 1 for a in plan.outer)] if sizes.ndim > 1 else [0]
    order = sorted(range(len(axes)), key=axes.__getitem__)

    def along(x: Array) -> Array:
        sized = [full[i] if i in axes else 1 for i in range(len(full))]
        return sh.broadcast_to(sh.reshape(sh.transpose(x, order), sized), full)

    place = broadcasted_iota(sizes.dtype, full, plan.ragged + 1)
    return el.bitwise_and(el.ge(place, along(starts)), el.lt(place, along(ends)))


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the contraction of ``lhs * lhs_scale`` with ``rhs * rhs_scale``.

    Args:
        lhs: left operand.
        rhs: right operand.
        lhs_scale: array of the rank of ``lhs``, each of whose elements scales a block of adjacent
            elements; None for no scale.
        rhs_scale: likewise for ``rhs``.
        dimension_numbers: as in :func:`dot_general`; by default a product of matrices, all other
            axes being batch axes.
        preferred_element_type: dtype of the products and of the result, bfloat16 by default.

    Returns:
        Array of the axes of :func:`dot_general`.

    Raises:
        IllTyped: the sizes of a scale do not divide those of its operand, or shapes do not fit.

    >>> x, y = jnp.ones((1, 4)), jnp.ones((4, 1))
    >>> lax.scaled_dot(x, y, lhs_scale=jnp.array([[1.0, 2.0]]), preferred_element_type="float32")
    Array([[6.]], dtype=float32)
    """
    dtype = allowed(preferred_element_type or "bfloat16")
    x, y = (
        _scaled(as_value(v, "an operand of scaled_dot"), scale, dtype)
        for v, scale in ((lhs, lhs_scale), (rhs, rhs_scale))
    )
    if dimension_numbers is None:
        if x.ndim < 2:
            raise IllTyped("scaled_dot takes matrices", "at least two axes", str(x.type))
        batch = tuple(range(x.ndim - 2))
        dimension_numbers = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    return dot_general(x, y, dimension_numbers, None, dtype)


def _scaled(x: Array, scale: ArrayLike | None, dtype: DTypeLike) -> Array:
    """Return the product of an operand with the scales of its blocks."""
    wide = el.convert_element_type(x, dtype)
    if scale is None:
        return wide
    s = el.convert_element_type(as_value(scale, "a scale of scaled_dot"), dtype)
    if s.ndim != x.ndim or any(m < 1 or n % m for n, m in zip(x.shape, s.shape, strict=True)):
        raise IllTyped(
            "the sizes of a scale divide those of its operand", f"those of {x.type}", str(s.type)
        )
    blocks = [k for n, m in zip(x.shape, s.shape, strict=True) for k in (m, n // m)]
    apart = sh.reshape(s, [k for m in s.shape for k in (m, 1)])
    return el.mul(wide, sh.reshape(sh.broadcast_to(apart, blocks), x.shape))
