"""``associative_scan``: all prefix combinations in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from effax import tree
from effax.arrays.argument_checks import as_integer, check_callable
from effax.arrays.array import Array
from effax.arrays.tracing import check_same_tree
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.lax import shape
from effax.lax.carries import no_refs
from effax.lax.leaves import Leaves, leaves_of

__all__ = ["associative_scan"]

T = TypeVar("T")

Combine = Callable[[Sequence[Array], Sequence[Array]], list[Array]]


def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """Return the prefix combinations of elements along an axis: ``x0, fn(x0, x1), ...``.

    ``fn`` is called ``2·log2 n`` times on whole slices, with fewer than ``2·n`` elements in all:
    adjacent elements are combined first, then the prefixes of those.

    Args:
        fn: associative function of two trees of slices to one like them.
        elems: tree of arrays of one size along the axis.
        reverse: whether to scan from the last element to the first.
        axis: axis to scan along.

    Returns:
        Tree like ``elems``.

    Raises:
        IllTyped: sizes along the axis differ, or ``fn`` returns another structure or type.
        BadArgument: ``fn`` is not a function, or the axis is out of range.
        RefError: an element is a reference.

    >>> lax.associative_scan(lax.add, jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    check_callable(fn, "associative_scan")
    given = leaves_of(elems, "elems")
    no_refs(given, "associative_scan")
    arrays = [x for x in given.leaves if isinstance(x, Array)]
    if not arrays:
        return elems
    places = [_place(axis, x, name) for x, name in zip(arrays, given.names, strict=True)]
    _check_sizes([x.shape[p] for x, p in zip(arrays, places, strict=True)], given)
    run = _Run(_combining(fn, given), places)
    if reverse:
        arrays = run.reversed(arrays)
    found = run.prefixes(arrays)
    made: T = tree.unflatten(given.treedef, run.reversed(found) if reverse else found)
    return made


def _place(axis: object, x: Array, name: str) -> int:
    place = as_integer(axis, "associative_scan: axis")
    if not -x.ndim <= place < x.ndim:
        raise BadArgument(
            f"associative_scan: axis out of range of {name}",
            expected=f"{-x.ndim} to {x.ndim - 1}" if x.ndim else "an array with axes",
            found=f"{place}, of {x.type}",
        )
    return place % x.ndim


def _check_sizes(sizes: Sequence[int], given: Leaves) -> None:
    if len(set(sizes)) > 1:
        found = ", ".join([f"{n} for {name}" for n, name in zip(sizes, given.names, strict=True)])
        raise IllTyped(
            "associative_scan: sizes along the axis differ", expected="one size", found=found
        )


def _combining(fn: Callable[[T, T], T], given: Leaves) -> Combine:
    """Return the user's function on leaves, which checks results against arguments."""

    def combine(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
        result = fn(tree.unflatten(given.treedef, first), tree.unflatten(given.treedef, second))
        found = leaves_of(result, "the result of fn")
        check_same_tree(found.treedef, given.treedef, "associative_scan: the result of fn")
        outs = [x for x in found.leaves if isinstance(x, Array)]
        for x, ct_spec, name in zip(outs, first, given.names, strict=True):
            if not fits(x.type, ct_spec.type):
                raise IllTyped(
                    f"associative_scan: fn changes the type of {name}",
                    expected=str(ct_spec.type),
                    found=str(x.type),
                )
        return outs

    return combine


class _Run:
    """Run the algorithm on arrays, each with its axis."""

    def __init__(self, combine: Combine, axes: Sequence[int]) -> None:
        self.combine = combine
        self.axes = axes

    def reversed(self, arrays: Sequence[Array]) -> list[Array]:
        return [shape.rev(x, (axis,)) for x, axis in zip(arrays, self.axes, strict=True)]

    def part(self, arrays: Sequence[Array], start: int, stop: int, step: int = 1) -> list[Array]:
        return [
            shape.slice_in_dim(x, start, stop, step, axis)
            for x, axis in zip(arrays, self.axes, strict=True)
        ]

    def prefixes(self, arrays: Sequence[Array]) -> list[Array]:
        n = arrays[0].shape[self.axes[0]]
        if n < 2:
            return list(arrays)
        # Pairs of neighbours; their prefixes are those of the elements at odd positions.
        pairs = self.combine(self.part(arrays, 0, n - 1, 2), self.part(arrays, 1, n, 2))
        odd = self.prefixes(pairs)
        # The prefix before an element at an even position, combined with that element.
        n_even = (n + 1) // 2
        even = self.part(arrays, 0, 1)
        if n_even > 1:
            later = self.combine(self.part(odd, 0, n_even - 1), self.part(arrays, 2, n, 2))
            even = self.joined(even, later)
        return self.interleaved(even, odd)

    def joined(self, first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
        return [
            shape.concatenate([x, y], axis)
            for x, y, axis in zip(first, second, self.axes, strict=True)
        ]

    def interleaved(self, even: Sequence[Array], odd: Sequence[Array]) -> list[Array]:
        """Elements of both in turn; ``even`` has as many as ``odd``, or one more."""
        n_even, n = even[0].shape[self.axes[0]], odd[0].shape[self.axes[0]]
        found = []
        for x, y, axis in zip(self.part(even, 0, n), odd, self.axes, strict=True):
            both = shape.stack([x, y], axis + 1)
            found.append(shape.reshape(both, (*x.shape[:axis], 2 * n, *x.shape[axis + 1 :])))
        return self.joined(found, self.part(even, n, n_even)) if n_even > n else found
