"""Vectorization of functions of elements, and interpolation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from effax import tree
from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.batching import vmap
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, expand_dims, reshape, slice_along
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip, mod
from effax.numpy.index import take
from effax.numpy.join import concatenate
from effax.numpy.predicates import isfinite, isinf
from effax.numpy.sorting import argsort, searchsorted

__all__ = [
    "apply_along_axis", "apply_over_axes", "interp", "vectorize",
]  # fmt: skip


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Return the piecewise linear interpolant of the points ``(xp, fp)`` at ``x``.

    Args:
        x: real array or scalar.
        xp: vector in ascending order, in any order if there is a period.
        fp: vector of the size of ``xp``.
        left: value before the first point, ``fp[0]`` by default; "extrapolate" continues the line.
        right: value after the last point, ``fp[-1]`` by default; likewise.
        period: period of ``x``; replaces ``left`` and ``right``.

    Returns:
        Inexact array of the shape of ``x``.

    Raises:
        IllTyped: ``xp`` and ``fp`` are not vectors of one size, or ``x`` is complex.
        BadArgument: ``left`` or ``right`` is another string.

    >>> jnp.interp(0.5, jnp.array([0.0, 1.0]), jnp.array([10.0, 20.0]))
    Array(15., dtype=float32)
    """
    dtype = pr.inexact(*pr.common_dtype((x, xp), "interp"))[0]
    at, places = (pr.converted(as_value(o), dtype, False) for o in (x, xp))
    values = as_value(fp, "the values of interp")
    values = pr.converted(values, pr.inexact(values.dtype, False)[0], False)
    if places.ndim != 1 or places.shape != values.shape or not places.size or is_complex(dtype):
        raise IllTyped(
            "interp takes coordinates of points",
            expected="real x, and two vectors of one size for xp and fp",
            found=f"{at.type}, {places.type}, {values.type}",
        )
    for side in (left, right):
        if isinstance(side, str) and side != "extrapolate":
            raise BadArgument("unknown extrapolation of interp", "'extrapolate'", repr(side))
    if period is not None:
        at, places, values = _unrolled(at, places, values, uf.absolute(period))
        left = right = None
    n = places.size
    upper = clip(searchsorted(places, at, side="right"), 1, n - 1) if n > 1 else None
    if upper is None:
        found = broadcast_to(take(values, 0), at.shape)
        return _ends(found, at, places, values, left, right)
    lower = uf.subtract(upper, 1)
    x0, x1, f0, f1 = (take(a, i) for a in (places, values) for i in (lower, upper))
    return _ends(_on_line(at, x0, x1, f0, f1), at, places, values, left, right)


def _on_line(at: Array, x0: Array, x1: Array, f0: Array, f1: Array) -> Array:
    """Return the value at ``at`` of the line through ``(x0, f0)`` and ``(x1, f1)``."""
    high = uf.invert(uf.bitwise_and(isfinite(f0), isfinite(f1)))
    wild = uf.bitwise_or(high, uf.bitwise_or(isinf(x0), isinf(x1)))
    # Beside an infinity the value is that of a point, or the infinite one between them.
    between = uf.where(high, uf.add(f0, f1), uf.where(isinf(x1), f0, f1))
    limit = uf.where(uf.equal(at, x1), f1, uf.where(uf.equal(at, x0), f0, between))
    at, x0, x1, f0, f1 = (uf.masked(uf.invert(wild), x) for x in (at, x0, x1, f0, f1))
    width = uf.subtract(x1, x0)
    # Of points at one coordinate, the last one counts; there is no slope between them.
    flat = uf.equal(width, 0)
    part = uf.true_divide(uf.subtract(at, x0), uf.where(flat, 1, width))
    line = uf.where(flat, f1, uf.add(f0, uf.multiply(part, uf.subtract(f1, f0))))
    return uf.where(wild, limit, line)


def _ends(
    found: Array,
    at: Array,
    places: Array,
    values: Array,
    left: ArrayLike | str | None,
    right: ArrayLike | str | None,
) -> Array:
    if not isinstance(left, str):
        start = take(values, 0) if left is None else left
        found = uf.where(uf.less(at, take(places, 0)), start, found)
    if not isinstance(right, str):
        end = take(values, -1) if right is None else right
        found = uf.where(uf.greater(at, take(places, -1)), end, found)
    return found


