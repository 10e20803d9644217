"""Collectives: what ``vmap`` and ``shard_map`` exchange along their named axes.

Each takes a tree of arrays, and the name of an axis or several names. Several axes act as one, of
which the last runs fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TypeVar

from effax import tree
from effax.arrays import operators as ops
from effax.arrays.argument_checks import as_integer, axis_names_of, integers
from effax.arrays.binding import bind1
from effax.arrays.device_array import Array, as_value, is_python_scalar
from effax.ir.axes import Axes, Axis
from effax.ir.dtypes import INT32, family
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import collective as c
from effax.ir.scope import named_axis
from effax.numpy.axes import plain_axis

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean",
    "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary",
]  # fmt: skip

T = TypeVar("T")

AxisName = str | Sequence[str]
"""The name of an axis, or several."""


def _axes(axis_name: AxisName, what: str) -> Axes:
    """The axes of these names. Raises UnboundAxis, and BadArgument for what are no names."""
    names = axis_names_of(axis_name, f"{what}: axis_name")
    return tuple([named_axis(name, what) for name in names])


def _size(axes: Axes) -> int:
    return prod([axis.size for axis in axes])


def _no_groups(groups: object, what: str) -> None:
    if groups is not None:
        raise BadArgument(
            f"{what}: groups of an axis are not supported",
            expected="None as axis_index_groups",
            found=f"{groups!r:.60}",
            remedy="split the axis in two named ones, and use one of them",
        )


def _each(x: T, what: str, f: Callable[[Array], Array]) -> T:
    made: T = tree.map(lambda leaf: f(as_value(leaf, f"an operand of {what}")), x)
    return made


def _reduced(x: T, axes: Axes, what: str, make: Callable[[Axis], Primitive]) -> T:
    def along(leaf: Array) -> Array:
        for axis in axes:
            leaf = bind1(make(axis), leaf)
        return leaf

    return _each(x, what, along)


def psum(
    x: T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> T:
    """The sum along named axes; of a Python number, that times the size. Booleans are counted.

    Raises:
        UnboundAxis: nothing around binds a name.
        BadArgument: groups are asked for.
    """
    _no_groups(axis_index_groups, "psum")
    axes = _axes(axis_name, "psum")

    def total(leaf: object) -> object:
        if is_python_scalar(leaf):
            return leaf * _size(axes)
        value = as_value(leaf, "an operand of psum")
        counted = ops.astype(value, INT32) if family(value.dtype) == "bool" else value
        return _reduced(counted, axes, "psum", c.Psum)

    made: T = tree.map(total, x)
    return made


def pmean(
    x: T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> T:
    """The mean along named axes. Raises UnboundAxis, BadArgument."""
    _no_groups(axis_index_groups, "pmean")
    n = _size(_axes(axis_name, "pmean"))
    made: T = tree.map(lambda total: total / n, psum(x, axis_name))
    return made


def pmax(
    x: T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> T:
    """The greatest along named axes. Raises UnboundAxis, BadArgument."""
    _no_groups(axis_index_groups, "pmax")
    return _reduced(x, _axes(axis_name, "pmax"), "pmax", c.Pmax)


def pmin(
    x: T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> T:
    """The least along named axes. Raises UnboundAxis, BadArgument."""
    _no_groups(axis_index_groups, "pmin")
    return _reduced(x, _axes(axis_name, "pmin"), "pmin", c.Pmin)


def axis_size(axis_name: AxisName) -> int:
    """The size of named axes, a Python number. Raises UnboundAxis."""
    return _size(_axes(axis_name, "axis_size"))


def axis_index(axis_name: AxisName) -> Array:
    """Where this lane or device is along named axes. Raises UnboundAxis."""
    axes = _axes(axis_name, "axis_index")
    first, *rest = axes
    place = bind1(c.AxisIndex(first))
    for axis in rest:
        place = place * axis.size + bind1(c.AxisIndex(axis))
    return place


def _merged(x: Array, at: int, count: int) -> Array:
    """``count`` dimensions from ``at`` on as one."""
    if count == 1:
        return x
    shape = x.shape
    return ops.reshape(x, (*shape[:at], prod(shape[at : at + count]), *shape[at + count :]))


def _divided(x: Array, at: int, sizes: Sequence[int], what: str) -> Array:
    """Dimension ``at`` as dimensions of these sizes, and a last one of what is left."""
    n, whole = prod(sizes), x.shape[at]
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
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
) -> T:
    """What all have along named axes, stacked along ``axis``, or where ``tiled`` concatenated.

    Raises:
        UnboundAxis: nothing around binds a name.
        BadArgument: groups are asked for, or there is no such axis.
    """
    _no_groups(axis_index_groups, "all_gather")
    axes = _axes(axis_name, "all_gather")

    def gathered(leaf: Array) -> Array:
        at = plain_axis(axis, leaf.ndim + (not tiled), "all_gather")
        for named in reversed(axes):
            leaf = bind1(c.AllGather(named, at), leaf)
        return _merged(leaf, at, len(axes) + tiled)

    return _each(x, "all_gather", gathered)


def psum_scatter(
    x: T,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> T:
    """The sum along named axes, of which each gets its own part along ``scatter_dimension``.

    The dimension goes, or where ``tiled`` what is left of it stays.

    Raises:
        UnboundAxis: nothing around binds a name.
        BadArgument: groups are asked for, or the dimension does not divide.
    """
    _no_groups(axis_index_groups, "psum_scatter")
    axes = _axes(axis_name, "psum_scatter")

    def scattered(leaf: Array) -> Array:
        at = plain_axis(scatter_dimension, leaf.ndim, "psum_scatter")
        if not tiled and leaf.shape[at] != _size(axes):
            raise BadArgument(
                "psum_scatter: the dimension has another size than the axis",
                expected=f"size {_size(axes)} along dimension {at}",
                found=str(leaf.type),
                remedy="pass `tiled=True` where each gets more than one element",
            )
        leaf = _divided(leaf, at, [axis.size for axis in axes], "psum_scatter")
        for named in axes:
            leaf = bind1(c.ReduceScatter(named, at), leaf)
        return leaf if tiled else ops.squeeze(leaf, at)

    return _each(x, "psum_scatter", scattered)


def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> T:
    """Each gives its part ``i`` along ``split_axis`` to ``i``, which stacks what it gets.

    It is stacked along ``concat_axis`` of the result, or where ``tiled`` concatenated.

    Raises:
        UnboundAxis: nothing around binds a name.
        BadArgument: groups are asked for, or the dimension does not divide.
    """
    _no_groups(axis_index_groups, "all_to_all")
    axes = _axes(axis_name, "all_to_all")
    sizes = [axis.size for axis in axes]

    def exchanged(leaf: Array) -> Array:
        split = plain_axis(split_axis, leaf.ndim, "all_to_all")
        concat = plain_axis(concat_axis, leaf.ndim, "all_to_all")
        if not tiled and leaf.shape[split] != _size(axes):
            raise BadArgument(
                "all_to_all: the dimension has another size than the axis",
                expected=f"size {_size(axes)} along dimension {split}",
                found=str(leaf.type),
                remedy="pass `tiled=True` where each gets more than one element",
            )
        leaf = _divided(leaf, split, sizes, "all_to_all")
        if not tiled:
            leaf = ops.squeeze(leaf, split + len(axes))
        if len(axes) == 1:
            leaf = bind1(c.AllToAll(axes[0], split, concat), leaf)
        else:
            for i, named in enumerate(axes):
                leaf = bind1(c.AllToAll(named, split + i, split + i), leaf)
            leaf = ops.moveaxis(_merged(leaf, split, len(axes)), split, concat)
        return _merged(leaf, concat, 2) if tiled else leaf

    return _each(x, "all_to_all", exchanged)


def _one_axis(axis_name: AxisName, what: str) -> Axis:
    axes = _axes(axis_name, what)
    if len(axes) != 1:
        raise BadArgument(
            f"{what} goes along one axis",
            expected="one name",
            found=repr(tuple(axis.name for axis in axes)),
        )
    return axes[0]


def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """What ``s`` has goes to ``d``, for each ``(s, d)`` of ``perm``; who gets nothing has zeros.

    Raises:
        UnboundAxis: nothing around binds the name.
        BadArgument: there are several names, or ``perm`` has no pairs of integers.
        IllTyped: a place is none, or occurs twice on one side.
    """
    axis = _one_axis(axis_name, "ppermute")
    pairs: list[tuple[int, int]] = []
    for pair in perm:
        entry = integers(pair, "ppermute: perm")
        if len(entry) != 2:
            raise BadArgument("ppermute takes pairs", "(from, to)", repr(pair))
        pairs.append((entry[0], entry[1]))
    return _reduced(x, (axis,), "ppermute", partial(c.PPermute, perm=tuple(sorted(pairs))))


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Place ``i`` gets what ``perm[i]`` has. Raises UnboundAxis, BadArgument."""
    axis, order = _one_axis(axis_name, "pshuffle"), integers(perm, "pshuffle: perm")
    if sorted(order) != list(range(axis.size)):
        raise BadArgument(
            "pshuffle takes every place once",
            expected=f"a permutation of range({axis.size})",
            found=repr(order),
        )
    return ppermute(x, axis_name, list(zip(order, range(axis.size), strict=True)))


