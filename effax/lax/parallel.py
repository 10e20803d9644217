"""Collectives along the named axes of ``vmap`` and ``shard_map``.

Each takes a tree of arrays, and the name of an axis or several names. Several axes act as one, of
which the last runs fastest. All raise UnboundAxis for a name that is not in scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, TypeVar

from effax import tree
from effax.arrays.argument_checks import as_integer, integers
from effax.arrays.array import Array
from effax.arrays.axes import plain_axis
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value, is_python_scalar
from effax.arrays.operators import ops
from effax.arrays.shared_docs import shared_docs
from effax.ir.axes import Axes, Axis
from effax.ir.dtypes import INT32, family
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import collective as c
from effax.lax.axis_groups import (
    AxisName,
    Exchange,
    IndexGroups,
    exchange,
    named_axes,
    position,
    size_of,
)

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean",
    "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary",
]  # fmt: skip

T = TypeVar("T")

_COLLECTIVE: Final = {
    "x": "tree of arrays.",
    "axis_name": "name of an axis, or several names, which act as one axis.",
    "axis_index_groups": "groups of positions along the axis, which partition it: the exchange is "
    "within each group. None: one group of all.",
}
"""Descriptions of the parameters that functions share."""


def _reduced(x: T, taking: Exchange, make: Callable[..., Primitive]) -> T:
    def along(leaf: Array, axes: Axes) -> Array:
        for axis in axes:
            leaf = bind1(make(axis, groups=taking.groups), leaf)
        return leaf

    return taking.each(x, along)


def psum(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """Return the sum along named axes.

    Args:
        x: tree of arrays; booleans are counted, Python numbers multiplied by the axis size.
        axis_name: name of an axis, or several names, which act as one axis.
        axis_index_groups: groups of positions along the axis, which partition it: the exchange
            is within each group. None: one group of all.

    Returns:
        Tree like ``x``.

    Raises:
        BadArgument: the groups are no partition.

    >>> jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([3, 3], dtype=int32)
    """
    taking = exchange("psum", axis_name, axis_index_groups)
    sizes = {size_of(taking.axes)} if taking.groups is None else set(map(len, taking.groups))

    def total(leaf: object) -> object:
        if is_python_scalar(leaf) and len(sizes) == 1:
            return leaf * min(sizes)
        value = as_value(leaf, "an operand of psum")
        counted = ops.astype(value, INT32) if family(value.dtype) == "bool" else value
        return _reduced(counted, taking, c.Psum)

    made: T = tree.map(total, x)
    return made


@shared_docs(_COLLECTIVE, "Tree like ``x``.")
def pmean(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """Return the mean along named axes.

    >>> jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    n = psum(1, axis_name, axis_index_groups=axis_index_groups)
    totals = psum(x, axis_name, axis_index_groups=axis_index_groups)
    made: T = tree.map(lambda total: total / n, totals)
    return made


