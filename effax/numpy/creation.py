"""Making arrays: from Python and NumPy values, filled, counted, diagonal, triangular."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, cast, overload

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import config
from effax.arrays.device_array import (
    Array,
    ArrayLike,
    DTypeLike,
    TracedArray,
    as_value,
    from_numpy,
    is_python_scalar,
    not_an_array,
)
from effax.arrays.ref import Ref
from effax.ir.dtypes import (
    DType,
    family,
    int_bounds,
    is_complex,
    is_inexact_dtype,
    promote,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import BroadcastInDim, Copy, Iota
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType, Shape, array_type
from effax.numpy import promotion as pr
from effax.numpy import shapes as sh
from effax.numpy import ufuncs as uf
from effax.numpy.axes import plain_axis, plain_shape, static_int
from effax.numpy.dtypes import default_dtype, dtype_of
from effax.numpy.join import concatenate, stack
from effax.numpy.padding import pad

__all__ = [
    "arange", "array", "asarray", "copy", "diag", "diagflat", "empty", "empty_like", "eye",
    "full", "full_like", "identity", "linspace", "logspace", "meshgrid", "ones", "ones_like",
    "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

ShapeLike = int | Sequence[int]


def array(
    object: object,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
) -> Array:
    """An array of a number, an array of any library, or nested sequences of them.

    Args:
        object: what the array is made from.
        dtype: of the array; by default the one in which its elements meet.
        copy: kept for likeness with NumPy; arrays are immutable, and are never shared with others.
        order: kept for likeness with NumPy; arrays are in row-major order.
        ndmin: the least number of axes; missing ones are put in front.

    Raises:
        IllTyped: ``object`` is none of these (a reference, a string, ...).
        BadArgument: nested sequences have different lengths.
    """
    made = asarray(object, dtype, order, copy=copy)
    missing = ndmin - made.ndim
    return sh.expand_dims(made, tuple(range(missing))) if missing > 0 else made


def asarray(
    a: object, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None
) -> Array:
    """As :func:`array`; an array of the right dtype is given back as it is."""
    if order not in (None, "K", "A", "C"):
        raise BadArgument("arrays are in row-major order", "order 'C' or 'K'", repr(order))
    if isinstance(a, Array):
        made = a if dtype is None else uf.astype(a, dtype)
        return bind1(Copy(), made) if copy and made is a and type(a) is TracedArray else made
    if is_python_scalar(a):
        return _number(a, dtype)
    if isinstance(a, np.ndarray | np.generic):
        made = as_value(a, "the argument of asarray")
        return made if dtype is None else uf.astype(made, dtype)
    if isinstance(a, list | tuple | range):
        return _nested(list(a), dtype)
    if not isinstance(a, Ref) and (hasattr(a, "__array__") or isinstance(a, memoryview)):
        return asarray(np.asarray(a), dtype)
    raise not_an_array(a, "the argument of asarray")


def _number(x: bool | int | float | complex, dtype: DTypeLike | None) -> Array:
    if dtype is None:
        return as_value(x)
    target = default_dtype(dtype)
    if isinstance(x, complex) and not is_complex(target):
        raise IllTyped("a complex number has no value in a real dtype", str(target), str(x))
    return filled((), x, array_type((), target))


def _leaves(a: Sequence[object]) -> Iterator[object]:
    for x in a:
        if isinstance(x, list | tuple):
            yield from _leaves(x)
        else:
            yield x


def _nested(a: list[object], dtype: DTypeLike | None) -> Array:
    leaves = list(_leaves(a))
    target = _dtype_of_leaves(leaves) if dtype is None else default_dtype(dtype)
    if any(isinstance(x, TracedArray) for x in leaves):
        return stack([asarray(x, target) for x in a])
    try:
        plain = _plain(a) if any(isinstance(x, Array) for x in leaves) else a
        value = np.array(plain, None if leaves else target)
    except (ValueError, OverflowError) as error:
        raise BadArgument(
            "nested sequences are not an array", "equal lengths on each level", str(error)
        ) from None
    if value.dtype.kind in "OUSMm":
        raise IllTyped("an array of things that are no numbers", found=str(value.dtype))
    if value.dtype.kind in "iu" and family(target) in ("int", "uint"):
        low, high = int_bounds(target)
        if value.size and not low <= value.min() <= value.max() <= high:
            raise BadArgument(
                "an integer does not fit into the dtype",
                f"{low} to {high}, for {target}",
            )
    return from_numpy(value.astype(target))


def _plain(x: object) -> object:
    if isinstance(x, list | tuple):
        return [_plain(y) for y in x]
    return x.numpy() if isinstance(x, Array) else x


def _dtype_of_leaves(leaves: Sequence[object]) -> DType:
    kinds = {type(x): x for x in leaves if is_python_scalar(x)}
    others = [x for x in leaves if type(x) not in kinds]
    for x in others:
        if not isinstance(x, Array | np.ndarray | np.generic):
            raise not_an_array(x, "an element")
    operands = list(dict.fromkeys(dtype_of(x) for x in [*kinds.values(), *others]))
    return promote(operands, config.enable_x64)[0] if operands else default_dtype(None)


def copy(a: ArrayLike) -> Array:
    """The array in memory of its own."""
    return bind1(Copy(), as_value(a))


def filled(shape: Shape, value: bool | int | float | complex, type_: ArrayType) -> Array:
    """An array of one number, of the dtype and weakness of ``type_``."""
    constant = pr.literal(value, array_type((), type_.dtype, type_.weak))
    trace = current_trace()
    if trace is not None and not shape:
        return TracedArray(trace, constant)
    return bind1(BroadcastInDim(shape, ()), constant)


def zeros(shape: ShapeLike, dtype: DTypeLike | None = None) -> Array:
    """Zeros."""
    return filled(plain_shape(shape, "zeros"), 0, array_type((), default_dtype(dtype)))


def ones(shape: ShapeLike, dtype: DTypeLike | None = None) -> Array:
    """Ones."""
    return filled(plain_shape(shape, "ones"), 1, array_type((), default_dtype(dtype)))


def empty(shape: ShapeLike, dtype: DTypeLike | None = None) -> Array:
    """Zeros, as JAX's."""
    return zeros(shape, dtype)