def _unrolled(at: Array, places: Array, values: Array, period: Array) -> tuple[Array, Array, Array]:
    """Map all coordinates into one period, and add the points before and after it."""
    at, places = mod(at, period), mod(places, period)
    order = argsort(places)
    places, values = take(places, order), take(values, order)
    n = places.size
    last, first = (slice_along(places, 0, i, i + 1) for i in (n - 1, 0))
    ends = [slice_along(values, 0, i, i + 1) for i in (n - 1, 0)]
    places = concatenate([uf.subtract(last, period), places, uf.add(first, period)])
    return at, places, concatenate([ends[0], values, ends[1]])


P = ParamSpec("P")
R = TypeVar("R")

_GROUP = re.compile(r"\(([^()]*)\)")


def vectorize(
    pyfunc: Callable[P, R],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[P, R]:
    """Return a function of arrays that applies ``pyfunc`` to elements by ``vmap`` and broadcasts.

    Args:
        pyfunc: function of elements.
        excluded: positions and names of arguments passed on unchanged, as None is.
        signature: axes of the elements, such as ``"(n,m),(m)->(n)"``; scalars by default.

    Returns:
        Function with the arguments of ``pyfunc``; all axes outside the signature broadcast.

    Raises:
        BadArgument: the signature is invalid, or does not fit the arguments.
        IllTyped: sizes of one name differ, or shapes do not broadcast.

    >>> jnp.vectorize(lambda x: x + 1)(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    given_fun = cast("Callable[..., object]", pyfunc)
    if not all(type(k) is str or (type(k) is int and k >= 0) for k in excluded):
        raise BadArgument("vectorize excludes positions and names", found=f"excluded={excluded}")
    inner, results = (None, None) if signature is None else _parsed(signature)

    @wraps(pyfunc)
    def vectorized(*args: P.args, **kwargs: P.kwargs) -> R:
        by_name = {k: v for k, v in kwargs.items() if k in excluded}
        names = [k for k in kwargs if k not in excluded]
        places = [i for i in range(len(args)) if i not in excluded]
        dims = _dims_of(inner, len(places) + len(names), signature)
        # None is passed on, like what is excluded.
        absent = {i for i in places if args[i] is None}
        if absent and signature is not None:
            raise BadArgument(f"None has no axes for {signature}", found=f"arguments {absent}")
        dims = [d for i, d in zip([*places, *names], dims, strict=True) if i not in absent]
        places = [i for i in places if i not in absent]
        given = [as_value(args[i], f"argument {i}") for i in places]
        given += [as_value(kwargs[k], k) for k in names]

        def element(*xs: object) -> object:
            full: list[object] = list(args)
            for i, x in zip(places, xs, strict=False):
                full[i] = x
            rest = dict(zip(names, xs[len(places) :], strict=True))
            made = given_fun(*full, **rest, **by_name)
            if results is not None:
                _check_results(made, results, sizes, signature)
            return made

        outer, sizes = _outer_shape(given, dims)
        mapped: Callable[..., object] = element
        aligned = []
        ranks = [x.ndim - len(d) for x, d in zip(given, dims, strict=True)]
        for x, rank in zip(given, ranks, strict=True):
            # Axes of size 1 are not mapped over: an element is computed once.
            kept = [n for n in x.shape[:rank] if n != 1]
            aligned.append(reshape(x, (*kept, *x.shape[rank:])))
        for back in range(1, len(outer) + 1):
            flags = [
                0 if back <= rank and x.shape[rank - back] != 1 else None
                for x, rank in zip(given, ranks, strict=True)
            ]
            if any(f is not None for f in flags):
                mapped = vmap(mapped, in_axes=tuple(flags))
        made = mapped(*aligned)
        return cast(R, _with_ones(made, outer, given, ranks))

    return vectorized


def _dims_of(
    inner: Sequence[Sequence[str]] | None, count: int, signature: str | None
) -> Sequence[Sequence[str]]:
    """Return the axes of each argument's elements. Raises BadArgument for another number."""
    dims = [()] * count if inner is None else inner
    if len(dims) != count:
        raise BadArgument(
            "the number of arguments differs from the signature",
            expected=f"{len(dims)} arguments for {signature}",
            found=str(count),
        )
    return dims


def _parsed(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    text = signature.replace(" ", "")
    left, arrow, right = text.partition("->")
    sides = []
    for side in (left, right):
        groups = [tuple(d for d in g.split(",") if d) for g in _GROUP.findall(side)]
        if not arrow or not groups or ",".join(f"({','.join(g)})" for g in groups) != side:
            raise BadArgument(
                "invalid signature",
                expected="groups of axes, as in '(n,m),(m)->(n)'",
                found=repr(signature),
            )
        sides.append(groups)
    return sides[0], sides[1]


def _check_results(
    made: object, results: Sequence[Sequence[str]], sizes: dict[str, int], signature: str | None
) -> None:
    """Raise IllTyped where a result of an element does not have the axes of the signature."""
    found = made if isinstance(made, tuple | list) else [made]
    if len(found) != len(results) or (len(results) > 1 and not isinstance(made, tuple | list)):
        raise BadArgument(
            "the number of results differs from the signature", str(len(results)), str(len(found))
        )
    sizes = dict(sizes)
    for i, (x, names) in enumerate(zip(found, results, strict=True)):
        type_ = as_value(x, f"result {i} of a vectorized function").type
        fits = len(type_.shape) == len(names)
        if not fits or any(
            sizes.setdefault(k, n) != n for k, n in zip(names, type_.shape, strict=False)
        ):
            raise IllTyped(
                f"result {i} of a vectorized function contradicts the signature {signature!r}",
                expected=", ".join(f"{k}={sizes[k]}" if k in sizes else k for k in names),
                found=str(type_),
            )


def _outer_shape(
    given: Sequence[Array], dims: Sequence[Sequence[str]]
) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the broadcast shape of other axes, and sizes. Raises IllTyped where sizes differ."""
    sizes: dict[str, int] = {}
    for x, names in zip(given, dims, strict=True):
        if x.ndim < len(names):
            raise IllTyped("an argument lacks axes", f"axes {', '.join(names)}", str(x.type))
        for name, n in zip(names, x.shape[x.ndim - len(names) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise IllTyped(
                    f"the axis {name} has two sizes", f"size {sizes[name]}", f"{n} in {x.type}"
                )
    shapes = [x.shape[: x.ndim - len(names)] for x, names in zip(given, dims, strict=True)]
    pr.check_ranks(shapes, "vectorize")
    return pr.broadcast_shapes(shapes, "vectorize"), sizes


def _with_ones(
    made: object,
    outer: tuple[int, ...],
    given: Sequence[Array],
    ranks: Sequence[int],
) -> object:
    """Restore the axes of size 1 that were not mapped over."""
    ones = [
        i
        for i, _ in enumerate(outer)
        if all(
            rank < len(outer) - i or x.shape[rank - (len(outer) - i)] == 1
            for x, rank in zip(given, ranks, strict=True)
        )
    ]
    return tree.map(lambda x: expand_dims(x, ones) if ones else x, made)


def apply_along_axis(
    func1d: Callable[..., ArrayLike], axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> Array:
    """Return the results of a function of vectors, applied to each vector along an axis.

    Args:
        func1d: function of a vector and the further arguments; it is traced once, on all vectors.
        axis: axis of the vectors.
        arr: array.
        *args: further arguments of the function.
        **kwargs: the same, by name.

    Returns:
        Array in which the axes of a result replace the axis.

    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    x = as_value(arr, "the array of apply_along_axis")
    place = plain_axis(axis, x.ndim, "apply_along_axis")

    def each(vector: Array) -> Array:
        return as_value(func1d(vector, *args, **kwargs), "a result of apply_along_axis")

    applied: Callable[[Array], Array] = each
    for _ in range(place):
        applied = cast("Callable[[Array], Array]", vmap(applied))
    for _ in range(x.ndim - 1 - place):
        # From the last axis on: each is mapped in the place that it has among those left.
        applied = cast("Callable[[Array], Array]", vmap(applied, in_axes=-1, out_axes=-1))
    return applied(x)


def apply_over_axes(
    func: Callable[[Array, int], ArrayLike], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """Return the result of a function such as :func:`sum`, applied along several axes in turn.

    Args:
        func: function of an array and an axis, which keeps the axis or drops it.
        a: array.
        axes: axes.

    Returns:
        Array with as many axes as ``a``.

    Raises:
        IllTyped: a result has neither as many axes as the operand, nor one less.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    x = as_value(a, "the array of apply_over_axes")
    for axis in [axes] if isinstance(axes, int) else axes:
        place = plain_axis(axis, x.ndim, "apply_over_axes")
        found = as_value(func(x, place), "a result of apply_over_axes")
        if found.ndim == x.ndim - 1:
            found = expand_dims(found, place)
        if found.ndim != x.ndim:
            raise IllTyped(
                "a function of apply_over_axes returned another number of axes",
                expected=f"{x.ndim} or {x.ndim - 1} axes",
                found=str(found.type),
            )
        x = found
    return x