@shared_docs(_COLLECTIVE, "Tree like ``x``.")
def pmax(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """Return the maximum along named axes.

    >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([2, 2], dtype=int32)
    """
    return _reduced(x, exchange("pmax", axis_name, axis_index_groups), c.Pmax)


@shared_docs(_COLLECTIVE, "Tree like ``x``.")
def pmin(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """Return the minimum along named axes.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return _reduced(x, exchange("pmin", axis_name, axis_index_groups), c.Pmin)


def axis_size(axis_name: AxisName) -> int:
    """Return the size of named axes, a Python int. Raises UnboundAxis.

    >>> jax.vmap(lambda x: x + lax.axis_size("i"), axis_name="i")(jnp.array([1, 2]))
    Array([3, 4], dtype=int32)
    """
    return size_of(named_axes(axis_name, "axis_size"))


def axis_index(axis_name: AxisName) -> Array:
    """Return the index of this batch element or device along named axes. Raises UnboundAxis.

    >>> jax.vmap(lambda x: lax.axis_index("i"), axis_name="i")(jnp.array([7, 7]))
    Array([0, 1], dtype=int32)
    """
    return position(named_axes(axis_name, "axis_index"))


def _merged(x: Array, at: int, count: int) -> Array:
    """Merge ``count`` dimensions from ``at`` on."""
    if count == 1:
        return x
    shape = x.shape
    return ops.reshape(x, (*shape[:at], prod(shape[at : at + count]), *shape[at + count :]))


def _divided(x: Array, at: int, sizes: Sequence[int], what: str, tiled: bool) -> Array:
    """Split dimension ``at`` into these sizes and the quotient, which is 1 if not ``tiled``."""
    n, whole = prod(sizes), x.shape[at]
    if not tiled and whole != n:
        raise BadArgument(
            f"{what}: the sizes of the dimension and the axis differ",
            expected=f"size {n} along dimension {at}",
            found=str(x.type),
            remedy="pass `tiled=True` for parts of more than one element",
        )
    if n == 0 or whole % n:
        raise BadArgument(
            f"{what}: a dimension does not divide along the axis",
            expected=f"a multiple of {n} along dimension {at}",
            found=str(x.type),
        )
    return ops.reshape(x, (*x.shape[:at], *sizes, whole // n, *x.shape[at + 1 :]))


def all_gather(
    x: T,
    axis_name: AxisName,
    *,
    axis_index_groups: IndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """Return the values of all participants along named axes, stacked along ``axis``.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        axis_index_groups: groups of positions along the axis, which partition it: the exchange
            is within each group. None: one group of all.
        axis: position of the new dimension in the result.
        tiled: whether to concatenate along ``axis`` instead.
        to: "varying" or "invarying"; the result is known to be the same along the axes either way.

    Returns:
        Tree of gathered arrays.

    Raises:
        BadArgument: the groups are no partition into groups of one size; ``axis`` is out of
            range.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if to not in ("varying", "invarying"):
        raise BadArgument(
            "all_gather: unknown variance of the result",
            expected="'varying' or 'invarying'",
            found=repr(to),
        )
    taking = exchange("all_gather", axis_name, axis_index_groups, equal=True)

    def gathered(leaf: Array, axes: Axes) -> Array:
        at = plain_axis(axis, leaf.ndim + (not tiled), "all_gather")
        for named in reversed(axes):
            leaf = bind1(c.AllGather(named, at, groups=taking.groups), leaf)
        return _merged(leaf, at, len(axes) + tiled)

    return taking.each(x, gathered)


def psum_scatter(
    x: T,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> T:
    """Return the sum along named axes, each participant one part of it.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        scatter_dimension: dimension to split, of the size of the axis.
        axis_index_groups: groups of positions along the axis, which partition it: the exchange
            is within each group. None: one group of all.
        tiled: whether to keep the dimension, which the axis size then divides.

    Returns:
        Tree of the parts.

    Raises:
        BadArgument: the groups are no partition into groups of one size; the dimension does not
            divide.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    taking = exchange("psum_scatter", axis_name, axis_index_groups, equal=True)

    def scattered(leaf: Array, axes: Axes) -> Array:
        at = plain_axis(scatter_dimension, leaf.ndim, "psum_scatter")
        leaf = _divided(leaf, at, taking.sizes, "psum_scatter", tiled)
        for named in axes:
            leaf = bind1(c.ReduceScatter(named, at, groups=taking.groups), leaf)
        return leaf if tiled else ops.squeeze(leaf, at)

    return taking.each(x, scattered)


def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> T:
    """Send part ``i`` along ``split_axis`` to participant ``i``, and stack the parts received.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        split_axis: dimension to split, of the size of the axis.
        concat_axis: position of the stacked dimension in the result.
        axis_index_groups: groups of positions along the axis, which partition it: the exchange
            is within each group. None: one group of all.
        tiled: whether to split into parts of any size and concatenate them.

    Returns:
        Tree of arrays.

    Raises:
        BadArgument: the groups are no partition into groups of one size; the dimension does not
            divide.

    >>> jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    taking = exchange("all_to_all", axis_name, axis_index_groups, equal=True)

    def exchanged(leaf: Array, axes: Axes) -> Array:
        split = plain_axis(split_axis, leaf.ndim, "all_to_all")
        concat = plain_axis(concat_axis, leaf.ndim, "all_to_all")
        leaf = _divided(leaf, split, taking.sizes, "all_to_all", tiled)
        if not tiled:
            leaf = ops.squeeze(leaf, split + len(axes))
        if len(axes) == 1:
            leaf = bind1(c.AllToAll(axes[0], split, concat, groups=taking.groups), leaf)
        else:
            for i, named in enumerate(axes):
                leaf = bind1(c.AllToAll(named, split + i, split + i), leaf)
            leaf = ops.moveaxis(_merged(leaf, split, len(axes)), split, concat)
        return _merged(leaf, concat, 2) if tiled else leaf

    return taking.each(x, exchanged)


def _one_axis(axis_name: AxisName, what: str) -> Axis:
    axes = named_axes(axis_name, what)
    if len(axes) != 1:
        raise BadArgument(
            f"{what} takes one axis",
            expected="one name",
            found=repr(tuple(axis.name for axis in axes)),
        )
    return axes[0]


def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """Send values from source to destination; participants without a source receive zeros.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        perm: pairs (source, destination).

    Returns:
        Tree like ``x``.

    Raises:
        BadArgument: ``perm`` has no pairs of ints.
        IllTyped: an index is out of range, or occurs twice on one side.

    >>> jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 1)]), axis_name="i")(jnp.array([1, 2]))
    Array([0, 1], dtype=int32)
    """
    taking = exchange("ppermute", axis_name, None)
    pairs: list[tuple[int, int]] = []
    for pair in perm:
        entry = integers(pair, "ppermute: perm")
        if len(entry) != 2:
            raise BadArgument("ppermute takes pairs", "(from, to)", repr(pair))
        pairs.append((entry[0], entry[1]))

    def permuted(leaf: Array, axes: Axes) -> Array:
        axis, *others = axes
        if others:
            return taking.jointly(leaf, permuted)
        return bind1(c.PPermute(axis, tuple(sorted(pairs))), leaf)

    return taking.each(x, permuted)


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Return the values of participant ``perm[i]`` at participant ``i``.

    Args:
        x: tree of arrays.
        axis_name: name of one axis.
        perm: permutation of the indices.

    Returns:
        Tree like ``x``.

    Raises:
        BadArgument: there are several names, or ``perm`` is not a permutation.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [1, 0]), axis_name="i")(jnp.array([1, 2]))
    Array([2, 1], dtype=int32)
    """
    axis, order = _one_axis(axis_name, "pshuffle"), integers(perm, "pshuffle: perm")
    if sorted(order) != list(range(axis.size)):
        raise BadArgument(
            "pshuffle takes a permutation",
            expected=f"a permutation of range({axis.size})",
            found=repr(order),
        )
    return ppermute(x, axis_name, list(zip(order, range(axis.size), strict=True)))


def pswapaxes(x: T, axis_name: AxisName, axis: int) -> T:
    """Return ``x`` with the named axis and dimension ``axis`` exchanged.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        axis: dimension of the size of the named axis.

    Returns:
        Tree like ``x``.

    Raises:
        BadArgument: the sizes differ.

    >>> jax.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis)


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """Return the values of participant ``source`` at all participants.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        source: index along the named axes.

    Returns:
        Tree like ``x``.

    Raises:
        BadArgument: ``source`` is out of range.

    >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1, 2]))
    Array([2, 2], dtype=int32)
    """
    size = size_of(named_axes(axis_name, "pbroadcast"))
    at = as_integer(source, "pbroadcast: source")
    if not 0 <= at < size:
        raise BadArgument(
            "pbroadcast: the source is out of range", expected=f"0 to {size - 1}", found=str(at)
        )
    made: T = tree.map(lambda leaf: leaf[at], all_gather(x, axis_name))
    return made


@shared_docs(_COLLECTIVE, "Tree like ``x``.")
def pvary(x: T, axis_name: AxisName) -> T:
    """Return ``x``, typed as varying along named axes.

    >>> jax.vmap(lambda x: lax.pvary(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return _reduced(x, exchange("pvary", axis_name, None), c.Pvary)


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """Return ``x`` with another variance along named axes.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.
        to: must be "varying".

    Returns:
        Tree like ``x``.

    Raises:
        BadArgument: ``to`` is another string.

    >>> jax.vmap(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if to != "varying":
        raise BadArgument(
            "pcast supports one cast",
            expected="to='varying'",
            found=repr(to),
            remedy="`psum`, `pmax` or `all_gather` return a value that does not vary",
        )
    return pvary(x, axis_name)
