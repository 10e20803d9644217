"""Evaluation on several devices in step: what collectives and ``shard_map`` mean.

Each device has values of its own. An equation is done by all of them before the next one begins,
so a collective finds what every device gives it. Where one runs in a loop or a branch, all devices
must take the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from effax.ir.axes import Axes, unbound_axis
from effax.ir.depth import deep
from effax.ir.errors import Divergence
from effax.ir.evaluate import evaluate, literal_value
from effax.ir.primitive import Value
from effax.ir.syntax import Atom, Jaxpr, Lit

Each = Sequence[Sequence[Value]]
"""One entry a device: its arguments, or its results."""


class Devices(NamedTuple):
    """Devices in a grid of named axes, numbered in order: the last axis runs fastest."""

    axes: Axes

    @property
    def total(self) -> int:
        """How many devices there are."""
        return prod([axis.size for axis in self.axes])

    def coordinate(self, device: int, name: str) -> int:
        """Where a device is along an axis. Raises UnboundAxis."""
        at = self._position(name)
        return device // self._stride(at) % self.axes[at].size

    def groups(self, name: str) -> list[list[int]]:
        """The devices in groups that differ along an axis only, in its order."""
        at = self._position(name)
        stride, size = self._stride(at), self.axes[at].size
        first = [d for d in range(self.total) if d // stride % size == 0]
        return [[d + i * stride for i in range(size)] for d in first]

    def _position(self, name: str) -> int:
        found = [i for i, axis in enumerate(self.axes) if axis.name == name]
        if not found:
            raise unbound_axis(name, "a collective", self.axes, "add the axis to the mesh")
        return found[-1]

    def _stride(self, at: int) -> int:
        return prod([axis.size for axis in self.axes[at + 1 :]])


@deep
def evaluate_together(jaxpr: Jaxpr, devices: Devices, args: Each) -> list[list[Value]]:
    """Run a program on every device, in step.

    Args:
        jaxpr: the program.
        devices: the devices; the program's free axes are among theirs.
        args: one entry a device; a reference that devices share is one buffer.

    Raises:
        UnboundAxis: a collective names an axis that the devices do not have.
        Divergence: a collective runs where devices part.
    """
    if not jaxpr.free_axes:
        return [evaluate(jaxpr, own) for own in args]
    envs: list[list[Value | None]] = [[None] * jaxpr.size for _ in args]
    for env, own in zip(envs, args, strict=True):
        for v, value in zip(jaxpr.binders, own, strict=True):
            env[v.id] = value

    with np.errstate(all="ignore"):
        for prim, ins, outs, _, _ in jaxpr.eqns:
            results = prim.together(devices, [[_value(env, a) for a in ins] for env in envs])
            for env, given in zip(envs, results, strict=True):
                for v, result in zip(outs, given, strict=True):
                    env[v.id] = np.asarray(result)
    return [[_value(env, a) for a in jaxpr.outs] for env in envs]


def _value(env: Sequence[Value | None], atom: Atom) -> Value:
    found = literal_value(atom) if isinstance(atom, Lit) else env[atom.id]
    assert found is not None, "a variable is used before it is bound"
    return found


def agreed(values: Sequence[int], what: str) -> int:
    """The one value that every device has. Raises Divergence."""
    if len(set(values)) > 1:
        raise Divergence(
            f"a collective runs in {what}, and devices do not go the same way",
            expected="one choice on all devices that take part",
            found=", ".join(map(str, values)),
            remedy="make the condition the same everywhere (`psum`, `pmax` of it), or move the "
            "collective out",
        )
    return values[0]
