"""The batch axes of inputs and results: checked, and counted from the front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.axes import Axis
from effax.ir.errors import TransformError
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type

Axes = int | None | Sequence[int | None]


class NoAxis(TransformError):
    """A batched result without an axis in ``out_axes``; ``result`` is its position."""

    result: int


def no_axis(result: int) -> NoAxis:
    """Return the error for a batched result without an axis in ``out_axes``."""
    error = NoAxis(
        f"vmap: result {result} is batched, but has no axis in `out_axes`",
        expected=f"an axis for result {result}",
        found="None",
        remedy="set an axis, or return a value that depends on no batched input",
    )
    error.result = result
    return error


def normalized_axes(
    jaxpr: Jaxpr, size: int, in_axes: Sequence[int | None], out_axes: Axes
) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Return the axes of inputs and results, counted from the front.

    Raises TransformError: an entry is missing, or an axis is out of range.
    """
    n_ins, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    if out_axes is None or isinstance(out_axes, int):
        targets: tuple[int | None, ...] = (out_axes,) * n_outs
    else:
        targets = tuple(out_axes)
    if not (_is_integer(size) or is_symbolic_dim(size)) or size < 0:
        raise TransformError(
            "vmap: the batch size is invalid",
            expected="an integer, at least 0",
            found=repr(size),
        )
    if (len(in_axes), len(targets)) != (n_ins, n_outs):
        raise TransformError(
            "vmap needs one entry for each input, and of `out_axes` for each result (or for all)",
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
    """Return whether the value is an integer, booleans excluded."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _counted(axis: int | None, type_: Type, name: str) -> int | None:
    """Return an axis of the batched type, counted from the front; ``type_`` is unbatched."""
    if axis is None:
        return None
    ndim = len(type_.shape) + 1
    if not _is_integer(axis) or not -ndim <= axis < ndim:
        raise TransformError(
            f"vmap: the batch axis of {name} is out of range",
            expected=f"None, or an integer from {-ndim} to {ndim - 1} (of {type_}, batched)",
            found=repr(axis),
        )
    return int(axis) % ndim


def checked_name(jaxpr: Jaxpr, size: int, name: str | None) -> str | None:
    """Return the axis name if the program uses it. Raises TransformError for another size."""
    if name is None:
        return None
    used = [axis for axis in jaxpr.free_axes if axis.name == name]
    if any(axis.size != size for axis in used):
        raise TransformError(
            f"vmap: the program uses the axis '{name}' at a size other than the batch size",
            expected=str(Axis(name, size)),
            found=", ".join(map(str, used)),
        )
    return name if used else None
