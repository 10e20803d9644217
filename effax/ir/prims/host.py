"""Callbacks: calls of Python functions at run time, for debugging, pure, or with side effects.

Functions are parameters by reference: programs that call the same function object compare equal,
and a function prints as its name (``@log``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from effax.effects import Io, Row
from effax.ir.errors import BadCallback
from effax.ir.primitive import ByReference, Primitive, Typing, Value
from effax.ir.prims.common.operands import arrays
from effax.ir.types import ArrayType, Type, type_of_value
from effax.ir.work import Work, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "DceSink",
    "DebugCallback",
    "HostFunction",
    "IoCallback",
    "PureCallback",
]

DEBUG: Final = "debug"
IO: Final = "io"


class HostFunction(ByReference, ABC):
    """A Python function of NumPy arrays that a program calls at run time.

    Attributes:
        arity: the number of arrays that it takes.
    """

    __slots__ = ()

    arity: int

    @abstractmethod
    def __call__(self, *args: Value) -> Sequence[Value]:
        """Call the function, which may keep the arrays and must not write to them."""


def checked_results(
    prim: Primitive, label: str, found: Sequence[object], wanted: Sequence[ArrayType]
) -> list[Value]:
    """Return the results as arrays. Raises BadCallback unless they have the declared types."""
    if len(found) != len(wanted):
        raise BadCallback(
            f"{prim.name}: {label} returned another number of results than declared",
            expected=f"{len(wanted)}, the leaves of result_shape_dtypes",
            found=str(len(found)),
        )
    results = [np.asarray(x) for x in found]
    for i, (x, type_) in enumerate(zip(results, wanted, strict=True)):
        if x.shape != type_.shape or x.dtype != type_.dtype:
            raise BadCallback(
                f"{prim.name}: result {i} of {label} has another type than declared",
                expected=str(type_),
                found=str(type_of_value(x)) if x.dtype.kind not in "OUSMm" else str(x.dtype),
                remedy="return an array of that shape and dtype, or change result_shape_dtypes",
            )
    return results


@dataclass(frozen=True, slots=True)
class DebugCallback(Primitive):
    """``callback(*args)``, called for its side effects, without results."""

    callback: HostFunction
    ordered: bool = False
    name: ClassVar[str] = "debug_callback"
    by_reference: ClassVar[tuple[str, ...]] = ("callback",)

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, self.callback.arity)
        return Typing((), Row([Io(DEBUG, self.ordered)]))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins, outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        self.callback(*ins)
        return ()


@dataclass(frozen=True, slots=True)
class DceSink(Primitive):
    """Use the operand, so that no pass removes what computes it.

    XLA removes it, unless ``prevent_mlir_dce``: then the compiled program calls a function.
    """

    prevent_mlir_dce: bool = False
    name: ClassVar[str] = "dce_sink"

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, 1)
        return Typing((), Row([Io(DEBUG)]))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved((), ())

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return ()


@dataclass(frozen=True, slots=True)
class PureCallback(Primitive):
    """``callback(*args)``, a pure function of the arguments.

    It has no effects, so passes may remove, repeat or merge calls.
    """

    callback: HostFunction
    result_avals: tuple[ArrayType, ...]
    vmap_method: str | None = None
    name: ClassVar[str] = "pure_callback"
    by_reference: ClassVar[tuple[str, ...]] = ("callback",)

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, self.callback.arity)
        return Typing(self.result_avals)

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins, outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return checked_results(self, self.callback.label, self.callback(*ins), self.result_avals)


@dataclass(frozen=True, slots=True)
class IoCallback(Primitive):
    """``callback(*args)``, which has side effects and may have results."""

    callback: HostFunction
    result_avals: tuple[ArrayType, ...]
    ordered: bool = False
    name: ClassVar[str] = "io_callback"
    by_reference: ClassVar[tuple[str, ...]] = ("callback",)

    def typing(self, *ins: Type) -> Typing:
        arrays(self, ins, self.callback.arity)
        return Typing(self.result_avals, Row([Io(IO, self.ordered)]))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins, outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return checked_results(self, self.callback.label, self.callback(*ins), self.result_avals)
