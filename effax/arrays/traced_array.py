"""Arrays without a value: the symbols of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, final

import numpy as np

from effax.arrays.array import Array
from effax.ir.errors import (
    ArrayConversionError,
    BoolConversionError,
    ConcretizationError,
    IntegerConversionError,
)
from effax.ir.syntax import Atom
from effax.ir.trace import Trace
from effax.ir.types import ArrayType


class TraceOf(NamedTuple):
    """The trace of a symbol, as JAX's libraries read it.

    Attributes:
        main: the trace; one object for all of its symbols.
    """

    main: Trace


@final
class TracedArray(Array):
    """An atom of a program that is being traced, as an array without a known value."""

    __slots__ = ("atom", "owner")

    def __init__(self, trace: Trace, atom: Atom) -> None:
        self.owner: Trace = trace
        self.atom: Atom = atom

    @property
    def _trace(self) -> TraceOf:
        return TraceOf(self.owner)

    @property
    def type(self) -> ArrayType:
        return self.atom.type  # type: ignore[return-value]  # handles of references are TracedRefs

    def numpy(self) -> np.ndarray:
        return np.asarray(self.owner.value_of(self.atom))

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
