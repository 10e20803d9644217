"""Augmented assignment to references: ``r[i] += v`` is one accumulation.

Python reads ``r[i]``, adds ``v`` and writes the sum to ``r[i]``. A traced array remembers the read
that it is the result of, and a sum its read. A sum that is written to where its first operand was
read is an accumulation; the read and the sum are no part of the program, unless they are used.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from effax.arrays.array import Array
from effax.arrays.indexing import Selection
from effax.arrays.ref import Ref
from effax.arrays.traced_array import SumOfRead, TracedArray
from effax.ir.dtypes import family
from effax.ir.prims.common.operands import NUMBERS
from effax.ir.syntax import Var
from effax.ir.trace import current_trace


class ReadOfPart(NamedTuple):
    """The read of an array from a reference.

    Attributes:
        ref: the reference.
        var: its variable in the trace.
        chain: the indices as the user wrote them, each of the result of the previous one.
        at: the elements.
        first: the number of equations before the read.
        end: the number of equations after it.
    """

    ref: Ref
    var: Var
    chain: tuple[object, ...]
    at: Selection
    first: int
    end: int


def as_read(array: Array, read: ReadOfPart) -> Array:
    """Return the array, which remembers that it is the result of a read."""
    if type(array) is TracedArray:
        array.origin = read
    return array


def through(array: Array, ref: Ref, chain: tuple[object, ...]) -> Array:
    """Return the result of a read of a reference, as one by the indices of a view."""
    read = getattr(array, "origin", None)
    if isinstance(read, ReadOfPart) and read.ref is ref:
        as_read(array, read._replace(chain=chain))
    return array


def summand(ref: Ref, chain: tuple[object, ...], value: object) -> SumOfRead | None:
    """Return the sum of a read of these elements that ``value`` is; else None.

    Return None also where the sum and an accumulation differ: the sum has another shape or dtype,
    elements are selected twice, or the reference was changed since the read.
    """
    total = getattr(value, "origin", None)
    if not isinstance(total, SumOfRead):
        return None
    read, trace = cast("ReadOfPart", total.read), current_trace()
    assert type(value) is TracedArray
    if (
        trace is None
        or trace is not value.owner
        or read.ref is not ref
        or not _equal_indices(read.chain, chain)
    ):
        return None
    kept = value.type.shape == read.at.shape and value.type.dtype == ref.dtype
    if not kept or family(ref.dtype) not in NUMBERS or not read.at.is_distinct(ref.shape):
        return None
    if trace.changes.last(trace.builder.eqns, read.var) >= read.first:
        return None
    trace.changes.drop_if_unused(read.first, read.end)
    trace.changes.drop_if_unused(total.first, total.end)
    return total


def _equal_indices(a: object, b: object) -> bool:
    """Return whether two indices are equal, arrays by identity."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal_indices, a, b))
    if isinstance(a, slice) and isinstance(b, slice):
        return _equal_indices((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return a is b or (type(a) is int and type(b) is int and a == b)
