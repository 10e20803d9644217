"""Sets, as vectors of distinct elements in ascending order."""

from __future__ import annotations

from typing import Final, NamedTuple, overload

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import full
from effax.arrays.joining import concatenate
from effax.arrays.shapes import ravel
from effax.arrays.shared_docs import shared_docs
from effax.numpy import ufuncs as uf
from effax.numpy.index import take
from effax.numpy.positions import nonzero, where
from effax.numpy.ranges import arange
from effax.numpy.reduce import sum
from effax.numpy.sorting import isin, ranked, searchsorted, unique

__all__ = [
    "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "intersect1d", "setdiff1d",
    "setxor1d", "union1d", "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


_PARAMETERS: Final = {
    "x": "array; of known value where ``size`` is None.",
    "ar1": "array, flattened; of known value where ``size`` is None.",
    "ar2": "another one.",
    "assume_unique": "no effect: elements are compared all the same.",
    "size": "number of elements to return, truncated or filled up.",
    "fill_value": "padding up to ``size``; the first element by default.",
}


class UniqueAllResult(NamedTuple):
    """Distinct elements, indices of first occurrences, inverse and counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Distinct elements, and the indices that restore the array from them."""

    values: Array
    inverse_indices: Array


@shared_docs(
    _PARAMETERS,
    "Vectors of the elements and of the indices of their first occurrences, array of the shape of "
    "``x`` that restores it, and vector of counts.",
)
def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """Return the distinct elements in ascending order, with indices, inverse and counts.

    Each nan is an element of its own.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAllResult(*_parts(x, True, True, True, size, fill_value))


@shared_docs(_PARAMETERS, "Vector of elements, and vector of counts.")
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Return the distinct elements in ascending order, and how often each occurs.

    Each nan is an element of its own.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueCountsResult(*_parts(x, False, False, True, size, fill_value))


@shared_docs(_PARAMETERS, "Vector of elements, and array of indices in the shape of ``x``.")
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Return the distinct elements in ascending order, and the indices that restore the array.

    Each nan is an element of its own.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverseResult(*_parts(x, False, True, False, size, fill_value))


@shared_docs(_PARAMETERS, "Vector of elements.")
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements in ascending order. Each nan is an element of its own.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return _parts(x, False, False, False, size, fill_value)[0]


def _parts(
    x: ArrayLike,
    index: bool,
    inverse: bool,
    counts: bool,
    size: int | None,
    fill_value: ArrayLike | None,
) -> tuple[Array, ...]:
    found = unique(x, index, inverse, counts, equal_nan=False, size=size, fill_value=fill_value)
    return found if isinstance(found, tuple) else (found,)


@shared_docs(_PARAMETERS, "Vector in ascending order.")
def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the distinct elements that are in either array.

    >>> jnp.union1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    parts = ranked(concatenate(_vectors(ar1, ar2, "union1d")), True)
    return _chosen(parts.starts, size, fill_value, parts.rows)[0]


def _vectors(ar1: ArrayLike, ar2: ArrayLike, what: str) -> list[Array]:
    dtype, _ = pr.common_dtype((ar1, ar2), what)
    return [pr.converted(ravel(as_value(x)), dtype, False) for x in (ar1, ar2)]


def _chosen(
    mask: Array, size: int | None, fill_value: ArrayLike | None, *vectors: Array
) -> list[Array]:
    """Return the parts of vectors where the mask is true, filled up to a size.

    The fill value is that of the first vector; others, and it by default, repeat their first part.
    """
    if size is None:
        return [x[mask] for x in vectors]
    n = mask.size
    if not n:
        return [full(size, 0 if fill_value is None else fill_value, x.dtype) for x in vectors]
    (at,) = nonzero(mask, size=size, fill_value=n)
    beyond = at >= n
    first = at[:1]
    found = [take(x, where(beyond, first, at), mode="clip") if n else x for x in vectors]
    if fill_value is not None:
        found[0] = where(beyond, uf.astype(as_value(fill_value), found[0].dtype), found[0])
    return found


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = ...,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = ...,
    return_indices: bool = ...,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array | tuple[Array, Array, Array]: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Return the distinct elements that are in both arrays.

    Args:
        ar1: array, flattened; of known value where ``size`` is None.
        ar2: another one.
        assume_unique: no effect: elements are compared all the same.
        return_indices: whether to return the indices of first occurrences in both flattened arrays,
            padded with the numbers of elements of these.
        size: number of elements to return, truncated or filled up.
        fill_value: padding up to ``size``; the first element by default.

    Returns:
        Vector in ascending order, or a triple of it and two vectors of indices.

    >>> jnp.intersect1d(jnp.array([1, 3, 4]), jnp.array([4, 3]))
    Array([3, 4], dtype=int32)
    """
    x, y = _vectors(ar1, ar2, "intersect1d")
    parts = ranked(x, True)
    mask = parts.starts & isin(parts.rows, y)
    values, first = _chosen(mask, size, fill_value, parts.rows, parts.order)
    if not return_indices:
        return values
    others = ranked(y, True)
    place = searchsorted(others.rows, take(x, first, mode="clip") if x.size else values)
    second = take(others.order, place, mode="clip") if y.size else first
    if size is None:
        return values, first, second
    beyond = arange(size) >= sum(mask)
    return values, where(beyond, x.size, first), where(beyond, y.size, second)


@shared_docs(
    _PARAMETERS,
    "Vector in ascending order.",
    assume_unique="whether the elements of ``ar1`` are distinct; their order is kept then.",
    fill_value="padding up to ``size``; 0 by default.",
)
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the distinct elements of the first array that are not in the second.

    >>> jnp.setdiff1d(jnp.array([1, 3, 4]), jnp.array([4]))
    Array([1, 3], dtype=int32)
    """
    x, y = ravel(as_value(ar1)), ravel(as_value(ar2))
    fill = 0 if fill_value is None else fill_value
    if assume_unique:
        return _chosen(isin(x, y, invert=True), size, fill, x)[0]
    parts = ranked(x, True)
    mask = parts.starts & isin(parts.rows, y, invert=True)
    return _chosen(mask, size, fill, parts.rows)[0]


@shared_docs(_PARAMETERS, "Vector in ascending order.")
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the distinct elements that are in one of the arrays only.

    >>> jnp.setxor1d(jnp.array([1, 3, 4]), jnp.array([4, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, y = _vectors(ar1, ar2, "setxor1d")
    parts = ranked(concatenate([x, y]), True)
    if assume_unique:
        mask = parts.starts & concatenate([parts.starts[1:], full(min(parts.starts.size, 1), True)])
    else:
        mask = parts.starts & ~(isin(parts.rows, x) & isin(parts.rows, y))
    return _chosen(mask, size, fill_value, parts.rows)[0]