def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """``fill_value`` everywhere; it is broadcast where it is an array."""
    sizes = plain_shape(shape, "full")
    kind, weak = (default_dtype(dtype), False) if dtype is not None else dtype_of_fill(fill_value)
    if is_python_scalar(fill_value) and not isinstance(fill_value, complex):
        return filled(sizes, _in_kind(fill_value, kind), array_type((), kind, weak))
    value = pr.converted(as_value(fill_value, "the fill value"), kind, weak)
    return sh.broadcast_to(value, sizes)


def dtype_of_fill(fill_value: object) -> tuple[DType, bool]:
    """The dtype of a fill value and whether it is weak."""
    return pr.operand_kind(fill_value, "the fill value")


def _in_kind(x: bool | int | float, dtype: DType) -> bool | int | float:
    """The number as an element of the dtype would have it: floats truncate to integers."""
    return int(x) if family(dtype) in ("int", "uint") else x


def zeros_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None
) -> Array:
    """Zeros of the shape and dtype of ``a``."""
    return full_like(a, 0, dtype, shape)


def ones_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None
) -> Array:
    """Ones of the shape and dtype of ``a``."""
    return full_like(a, 1, dtype, shape)


def empty_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None
) -> Array:
    """Zeros of the shape and dtype of ``a``."""
    return full_like(a, 0, dtype, shape)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
) -> Array:
    """``fill_value`` everywhere, in the shape and dtype of ``a``."""
    kind, weak = pr.operand_kind(a, "the array that is imitated")
    if dtype is not None:
        kind, weak = default_dtype(dtype), False
    sizes = pr.shape_of(a) if shape is None else plain_shape(shape, "full_like")
    if is_python_scalar(fill_value) and not isinstance(fill_value, complex):
        return filled(sizes, _in_kind(fill_value, kind), array_type((), kind, weak))
    return sh.broadcast_to(uf.astype(fill_value, kind), sizes)


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers from ``start`` (0 where only one is given) up to ``stop``, which is not reached."""
    given = [x for x in (start, stop, step) if x is not None]
    for x in given:
        if pr.shape_of(x):
            raise IllTyped("arange counts in scalars", expected="scalars", found=str(x))
    kind = default_dtype(dtype) if dtype is not None else pr.common_dtype(given, "arange")[0]
    known = [cast(int, as_value(x, "an argument of arange").numpy()[()]) for x in given]
    first, last = (0, known[0]) if stop is None else (known[0], known[1])
    by = 1 if step is None else cast(int, as_value(step).numpy()[()])
    if by == 0:
        raise BadArgument("arange counts in steps of zero", "a step that is not 0", "0")
    if family(kind) not in ("int", "uint") or any(
        is_inexact_dtype(np.asarray(x).dtype) for x in known
    ):
        if stop is None and step is None:
            return bind1(Iota(kind, (max(0, math.ceil(last)),), 0))
        return from_numpy(np.arange(first, last, by, dtype=kind))
    count = len(range(int(first), int(last), int(by)))
    numbers = bind1(Iota(kind, (count,), 0))
    numbers = numbers if by == 1 else uf.multiply(numbers, int(by))
    return numbers if first == 0 else uf.add(numbers, int(first))


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
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
) -> tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array | tuple[Array, Array]:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last of them.

    Args:
        start: the first number, or an array of first numbers.
        stop: the last number (the one after it where ``endpoint`` is false).
        num: how many.
        endpoint: whether ``stop`` is one of them.
        retstep: whether the distance is a second result.
        dtype: of the result; by default a floating one.
        axis: where the new axis goes, if the ends are arrays.
    """
    count = static_int(num, "num of linspace")
    if count < 0:
        raise BadArgument("linspace of a negative number of points", "num >= 0", str(count))
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
    made = pr.converted(made, target, False)
    if not retstep:
        return made
    distance = (
        uf.true_divide(uf.subtract(last, first), gaps)
        if gaps > 0
        else full_like(first, float("nan"))
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
    """``base`` to the power of ``linspace``."""
    from effax.numpy.arithmetic import power

    made = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else uf.astype(made, dtype)


def _counted(shape: Shape, axis: int) -> Array:
    return bind1(Iota(np.dtype(np.int32), shape, axis))


def _on_or_below(shape: Shape, k: int) -> Array:
    """Whether a position's column is at most its row + k."""
    rows = _counted(shape, 0)
    return uf.greater_equal(uf.add(rows, k) if k else rows, _counted(shape, 1))


def _diagonal_mask(shape: Shape, k: int) -> Array:
    rows = _counted(shape, 0)
    return uf.equal(uf.add(rows, k) if k else rows, _counted(shape, 1))


def eye(
    N: int,  # noqa: N803  NumPy's name
    M: int | None = None,  # noqa: N803  NumPy's name
    k: int = 0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Ones on the ``k``-th diagonal of an N×M matrix, zeros elsewhere."""
    shape = plain_shape((N, N if M is None else M), "eye")
    return uf.astype(_diagonal_mask(shape, k), default_dtype(dtype))


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n×n identity matrix."""
    return eye(n, dtype=dtype)


def tri(
    N: int,  # noqa: N803  NumPy's name
    M: int | None = None,  # noqa: N803  NumPy's name
    k: int = 0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Ones on and below the ``k``-th diagonal of an N×M matrix, zeros above."""
    shape = plain_shape((N, N if M is None else M), "tri")
    return uf.astype(_on_or_below(shape, k), default_dtype(dtype))


def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrices with zeros above the ``k``-th diagonal."""
    value = _matrices(m, "tril")
    below = _on_or_below(value.shape[-2:], k)
    return uf.masked(sh.broadcast_to(below, value.shape), value)


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrices with zeros below the ``k``-th diagonal."""
    value = _matrices(m, "triu")
    above = uf.invert(_on_or_below(value.shape[-2:], k - 1))
    return uf.masked(sh.broadcast_to(above, value.shape), value)


def _matrices(m: ArrayLike, what: str) -> Array:
    value = as_value(m, f"the argument of {what}")
    if value.ndim < 2:
        raise IllTyped(f"{what} takes matrices", expected="at least 2 axes", found=str(value.type))
    return value


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with ``v`` on its ``k``-th diagonal; of a matrix, its ``k``-th diagonal."""
    value = as_value(v, "the argument of diag")
    if value.ndim == 2:
        return sh.diagonal(value, k)
    if value.ndim != 1:
        raise IllTyped("diag takes a vector or a matrix", "1 or 2 axes", str(value.type))
    n = value.shape[0] + abs(k)
    padded = pad(value, (max(0, k), max(0, -k)))
    return uf.masked(_diagonal_mask((n, n), k), sh.broadcast_to(padded, (n, n)))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of ``v`` on its ``k``-th diagonal."""
    return diag(sh.ravel(v), k)


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """The coordinates of a grid from those of its axes.

    Args:
        xi: a vector an axis.
        copy: kept for likeness with NumPy.
        sparse: whether each result keeps size 1 on the axes of the others.
        indexing: "xy" for columns first, "ij" for rows first.
    """
    if indexing not in ("xy", "ij"):
        raise BadArgument("meshgrid has two ways of indexing", "'xy' or 'ij'", repr(indexing))
    vectors = [sh.atleast_1d(x) for x in xi]
    for i, v in enumerate(vectors):
        if v.ndim != 1:
            raise IllTyped(f"argument {i} of meshgrid is no vector", "1 axis", str(v.type))
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
    return made
