"""Placements in the text of a module: Shardy's meshes and attributes."""

from __future__ import annotations

from typing import NamedTuple

from effax.ir.axes import Axes
from effax.ir.partition import Spec
from effax.lowering.xla import Device

DONOR = "jax.buffer_donor = true"
"""The attribute of an argument whose memory any result may reuse."""


class MeshPlace(NamedTuple):
    """The division of an array over the axes of a mesh; the last dimensions may lack an entry.

    Attributes:
        mesh: the axes.
        spec: the names for each dimension.
        free: the dimensions whose division the compiler chooses.
    """

    mesh: Axes
    spec: Spec
    free: tuple[int, ...] = ()


class DeviceLayout(NamedTuple):
    """The devices that run a program, and the placement of its arguments and results.

    Attributes:
        devices: the devices.
        ins: the placement of each argument; None where the compiler chooses it.
        outs: that of each result.
    """

    devices: tuple[Device, ...]
    ins: tuple[MeshPlace | None, ...]
    outs: tuple[MeshPlace | None, ...]


class Meshes:
    """The meshes of a module, by the symbols that name them."""

    def __init__(self) -> None:
        self._symbols: dict[Axes, str] = {}

    def symbol(self, mesh: Axes) -> str:
        """Return the symbol of a mesh."""
        return self._symbols.setdefault(mesh, f"@mesh{len(self._symbols)}")

    def text(self) -> str:
        """Return the definitions of all meshes."""
        lines: list[str] = []
        for mesh, symbol in self._symbols.items():
            axes = ", ".join([f"{_quoted(axis.name)}={axis.size}" for axis in mesh])
            lines.append(f"  sdy.mesh {symbol} = <[{axes}]>\n")
        return "".join(lines)

    def sharding(self, place: MeshPlace, ndim: int) -> str:
        """Return a placement as the sharding of an operation: ``<@mesh0, [{"x"}, {}]>``."""
        entries = [
            ", ".join(
                [
                    *[_quoted(name) for name in (place.spec[d] if d < len(place.spec) else ())],
                    *["?"] * (d in place.free),
                ]
            )
            for d in range(ndim)
        ]
        return f"<{self.symbol(place.mesh)}, [{', '.join([f'{{{e}}}' for e in entries])}]>"

    def attribute(self, place: MeshPlace, ndim: int) -> str:
        """Return a placement as the attribute of an argument or a result."""
        return f"sdy.sharding = #sdy.sharding{self.sharding(place, ndim)}"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
