"""Indexed reads and updates of arrays: gather, scatter, and scatter that combines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from effax.ir import indexing
from effax.ir.errors import IllTyped
from effax.ir.indexing import Indexer, indexed_shape
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.elementwise import NUMBERS, ORDERED, arrays, check_dtype, check_same_dtype
from effax.ir.types import ArrayType, Shape, Type


@dataclass(frozen=True, slots=True)
class Gather(Primitive):
    """``gather(x, *operands)``: ``x[indexer]``."""

    indexer: Indexer
    name: ClassVar[str] = "gather"

    def typing(self, *ins: Type) -> Typing:
        x, *operands = arrays(self, ins, least=1)
        return Typing((x.update(shape=indexed_shape(self.indexer, x.shape, operands)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (indexing.read(self.indexer, np.asarray(ins[0]), ins[1:]),)


def check_update(prim: Primitive, part: Shape, dtype: object, value: ArrayType) -> None:
    """Raises IllTyped unless ``value`` is exactly what the indexed part holds."""
    if value.shape != part or value.dtype != dtype:
        raise IllTyped(
            f"{prim.name} has a value of the wrong type for the part that is indexed",
            expected=f"shape {part} and dtype {dtype}",
            found=str(value),
            remedy="broadcast and convert the value first",
        )


@dataclass(frozen=True, slots=True)
class Scatter(Primitive):
    """``scatter(x, value, *operands)``: ``x`` with ``value`` at ``[indexer]``."""

    indexer: Indexer
    name: ClassVar[str] = "scatter"

    def typing(self, *ins: Type) -> Typing:
        x, value, *operands = arrays(self, ins, least=2)
        check_same_dtype(self, [x, value])
        check_update(self, indexed_shape(self.indexer, x.shape, operands), x.dtype, value)
        return Typing((x.update(weak=x.weak and value.weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        result = np.array(ins[0])
        indexing.write(self.indexer, result, ins[1], ins[2:])
        return (result,)


@dataclass(frozen=True, slots=True)
class Combining(Primitive):
    """``value`` combined with ``x`` at ``[indexer]``; where positions repeat, all values count."""

    indexer: Indexer
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[np.ufunc]

    def typing(self, *ins: Type) -> Typing:
        x, value, *operands = arrays(self, ins, least=2)
        check_dtype(self, x, self.accepts)
        check_same_dtype(self, [x, value])
        check_update(self, indexed_shape(self.indexer, x.shape, operands), x.dtype, value)
        return Typing((x.update(weak=x.weak and value.weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        result = np.array(ins[0])
        indexing.write(self.indexer, result, ins[1], ins[2:], self.ufunc)
        return (result,)


@dataclass(frozen=True, slots=True)
class ScatterAdd(Combining):
    """``scatter_add(x, value, *operands)``: ``value`` added to ``x`` at ``[indexer]``."""

    name: ClassVar[str] = "scatter_add"
    ufunc: ClassVar[np.ufunc] = np.add


@dataclass(frozen=True, slots=True)
class ScatterMul(Combining):
    """``scatter_mul(x, value, *operands)``: ``x`` multiplied by ``value`` at ``[indexer]``."""

    name: ClassVar[str] = "scatter_mul"
    ufunc: ClassVar[np.ufunc] = np.multiply


@dataclass(frozen=True, slots=True)
class ScatterMax(Combining):
    """``scatter_max(x, value, *operands)``: the greatest of ``x`` and the values there."""

    name: ClassVar[str] = "scatter_max"
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[np.ufunc] = np.maximum


@dataclass(frozen=True, slots=True)
class ScatterMin(Combining):
    """``scatter_min(x, value, *operands)``: the least of ``x`` and the values there."""

    name: ClassVar[str] = "scatter_min"
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[np.ufunc] = np.minimum
