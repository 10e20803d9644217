"""Collectives: exchanges of values between the devices along a named axis.

Each takes one array and one axis; a collective over several axes is a sequence of these. An
enclosing ``vmap`` or ``shard_map`` must bind the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import ClassVar, Self

import numpy as np

from effax.ir.axes import Axes, Axis, open_program
from effax.ir.dtypes import INT32
from effax.ir.errors import IllTyped
from effax.ir.eval.spmd import Devices, Each
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.operands import ANY, NUMBERS, ORDERED, arrays, check_dtype
from effax.ir.prims.shape import check_axes
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, Shape, Type, array_type
from effax.ir.work import NO_WORK, Work, elements, total_bytes
from effax.lazy.dataclasses import dataclass

__all__ = [
    "AllGather",
    "AllGatherInvariant",
    "AllReduce",
    "AllToAll",
    "AxisIndex",
    "Collective",
    "Gathering",
    "PPermute",
    "Pmax",
    "Pmin",
    "Psum",
    "PsumInvariant",
    "Pvary",
    "ReduceScatter",
]


Groups = tuple[tuple[int, ...], ...]
"""Positions along an axis, each in one group."""


@dataclass(frozen=True, slots=True)
class Collective(Primitive):
    """An exchange along ``axis``, or within each of ``groups`` of its devices.

    ``shares`` is true if all devices that take part get the same result.
    """

    axis: Axis
    groups: Groups | None = field(default=None, kw_only=True)
    shares: ClassVar[bool] = False
    accepts: ClassVar[frozenset[str]] = ANY
    grouping: ClassVar[str] = ""
    """The sizes of groups that it takes: none, "equal" ones or "any"."""

    @property
    def unites(self) -> bool:
        """Return whether the result is the same along the axis."""
        return self.shares and self.groups is None

    @property
    def size(self) -> int:
        """The number of devices that take part in an exchange."""
        return self.axis.size if self.groups is None else max(map(len, self.groups), default=0)

    def within_group(self) -> Self:
        """Return the collective along an axis that has the devices of one group."""
        return replace(self, axis=Axis(self.axis.name, self.size), groups=None)

    def free_axes(self) -> Axes:
        return (self.axis,)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        raise open_program((self.axis,), "evaluated")

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        outs: dict[int, Value] = {}
        for along in devices.groups(self.axis.name):
            for members in self.groups or (range(len(along)),):
                group = [along[i] for i in members]
                outs.update(zip(group, self.exchange([ins[i][0] for i in group]), strict=True))
        return [(outs[i],) for i in range(len(ins))]

    def exchange(self, values: Sequence[Value]) -> Sequence[Value]:
        """Return each device's result from the operands of a group, in the order of the axis."""
        raise NotImplementedError

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, self.accepts)
        if self.groups is not None:
            self._check_groups(self.groups)
        return Typing((x.update(shape=self.shape(x)),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        read, written = total_bytes(ins), total_bytes(outs)
        return Work(0, 0, read, written, 1, max(read, written))

    def _check_groups(self, groups: Groups) -> None:
        places = sorted([i for group in groups for i in group])
        sizes = set(map(len, groups))
        equal = self.grouping == "any" or len(sizes) <= 1
        if not self.grouping or not equal or 0 in sizes or places != [*range(self.axis.size)]:
            size = "" if self.grouping == "any" else " of one size"
            expected = f"groups{size} with each of the positions below {self.axis.size} once"
            raise IllTyped(
                f"{self.name}: groups of the axis '{self.axis.name}' are not a partition of it"
                + size,
                expected=expected if self.grouping else "no groups",
                found=str(groups),
            )

    def shape(self, x: ArrayType) -> Shape:
        """Return the shape of the result. Raises IllTyped."""
        return x.shape

    def check_divided(self, x: ArrayType, dimension: int) -> None:
        """Raise IllTyped unless the operand has one element per device along ``dimension``."""
        check_axes(self, (dimension,), x.ndim)
        if x.shape[dimension] != self.size:
            raise IllTyped(
                f"{self.name} takes one element for each of the axis '{self.axis.name}'",
                expected=f"size {self.size} along dimension {dimension}",
                found=str(x),
            )


@memoize(maxsize=4096)
def exchanges(jaxpr: Jaxpr, name: str) -> bool:
    """Return whether a program or a subjaxpr exchanges values along the axis of this name."""
    return any(
        eqn.prim.axis.name == name and not isinstance(eqn.prim, Pvary | AxisIndex)
        if isinstance(eqn.prim, Collective)
        else any(exchanges(inner, name) for inner in eqn.prim.subjaxprs())
        for eqn in jaxpr.eqns
    )


def _alike(value: Value, count: int) -> list[Value]:
    return [value] * count


@dataclass(frozen=True, slots=True)
class AllReduce(Collective):
    """A reduction of the operands of all devices."""

    shares: ClassVar[bool] = True
    grouping: ClassVar[str] = "any"
    combine: ClassVar[Callable[[Value, Value], Value]]

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return super().work(ins, outs) + Work(flops=elements(ins))

    def exchange(self, values: Sequence[Value]) -> Sequence[Value]:
        dtype = values[0].dtype
        combine = type(self).combine
        total = reduce(lambda x, y: np.asarray(combine(x, y)).astype(dtype, copy=False), values)
        return _alike(total, len(values))


@dataclass(frozen=True, slots=True)
class Psum(AllReduce):
    """The sum along the axis."""

    name: ClassVar[str] = "psum"
    accepts: ClassVar[frozenset[str]] = NUMBERS
    combine: ClassVar[Callable[[Value, Value], Value]] = np.add


@dataclass(frozen=True, slots=True)
class PsumInvariant(AllReduce):
    """The sum along the axis, as one value that all devices share.

    It evaluates as ``psum``; its transpose differs, since the cotangent is one shared value too:
    that of ``psum`` is ``psum``, that of ``psum_invariant`` is ``pvary``.
    """

    name: ClassVar[str] = "psum_invariant"
    grouping: ClassVar[str] = ""
    accepts: ClassVar[frozenset[str]] = NUMBERS
    combine: ClassVar[Callable[[Value, Value], Value]] = np.add


@dataclass(frozen=True, slots=True)
class Pmax(AllReduce):
    """The greatest along the axis, nan where there is one."""

    name: ClassVar[str] = "pmax"
    accepts: ClassVar[frozenset[str]] = ORDERED
    combine: ClassVar[Callable[[Value, Value], Value]] = np.maximum


@dataclass(frozen=True, slots=True)
class Pmin(AllReduce):
    """The least along the axis, nan where there is one."""

    name: ClassVar[str] = "pmin"
    accepts: ClassVar[frozenset[str]] = ORDERED
    combine: ClassVar[Callable[[Value, Value], Value]] = np.minimum


@dataclass(frozen=True, slots=True)
class Gathering(Collective):
    """The operands of all devices, stacked along a new ``dimension`` of the result."""

    dimension: int
    shares: ClassVar[bool] = True

    def shape(self, x: ArrayType) -> Shape:
        check_axes(self, (self.dimension,), x.ndim + 1)
        return (*x.shape[: self.dimension], self.size, *x.shape[self.dimension :])

    def exchange(self, values: Sequence[Value]) -> Sequence[Value]:
        return _alike(np.stack(values, self.dimension), len(values))


@dataclass(frozen=True, slots=True)
class AllGather(Gathering):
    """The operands of all devices, stacked along a new ``dimension`` of the result."""

    name: ClassVar[str] = "all_gather"
    grouping: ClassVar[str] = "equal"


@dataclass(frozen=True, slots=True)
class AllGatherInvariant(Gathering):
    """``all_gather`` as one value that all devices share, as is its cotangent."""

    name: ClassVar[str] = "all_gather_invariant"


@dataclass(frozen=True, slots=True)
class ReduceScatter(Collective):
    """The sum along the axis; device ``i`` gets element ``i`` of it along ``dimension``."""

    dimension: int
    name: ClassVar[str] = "reduce_scatter"
    grouping: ClassVar[str] = "equal"
    accepts: ClassVar[frozenset[str]] = NUMBERS

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return super().work(ins, outs) + Work(flops=elements(ins))

    def shape(self, x: ArrayType) -> Shape:
        self.check_divided(x, self.dimension)
        return (*x.shape[: self.dimension], *x.shape[self.dimension + 1 :])

    def exchange(self, values: Sequence[Value]) -> Sequence[Value]:
        total = Psum(self.axis).exchange(values)[0]
        return [np.take(total, i, self.dimension) for i in range(len(values))]


@dataclass(frozen=True, slots=True)
class AllToAll(Collective):
    """Device ``i`` gets element ``i`` along ``split`` of each device, stacked along ``concat``.

    ``split`` is a dimension of the operand, which is removed; ``concat`` is one of the result.
    """

    split: int
    concat: int
    name: ClassVar[str] = "all_to_all"
    grouping: ClassVar[str] = "equal"

    def shape(self, x: ArrayType) -> Shape:
        self.check_divided(x, self.split)
        check_axes(self, (self.concat,), x.ndim)
        rest = (*x.shape[: self.split], *x.shape[self.split + 1 :])
        return (*rest[: self.concat], self.size, *rest[self.concat :])

    def exchange(self, values: Sequence[Value]) -> Sequence[Value]:
        return [
            np.stack([np.take(x, i, self.split) for x in values], self.concat)
            for i in range(len(values))
        ]


@dataclass(frozen=True, slots=True)
class PPermute(Collective):
    """The operand of device ``s`` on device ``d``, for each ``(s, d)``; zeros on the others."""

    perm: tuple[tuple[int, int], ...]
    name: ClassVar[str] = "ppermute"

    def shape(self, x: ArrayType) -> Shape:
        sources, targets = [s for s, _ in self.perm], [d for _, d in self.perm]
        inside = all(0 <= i < self.axis.size for i in (*sources, *targets))
        once = len(set(sources)) == len(sources) and len(set(targets)) == len(targets)
        if not inside or not once:
            raise IllTyped(
                "ppermute takes pairs (from, to), with each place at most once on each side",
                expected=f"places from 0 to {self.axis.size - 1}",
                found=str(self.perm),
            )
        return x.shape

    def exchange(self, values: Sequence[Value]) -> Sequence[Value]:
        source = {d: s for s, d in self.perm}
        zero = np.zeros_like(values[0])
        return [values[source[d]] if d in source else zero for d in range(len(values))]


@dataclass(frozen=True, slots=True)
class Pvary(Collective):
    """The identity; the type system treats the result as one that differs along the axis.

    Its operand is one value for all devices, so its transpose sums their cotangents.
    """

    name: ClassVar[str] = "pvary"
    is_view: ClassVar[bool] = True

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return NO_WORK

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return ins


@dataclass(frozen=True, slots=True)
class AxisIndex(Collective):
    """The position of the device along the axis."""

    name: ClassVar[str] = "axis_index"

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, 0)
        return Typing((array_type((), INT32),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return NO_WORK

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        name = self.axis.name
        return [(np.asarray(devices.coordinate(d, name), INT32),) for d in devices.numbers]
