"""Where the batch axis is, in inputs and results: what users say, checked and counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.axes import Axis
from effax.ir.errors import TransformError
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type

Axes = int | None | Sequence[int | None]


class NoAxis(TransformError):
    """A result differs between lanes, and no axis is given for it; ``result`` is its position."""

    result: int


def no_axis(result: int) -> NoAxis:
    """The error for a result that is batched and gets no axis."""
    error = NoAxis(
        f"vmap: result {result} differs between lanes, and no axis is given for it",
        expected=f"an axis for result {result} in `out_axes`",
        found="None",
        remedy="give an axis, or return what depends on no batched input",
    )
    error.result = result
    return error


def normalized_axes(
    jaxpr: Jaxpr, size: int, in_axes: Sequence[int | None], out_axes: Axes
) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """All axes, counted from the front. Raises TransformError where one does not exist."""
    n_ins, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    if out_axes is None or isinstance(out_axes, int):
        targets: tuple[int | None, ...] = (out_axes,) * n_outs
    else:
        targets = tuple(out_axes)
    if not _is_integer(size) or size < 0:
        raise TransformError(
            "vmap: the number of lanes is wrong",
            expected="an integer, at least 0",
            found=repr(size),
        )
    if (len(in_axes), len(targets)) != (n_ins, n_outs):
        raise TransformError(
            "vmap needs one entry an input, and of `out_axes` one a result (or one for all)",
            expected=f"{n_ins} and {n_outs}",
            found=f"{len(in_axes)} and {len(targets)}",
        )
    sources = zip(in_axes, jaxpr.in_types, strict=True)
    results = zip(targets, jaxpr.out_types, strict=True)
    return (
        tuple(_counted(axis, t, jaxpr.name_of(i)) for i, (axis, t) in enumerate(sources)),
        tuple(_counted(axis, t, f"result {i}") for i, (axis, t) in enumerate(results)),
    )


def _is_integer(value: object) -> bool:
    """Whether the value is an integer (and no boolean)."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _counted(axis: int | None, lane: Type, name: str) -> int | None:
    """An axis of the batched type, counted from the front."""
    if axis is None:
        return None
    ndim = len(lane.shape) + 1
    if not _is_integer(axis) or not -ndim <= axis < ndim:
        raise TransformError(
            f"vmap: the batch axis of {name} does not exist",
            expected=f"None, or an integer from {-ndim} to {ndim - 1} ({lane} in one lane)",
            found=repr(axis),
        )
    return int(axis) % ndim


def checked_name(jaxpr: Jaxpr, size: int, name: str | None) -> str | None:
    """The name of the lanes, where the program uses it. Raises TransformError for another size."""
    if name is None:
        return None
    used = [axis for axis in jaxpr.free_axes if axis.name == name]
    if any(axis.size != size for axis in used):
        raise TransformError(
            f"vmap: the program uses the axis '{name}' at another size than it gets",
            expected=str(Axis(name, size)),
            found=", ".join(map(str, used)),
        )
    return name if used else None
