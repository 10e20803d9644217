"""SPMD evaluation, which defines the meaning of collectives and ``shard_map``.

Each device has its own values. All devices run an equation before any runs the next one, so that
the operands of a collective are there. Devices may diverge in a branch or a loop; a collective must
be reached by all devices along its axis, or by none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from effax.ir.axes import Axes, unbound_axis
from effax.ir.errors import Divergence
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.primitive import Value
from effax.ir.syntax import Atom, Jaxpr, Lit

Each = Sequence[Sequence[Value]]
"""One entry per device: its arguments, or its results."""


class Devices(NamedTuple):
    """Devices in a grid of named axes, numbered in order: the last axis runs fastest.

    Attributes:
        axes: the axes of the grid.
        present: the numbers of the devices in a branch or loop; None: all.
    """

    axes: Axes
    present: tuple[int, ...] | None = None

    @property
    def total(self) -> int:
        """The number of devices in the grid."""
        return prod([axis.size for axis in self.axes])

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the present devices."""
        return range(self.total) if self.present is None else self.present

    def coordinate(self, number: int, name: str) -> int:
        """Return the position of a device along an axis. Raises UnboundAxis."""
        at = self._position(name)
        return number // self._stride(at) % self.axes[at].size

    def groups(self, name: str) -> list[list[int]]:
        """Return groups of present devices, by index, that differ along an axis only, in its order.

        Raises:
            UnboundAxis: the grid does not have the axis.
            Divergence: a device of a group is not present.
        """
        at = self._position(name)
        stride, size = self._stride(at), self.axes[at].size
        place = {number: i for i, number in enumerate(self.numbers)}
        first = dict.fromkeys([d - d // stride % size * stride for d in self.numbers])
        groups = [[place.get(d + i * stride, -1) for i in range(size)] for d in first]
        if any(-1 in group for group in groups):
            raise Divergence(
                f"some devices do not reach a collective along '{name}'",
                expected="all devices along the axis",
                found=f"the devices {', '.join(map(str, self.numbers))} of {self.total}",
                remedy="make the condition the same everywhere (`psum`, `pmax` of it), or move "
                "the collective out",
            )
        return groups

    def some(self, places: Sequence[int]) -> Devices:
        """Return the present devices at these indices."""
        numbers = self.numbers
        return self._replace(present=tuple([numbers[i] for i in places]))

    def each_with(self, mesh: Axes) -> Devices:
        """Return a grid with further axes, a whole mesh for each present device."""
        inner = Devices(mesh).total
        present = None
        if self.present is not None:
            present = tuple([d * inner + e for d in self.present for e in range(inner)])
        return Devices((*self.axes, *mesh), present)

    def _position(self, name: str) -> int:
        found = [i for i, axis in enumerate(self.axes) if axis.name == name]
        if not found:
            raise unbound_axis(name, "a collective", self.axes, "add the axis to the mesh")
        return found[-1]

    def _stride(self, at: int) -> int:
        return prod([axis.size for axis in self.axes[at + 1 :]])


def evaluate_spmd(jaxpr: Jaxpr, devices: Devices, args: Each) -> list[list[Value]]:
    """Run a program on every device, in step.

    Args:
        jaxpr: the program.
        devices: the devices; the program's free axes are among theirs.
        args: one entry per present device; a reference that devices share is one buffer.

    Raises:
        UnboundAxis: a collective names an axis that the devices do not have.
        Divergence: a collective is not reached by all devices along its axis.
    """
    if not jaxpr.free_axes:
        return [evaluate(jaxpr, own) for own in args]
    envs: list[list[Value | None]] = [[None] * jaxpr.size for _ in args]
    for env, own in zip(envs, args, strict=True):
        for v, value in zip(jaxpr.binders, own, strict=True):
            env[v.id] = value

    with np.errstate(all="ignore"):
        for prim, ins, outs, _, _ in jaxpr.eqns:
            results = prim.evaluate_spmd(devices, [[_value(env, a) for a in ins] for env in envs])
            for env, own in zip(envs, results, strict=True):
                for v, result in zip(outs, own, strict=True):
                    env[v.id] = np.asarray(result)
    return [[_value(env, a) for a in jaxpr.outs] for env in envs]


def _value(env: Sequence[Value | None], atom: Atom) -> Value:
    found = literal_value(atom) if isinstance(atom, Lit) else env[atom.id]
    assert found is not None, "a variable is used before it is bound"
    return found
