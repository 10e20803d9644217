"""Checks of operands, and the bases of elementwise primitives.

Operands of an elementwise primitive have equal dtypes and shapes; scalars match any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Self

import numpy as np

from effax.effects import Rule
from effax.ir.dtypes import BOOL, family, is_key_dtype
from effax.ir.errors import IllTyped, RefError
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.types import ArrayType, Shape, Type, array_type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

Meaning = Callable[..., Value]
"""The function on NumPy arrays that an elementwise primitive evaluates."""

NUMBERS = frozenset({"int", "uint", "float", "complex"})
REALS = frozenset({"int", "uint", "float"})
ORDERED = frozenset({"bool", "int", "uint", "float"})
INEXACT = frozenset({"float", "complex"})
FLOATS = frozenset({"float"})
INTEGERS = frozenset({"int", "uint"})
BITS = frozenset({"bool", "int", "uint"})
ANY = frozenset({"bool", "int", "uint", "float", "complex", "void"})
KEYS = frozenset({"key"})

OPAQUE: Final = "random keys take no part in arithmetic: `random.key_data` returns their words"


class _Immutable(Primitive):
    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a primitive is immutable: cannot set {name}")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Nullary(_Immutable):
    """A primitive without parameters: one object, so that equality is identity."""

    __slots__ = ()
    _instance: ClassVar[Primitive | None] = None

    def __new__(cls) -> Self:
        if "_instance" not in cls.__dict__:
            cls._instance = super().__new__(cls)
        assert isinstance(cls._instance, cls)
        return cls._instance

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), ())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def as_array(prim: Primitive, index: int, type_: Type) -> ArrayType:
    """Return the operand's type, which must be an array's. Raises RefError for a reference."""
    if isinstance(type_, ArrayType):
        return type_
    what = f"{prim.name} takes arrays, and operand {index} is a reference"
    raise RefError.against(Rule.REF_AS_ARRAY, what, "an array", str(type_))


def check_count(prim: Primitive, types: Sequence[Type], count: int) -> None:
    """Raise IllTyped unless there are ``count`` operands."""
    if len(types) != count:
        raise IllTyped(
            f"{prim.name} has the wrong number of operands",
            expected=str(count),
            found=str(len(types)),
        )


def check_least(prim: Primitive, types: Sequence[Type], least: int) -> None:
    """Raise IllTyped unless there are at least ``least`` operands."""
    if len(types) < least:
        raise IllTyped(
            f"{prim.name} has too few operands",
            expected=f"at least {least}",
            found=str(len(types)),
        )


def arrays(
    prim: Primitive, types: Sequence[Type], count: int | None = None, least: int = 0
) -> list[ArrayType]:
    """Return the array types of ``count`` operands, or of at least ``least``. Raises IllTyped."""
    if count is not None:
        check_count(prim, types, count)
    check_least(prim, types, least)
    return [as_array(prim, i, t) for i, t in enumerate(types)]


def check_dtype(prim: Primitive, type_: ArrayType, accepts: frozenset[str]) -> None:
    """Raise IllTyped unless the dtype is of an accepted family."""
    if family(type_.dtype) not in accepts:
        raise IllTyped(
            f"{prim.name} does not take this dtype",
            expected=" or ".join(sorted(accepts)),
            found=str(type_),
            remedy=OPAQUE if is_key_dtype(type_.dtype) else "convert the operand first",
        )


def common_shape(prim: Primitive, types: Sequence[ArrayType]) -> Shape:
    """Return the shape of all operands but scalars. Raises IllTyped if they differ."""
    shape: Shape = ()
    for type_ in types:
        if type_.shape and shape and type_.shape != shape:
            raise IllTyped(
                f"{prim.name} has operands of different shape",
                expected="equal shapes, or scalars",
                found=", ".join(map(str, types)),
                remedy="broadcast the operands first",
            )
        shape = type_.shape or shape
    return shape


def check_same_dtype(prim: Primitive, types: Sequence[ArrayType]) -> None:
    """Raise IllTyped unless all operands have the same dtype."""
    if any(t.dtype != types[0].dtype for t in types):
        raise IllTyped(
            f"{prim.name} has operands of different dtype",
            expected="equal dtypes",
            found=", ".join(map(str, types)),
            remedy="convert the operands first",
        )


class Elementwise(Nullary):
    """``arity`` operands of one dtype and shape; the result has the same, or is boolean.

    Attributes:
        transcendental: whether it is a transcendental function.
        complex_flops: the real operations on an element of complex operands.
    """

    __slots__ = ()
    arity: ClassVar[int]
    accepts: ClassVar[frozenset[str]]
    predicate: ClassVar[bool] = False
    transcendental: ClassVar[bool] = False
    complex_flops: ClassVar[int] = 2
    is_elementwise: ClassVar[bool] = True
    ufunc: ClassVar[Meaning]

    def typing(self, *ins: Type) -> Typing:
        types = arrays(self, ins, self.arity)
        check_dtype(self, types[0], self.accepts)
        check_same_dtype(self, types)
        shape = common_shape(self, types)
        if self.predicate:
            return Typing((array_type(shape, BOOL),))
        weak = all(t.weak for t in types)
        return Typing((array_type(shape, types[0].dtype, weak),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        if self.transcendental:
            return moved(ins, outs, transcendentals=elements(outs))
        if not self.is_view and ins[0].dtype.kind == "c":
            return moved(ins, outs, flops=elements(outs) * self.complex_flops)
        return super().work(ins, outs)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        result = type(self).ufunc(*ins)
        dtype = ins[0].dtype
        if result.dtype is not dtype and not self.predicate:
            # NumPy widens narrow integers; the result wraps around in the operands' dtype.
            result = result.astype(dtype, copy=False)
        # NumPy's functions of arrays without axes return scalars.
        return (result if type(result) is np.ndarray else np.asarray(result),)


class Unary(Elementwise):
    """One operand."""

    __slots__ = ()
    arity = 1


class Binary(Elementwise):
    """Two operands."""

    __slots__ = ()
    arity = 2
