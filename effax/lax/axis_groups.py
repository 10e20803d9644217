"""Named axes as arguments of collectives, and groups of the positions along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeVar

from effax import tree
from effax.arrays.argument_checks import axis_names_of, integers
from effax.arrays.array import Array
from effax.arrays.batching import vmap
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.ir.axes import Axes, Axis
from effax.ir.errors import BadArgument
from effax.ir.prims import collective as c
from effax.ir.scope import named_axis

T = TypeVar("T")

AxisName = str | Sequence[str]
"""Name of an axis, or several."""

IndexGroups = Sequence[Sequence[int]] | None
"""Positions along named axes, each in one group; None: all together."""


def named_axes(axis_name: AxisName, what: str) -> Axes:
    """Return the axes of these names. Raises UnboundAxis, and BadArgument for other values."""
    names = axis_names_of(axis_name, f"{what}: axis_name")
    return tuple([named_axis(name, what) for name in names])


def size_of(axes: Axes) -> int:
    """Return the size of several axes that act as one."""
    return prod([axis.size for axis in axes])


def position(axes: Axes) -> Array:
    """Return the index of this batch element or device along axes that act as one."""
    first, *rest = axes
    place = bind1(c.AxisIndex(first))
    for axis in rest:
        place = place * axis.size + bind1(c.AxisIndex(axis))
    return place


class Exchange(NamedTuple):
    """The participants of a collective: groups of the positions along axes that act as one."""

    what: str
    axes: Axes
    groups: c.Groups | None

    @property
    def sizes(self) -> list[int]:
        """The sizes of the axes along which a group of equal ones extends."""
        return [axis.size for axis in self.axes] if self.groups is None else [len(self.groups[0])]

    def each(self, x: T, f: Callable[[Array, Axes], Array]) -> T:
        """Return a tree of the results of a function of an array and the axes."""

        def one(leaf: object) -> Array:
            value = as_value(leaf, f"an operand of {self.what}")
            across = self.groups is not None and len(self.axes) > 1
            return self.jointly(value, f) if across else f(value, self.axes)

        made: T = tree.map(one, x)
        return made

    def jointly(self, x: Array, f: Callable[[Array, Axes], Array]) -> Array:
        """Gather the values of all, and exchange them as batch elements: groups cross the axes."""
        every = x
        for axis in reversed(self.axes):
            every = bind1(c.AllGather(axis, 0), every)
        size = size_of(self.axes)
        joint = Axis(" ".join([axis.name for axis in self.axes]), size)
        every = every.reshape(size, *x.shape)
        return vmap(lambda own: f(own, (joint,)), axis_name=joint.name)(every)[position(self.axes)]


def exchange(what: str, axis_name: AxisName, given: IndexGroups, equal: bool = False) -> Exchange:
    """Return the participants of a collective. Raises BadArgument for groups that do not fit."""
    axes = named_axes(axis_name, what)
    if given is None:
        return Exchange(what, axes, None)
    groups = tuple([integers(group, f"{what}: axis_index_groups") for group in given])
    places = tuple(range(size_of(axes)))
    partition = tuple(sorted([i for group in groups for i in group])) == places
    if not partition or () in groups or (equal and len(set(map(len, groups))) > 1):
        raise BadArgument(
            f"{what}: axis_index_groups is not a partition of the axis"
            + " into groups of one size" * equal,
            expected=f"groups with each of the positions below {len(places)} once",
            found=f"{groups!r:.80}",
        )
    return Exchange(what, axes, None if groups == (places,) else groups)
