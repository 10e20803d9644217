"""Batching rules, under the names of ``jax.interpreters.batching``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from effax.arrays import promotion, shapes
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.drop_in.primitive import Declared
from effax.drop_in.rules import (
    AxisData,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    primitive_batchers,
)
from effax.ir.errors import IllTyped

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
]

not_mapped: Final = None
"""The batch axis of an operand or a result without one."""

Axes = Sequence[int | None]


def moveaxis(x: object, source: int, destination: int) -> Array:
    """Return an array with an axis at another position."""
    return shapes.moveaxis(as_value(x), source, destination)


def broadcast(x: object, size: int, axis: int, mesh_axis: object = None) -> Array:
    """Return an array with one more axis, along which it is repeated."""
    value = as_value(x)
    return moveaxis(promotion.to_shape(value, (size, *value.shape)), 0, axis)


def bdim_at_front(x: object, dim: int | None, size: int, mesh_axis: object = None) -> Array:
    """Return an array with its batch axis in front; one without is repeated."""
    return broadcast(x, size, 0) if dim is None else moveaxis(x, dim, 0)


def defvectorized(prim: Declared) -> None:
    """Declare that a primitive of one result applies to each element along every axis."""
    primitive_batchers[prim] = partial(_vectorized, prim)


def _vectorized(
    prim: Declared, args: Sequence[object], dims: Axes, **params: object
) -> tuple[object, int | None]:
    if any(d != dims[0] for d in dims):
        raise IllTyped(
            f"{prim.name} is declared vectorized, and its operands have different batch axes",
            expected=str(dims[0]),
            found=str(list(dims)),
            remedy="`batching.defbroadcasting(prim)`",
        )
    return prim.bind(*args, **params), dims[0]


def defbroadcasting(prim: Declared) -> None:
    """Declare that a primitive applies to each element of operands of the same number of axes."""
    primitive_batchers[prim] = partial(_broadcasting, prim)


def _broadcasting(
    prim: Declared, args: Sequence[object], dims: Axes, **params: object
) -> tuple[object, object]:
    values = [as_value(x) for x in args]
    size = next(x.shape[d] for x, d in zip(values, dims, strict=True) if d is not None)
    ndim = max(x.ndim - (d is not None) for x, d in zip(values, dims, strict=True))
    # A scalar stays one where no operand of it has a batch axis.
    moved = [
        x if d is None and not x.ndim else _with_axes(bdim_at_front(x, d, size), 1 + ndim)
        for x, d in zip(values, dims, strict=True)
    ]
    outs = prim.bind(*moved, **params)
    if prim.multiple_results:
        return outs, [0] * len(cast("Sequence[object]", outs))
    return outs, 0


def _with_axes(x: Array, ndim: int) -> Array:
    return x.reshape((*x.shape, *(1 for _ in range(ndim - x.ndim))))


def defreducer(prim: Declared) -> None:
    """Declare that a primitive of one operand reduces the axes in its parameter ``axes``."""
    primitive_batchers[prim] = partial(_reducing, prim)


def _reducing(
    prim: Declared, args: Sequence[object], dims: Axes, axes: Sequence[int], **params: object
) -> tuple[object, int]:
    moved = moveaxis(args[0], cast(int, dims[0]), 0)
    return prim.bind(moved, axes=tuple([a + 1 for a in axes]), **params), 0
