"""Arrays without a value: the symbols of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast, final

import numpy as np

from effax.arrays.arithmetic import Arithmetic
from effax.arrays.array import Array, ArrayLike
from effax.arrays.operators import ops
from effax.ir.errors import (
    ArrayConversionError,
    BoolConversionError,
    ConcretizationError,
    IntegerConversionError,
)
from effax.ir.syntax import Atom
from effax.ir.trace import Trace, current_trace
from effax.ir.types import ArrayType

if TYPE_CHECKING:
    from effax.arrays.sharding import Sharding


class TraceOf(NamedTuple):
    """The trace of a symbol, as JAX's libraries read it.

    Attributes:
        main: the trace; one object for all of its symbols.
    """

    main: Trace


class SumOfRead(NamedTuple):
    """A sum ``read + value`` or a difference ``read - value``, made by ``+=`` or ``-=``.

    Attributes:
        read: the read of a reference.
        value: the second operand.
        negated: whether it is a difference.
        first: the number of equations before the sum.
        end: the number of equations after it.
    """

    read: object
    value: ArrayLike
    negated: bool
    first: int
    end: int


@final
class TracedArray(Array):
    """An atom of a program that is being traced, as an array without a known value.

    Attributes:
        origin: the read of a reference that it is the result of, or a sum of one; else unset.
    """

    # Few arrays have an origin, and one slot less to set is faster.
    __slots__ = ("atom", "origin", "owner")

    origin: object

    def __init__(self, trace: Trace, atom: Atom) -> None:
        self.owner: Trace = trace
        self.atom: Atom = atom

    @property
    def _trace(self) -> TraceOf:
        return TraceOf(self.owner)

    @property
    def type(self) -> ArrayType:
        return self.atom.type  # type: ignore[return-value]  # handles of references are TracedRefs

    def placed(self, sharding: Sharding | None) -> Array:
        """Return the array with a sharding, by an equation where it is over devices.

        Raises IllTyped where the sharding does not divide it.
        """
        if sharding is None:
            return self
        sharding.shard_shape(self.shape)
        return ops.constrain(self, sharding)

    def numpy(self) -> np.ndarray:
        return np.asarray(self.owner.value_of(self.atom))

    def __iadd__(self, other: ArrayLike) -> Array:
        return _augmented(self, other, Arithmetic.__add__, False)

    def __isub__(self, other: ArrayLike) -> Array:
        return _augmented(self, other, Arithmetic.__sub__, True)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        instead = "`effax.numpy`, which takes symbols"
        with (
            concretization(ArrayConversionError),
            _explained("NumPy expects values, got", instead),
        ):
            return Array.__array__(self, dtype, copy)

    def __bool__(self) -> bool:
        with concretization(BoolConversionError):
            return Array.__bool__(self)

    def __index__(self) -> int:
        with concretization(IntegerConversionError):
            return Array.__index__(self)

    def __float__(self) -> float:
        with _explained(
            "a Python number needs a value, got", "`effax.numpy` in the place of `math`"
        ):
            return Array.__float__(self)

    def __repr__(self) -> str:
        return f"Traced<{self.atom.type}> in {self.owner.label}"

    def __deepcopy__(self, memo: dict[int, object]) -> TracedArray:
        return self


def _augmented(
    x: TracedArray, other: ArrayLike, add: Callable[[Array, ArrayLike], Array], negated: bool
) -> Array:
    """Return the sum of an array that was read from a reference; else leave it to the operator."""
    read = getattr(x, "origin", None)
    if read is None or isinstance(read, SumOfRead) or current_trace() is not x.owner:
        return cast("Array", NotImplemented)
    value = getattr(type(other), "__jax_array__", None)
    other = other if value is None else value(other)
    eqns = x.owner.builder.eqns
    first = len(eqns)
    total = add(x, other)
    if type(total) is TracedArray:
        total.origin = SumOfRead(read, other, negated, first, len(eqns))
    return total


@contextmanager
def concretization(kind: type[ConcretizationError]) -> Iterator[None]:
    """Raise ConcretizationErrors of the block as errors of ``kind``, a subclass."""
    try:
        yield
    except ConcretizationError as error:
        raise error.become(kind).with_traceback(error.__traceback__) from None


@contextmanager
def _explained(what: str, instead: str) -> Iterator[None]:
    """Add the operation that requires a value, and its remedy, to a ConcretizationError."""
    try:
        yield
    except ConcretizationError as error:
        error.what = f"{what} a symbol: {error.what}"
        error.remedy = f"use the functions of {instead}; or make the argument static"
        raise
