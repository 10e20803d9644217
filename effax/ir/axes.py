"""Named axes, along which collectives run.

Use of a named axis is not an effect: it changes no state and orders nothing. It is a requirement of
the program, as its inputs are: an enclosing ``vmap`` or ``shard_map`` must bind the name. The
``free_axes`` of a program are the axes that it uses and does not bind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from effax.ir.errors import UnboundAxis


class Axis(NamedTuple):
    """A named axis and its size."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.name}:{self.size}"


Axes = tuple[Axis, ...]


def joined_axes(groups: Iterable[Axes]) -> Axes:
    """Return the union of several groups of axes, sorted by name."""
    found = {axis for group in groups for axis in group}
    return tuple(sorted(found)) if found else ()


def unbound_axis(name: str, what: str, scope: Iterable[Axis], remedy: str) -> UnboundAxis:
    """Return the error for the use of an axis that is not in scope."""
    shown = ", ".join(f"'{a.name}' (of size {a.size})" for a in scope)
    return UnboundAxis(
        f"{what} names the axis '{name}', which is not bound here",
        expected=f"one of the axes in scope: {shown}" if shown else "an axis in scope",
        found=f"'{name}'" if shown else f"'{name}', and no named axis in scope",
        remedy=remedy,
    )


BIND_IT = "bind the name around it: `vmap(f, axis_name='{}')`, or `shard_map` over a mesh with it"


def open_program(axes: Axes, what: str) -> UnboundAxis:
    """Return the error for a program with free axes that is run or compiled by itself."""
    name = axes[0].name
    error = unbound_axis(name, f"a program that is {what}", (), BIND_IT.format(name))
    error.found = "free axes " + ", ".join(map(str, axes))
    return error