def pswapaxes(x: T, axis_name: AxisName, axis: int) -> T:
    """The named axis and dimension ``axis`` exchanged. Raises UnboundAxis, BadArgument."""
    return all_to_all(x, axis_name, axis, axis)


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """What place ``source`` along the axis has. Raises UnboundAxis, BadArgument."""
    size = _size(_axes(axis_name, "pbroadcast"))
    at = as_integer(source, "pbroadcast: source")
    if not 0 <= at < size:
        raise BadArgument(
            "pbroadcast: there is no such place", expected=f"0 to {size - 1}", found=str(at)
        )
    made: T = tree.map(lambda leaf: leaf[at], all_gather(x, axis_name))
    return made


def pvary(x: T, axis_name: AxisName) -> T:
    """The same values, which count as ones that differ along the axes. Raises UnboundAxis."""
    return _reduced(x, _axes(axis_name, "pvary"), "pvary", c.Pvary)


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """:func:`pvary`, for ``to='varying'``. Raises UnboundAxis, and BadArgument for other casts."""
    if to != "varying":
        raise BadArgument(
            "pcast knows one cast",
            expected="to='varying'",
            found=repr(to),
            remedy="`psum`, `pmax` or `all_gather` make a value that is the same everywhere",
        )
    return pvary(x, axis_name)
