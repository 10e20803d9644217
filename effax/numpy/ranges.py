"""Ranges and grids of evenly spaced values."""

from __future__ import annotations

import math
from typing import Literal, cast, overload

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axis, static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value, from_numpy
from effax.arrays.creation import full, zeros
from effax.arrays.placed import on_device, placed_by
from effax.arrays.promotion import default_dtype
from effax.ir.dtypes import (
    DType,
    family,
    is_inexact_dtype,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota
from effax.ir.symbolic import is_symbolic_dim, max_dim
from effax.numpy import ufuncs as uf
from effax.numpy.join import concatenate

__all__ = [
    "arange", "geomspace", "linspace", "logspace", "meshgrid",
]  # fmt: skip


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return evenly spaced values in [start, stop).

    Args:
        start: first value; the stop, counted from 0, where ``stop`` is None.
        stop: end of the interval.
        step: distance of the values, 1 by default.
        dtype: dtype of the result, by promotion of the arguments by default.
        device: the first device, its platform, or a sharding over it; None is the first.
        out_sharding: sharding of the result, in place of a device.

    Returns:
        1-D array.

    Raises:
        IllTyped: an argument is not a scalar.
        BadArgument: ``step`` is 0, or an argument is complex.

    >>> jnp.arange(0, 6, 2)
    Array([0, 2, 4], dtype=int32)
    """
    given = [x for x in (start, stop, step) if x is not None]
    for x in given:
        if pr.shape_of(x):
            raise IllTyped("arange takes scalars", expected="scalars", found=str(x))
    if family(pr.common_dtype(given, "arange")[0]) == "complex":
        raise BadArgument("arange takes real numbers", "real numbers", str(given))
    made = _range(given, stop is None, step, dtype)
    return placed_by(made, device, out_sharding, "arange")


def _range(
    given: list[ArrayLike], to_first: bool, step: ArrayLike | None, dtype: DTypeLike | None
) -> Array:
    kind = default_dtype(dtype) if dtype is not None else pr.common_dtype(given, "arange")[0]
    if any(map(is_symbolic_dim, given)):
        ends = (0, given[0]) if to_first else (given[0], given[1])
        return _symbolic_range(*ends, step, kind)
    known = [cast(int, as_value(x, "an argument of arange").numpy()[()]) for x in given]
    first, last = (0, known[0]) if to_first else (known[0], known[1])
    by = 1 if step is None else cast(int, as_value(step).numpy()[()])
    if by == 0:
        raise BadArgument("arange takes no steps of zero", "a step that is not 0", "0")
    if family(kind) not in ("int", "uint") or any(
        is_inexact_dtype(np.asarray(x).dtype) for x in known
    ):
        if to_first and step is None:
            return bind1(Iota(kind, (max(0, math.ceil(last)),), 0))
        try:
            return from_numpy(np.arange(first, last, by, dtype=kind))
        except ValueError:
            found = f"{first} to {last} by {by}"
            raise BadArgument("an array is too large", "a finite range", found) from None
    count = len(range(int(first), int(last), int(by)))
    numbers = bind1(Iota(kind, (count,), 0))
    numbers = numbers if by == 1 else uf.multiply(numbers, int(by))
    return numbers if first == 0 else uf.add(numbers, int(first))


def _symbolic_range(start: object, stop: object, step: object, kind: DType) -> Array:
    """Return :func:`arange` for integers of which some are symbolic sizes."""
    first, last = (static_int(x, "an end of arange") for x in (start, stop))
    by = static_int(1 if step is None else step, "the step of arange")
    reach = last - first if by > 0 else first - last
    count = max_dim((reach + abs(by) - 1) // abs(by), 0)
    numbers = bind1(Iota(kind, (count,), 0))
    numbers = numbers if by == 1 else uf.multiply(numbers, by)
    return numbers if first == 0 else uf.add(numbers, first)


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Array: ...


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: object = None,
) -> tuple[Array, Array]: ...


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Array | tuple[Array, Array]:
    """Return ``num`` evenly spaced values from ``start`` to ``stop``.

    Args:
        start: first value or values.
        stop: last value or values; the ones after the last where ``endpoint`` is false.
        num: number of values.
        endpoint: whether to include ``stop``.
        retstep: whether to return the step as well.
        dtype: dtype of the result, an inexact one by default.
        axis: position of the new axis.
        device: the first device, its platform, or a sharding over it; None is the first.

    Returns:
        Array with a new axis of size ``num``, or a pair of it and the step.

    Raises:
        BadArgument: ``num`` is negative.

    >>> jnp.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    count = static_int(num, "num of linspace")
    if count < 0:
        raise BadArgument("`num` of linspace is negative", "num >= 0", str(count))
    kind, weak = pr.inexact(*pr.common_dtype((start, stop), "linspace"))
    first, last = (pr.converted(as_value(x), kind, weak) for x in (start, stop))
    shape = pr.broadcast_shapes([first.shape, last.shape], "linspace")
    first, last = pr.to_shape(first, shape), pr.to_shape(last, shape)
    gaps = count - 1 if endpoint else count
    inner = sh.expand_dims(first, 0) if count else zeros((0, *shape), kind)
    if gaps > 0:
        part = uf.true_divide(bind1(Iota(kind, (gaps,), 0)), gaps)
        part = sh.reshape(part, (gaps, *(1,) * len(shape)))
        # As a weighted mean of the ends, not start + i·step, so that rounding does not add up.
        inner = uf.add(uf.multiply(first, uf.subtract(1, part)), uf.multiply(last, part))
        if endpoint:
            inner = concatenate([inner, sh.expand_dims(last, 0)])
    made = sh.moveaxis(inner, 0, plain_axis(axis, inner.ndim, "linspace"))
    target = kind if dtype is None else default_dtype(dtype)
    if family(target) in ("int", "uint") and is_inexact_dtype(kind):
        from effax.numpy.arithmetic import floor_divide

        made = floor_divide(made, 1)
    made = on_device(pr.converted(made, target, False), device, "linspace")
    if not retstep:
        return made
    distance = (
        uf.true_divide(uf.subtract(last, first), gaps) if gaps > 0 else full((), float("nan"), kind)
    )
    return made, pr.converted(distance, kind, False)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return ``base ** linspace(start, stop, num)``.

    Args:
        start: first exponent or exponents.
        stop: last exponent or exponents.
        num: number of values.
        endpoint: whether to include ``stop``.
        base: base of the powers.
        dtype: dtype of the result, an inexact one by default.
        axis: position of the new axis.

    Returns:
        Array with a new axis of size ``num``.

    >>> jnp.logspace(0.0, 2.0, 3, base=2.0)
    Array([1., 2., 4.], dtype=float32)
    """
    from effax.numpy.arithmetic import power

    made = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else uf.astype(made, dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return numbers with equal ratios from one to another.

    Args:
        start: first number or numbers, not 0.
        stop: last number or numbers, of the sign of the first ones.
        num: number of values.
        endpoint: whether to include ``stop``.
        dtype: dtype of the result, an inexact one by default.
        axis: position of the new axis.

    Returns:
        Array with a new axis of size ``num``.

    >>> jnp.geomspace(1.0, 4.0, 3)
    Array([1., 2., 4.], dtype=float32)
    """
    kind, weak = pr.inexact(*pr.common_dtype((start, stop), "geomspace"))
    first, last = (pr.converted(as_value(x), kind, weak) for x in (start, stop))
    sign = uf.sign(first)
    low, high = (uf.log(uf.divide(x, sign)) for x in (first, last))
    made = uf.multiply(sign, uf.exp(linspace(low, high, num, endpoint)))
    if num > 0:
        made = made.at[0].set(first)
    if num > 1 and endpoint:
        made = made.at[-1].set(last)
    made = sh.moveaxis(made, 0, axis)
    return made if dtype is None else uf.astype(made, dtype)


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Return the coordinates of a grid from those along its axes.

    Args:
        xi: one vector per axis.
        copy: ignored; for compatibility with NumPy.
        sparse: whether each result has size 1 along the axes of the others.
        indexing: "xy" for a first axis of columns, "ij" for one of rows.

    Returns:
        Tuple of one array per vector.

    Raises:
        BadArgument: an unknown indexing.
        IllTyped: an argument is not a vector.

    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3]))
    (Array([[1, 2]], dtype=int32), Array([[3, 3]], dtype=int32))
    """
    if indexing not in ("xy", "ij"):
        raise BadArgument("unknown indexing of meshgrid", "'xy' or 'ij'", repr(indexing))
    vectors = [sh.atleast_1d(x) for x in xi]
    for i, v in enumerate(vectors):
        if v.ndim != 1:
            raise IllTyped(f"argument {i} of meshgrid is not a vector", "1 axis", str(v.type))
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    sizes = [1] * len(vectors)
    for v, axis in zip(vectors, order, strict=True):
        sizes[axis] = v.shape[0]
    made = []
    for v, axis in zip(vectors, order, strict=True):
        lone = sh.reshape(v, [v.shape[0] if i == axis else 1 for i in range(len(order))])
        made.append(lone if sparse else sh.broadcast_to(lone, sizes))
    return tuple(made)
