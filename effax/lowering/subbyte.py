"""Numbers narrower than a byte, which XLA packs: outside of a program each is a byte.

Before::

    { lambda ; a:i4[3]. let b:i4[3] = neg a in (b,) }

After::

    { lambda ; a:u8[3]. let
        b:u4[3] = convert_element_type[new_dtype=uint4] a
        c:i4[3] = bitcast_convert_type[new_dtype=int4] b
        d:i4[3] = neg c
        e:u4[3] = bitcast_convert_type[new_dtype=uint4] d
        f:u8[3] = convert_element_type[new_dtype=uint8] e
      in (f,) }

The bits of a byte beyond the number's are 0, as in the memory of NumPy's arrays of these dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from effax.ir.build import Builder
from effax.ir.dtypes import UINT8, unsigned_of_subbyte
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import BitcastConvertType, ConvertElementType
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, Type, array_type
from effax.lazy.dataclasses import dataclass


class Typed(Protocol):
    """A value of a program."""

    @property
    def type(self) -> Type: ...


T = TypeVar("T", bound=Typed)
Apply = Callable[[Primitive, T], T]
"""The application of a primitive to a value."""


def in_bytes(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program on bytes for narrower numbers; others are returned unchanged.

    Type:     i4[n] -> i4[n]  =>  u8[n] -> u8[n]
    """
    if not has_subbytes((*jaxpr.in_types, *jaxpr.out_types)):
        return jaxpr
    b = Builder(map(byte_type, jaxpr.in_types))
    ins = [from_bytes(b, v, t) for v, t in zip(b.binders, jaxpr.in_types, strict=True)]
    return b.finish([to_bytes(b, x) for x in b.inline_jaxpr(jaxpr, ins)])


def has_subbytes(types: Iterable[Type]) -> bool:
    """Return whether an array has numbers narrower than a byte."""
    return any(unsigned_of_subbyte(t.dtype) is not None for t in types)


def byte_type(type_: Type) -> ArrayType:
    """Return the type of the bytes of narrower numbers; any other type unchanged."""
    assert isinstance(type_, ArrayType)
    return array_type(type_.shape, UINT8) if has_subbytes((type_,)) else type_


def to_bytes(apply: Apply[T], x: T) -> T:
    """Return the bytes of narrower numbers; any other value unchanged."""
    unsigned = unsigned_of_subbyte(x.type.dtype)
    if unsigned is None:
        return x
    return apply(ConvertElementType(UINT8), apply(BitcastConvertType(unsigned), x))


def from_bytes(apply: Apply[T], x: T, type_: Type) -> T:
    """Return the numbers of a type of their bytes; a value of any other type unchanged."""
    unsigned = unsigned_of_subbyte(type_.dtype)
    if unsigned is None:
        return x
    return apply(BitcastConvertType(type_.dtype), apply(ConvertElementType(unsigned), x))


@dataclass(frozen=True, slots=True)
class OnBytes:
    """A function of NumPy arrays as one of the bytes of narrower numbers."""

    function: Callable[..., Sequence[Value]]
    types: tuple[ArrayType, ...]

    def __call__(self, *args: Value) -> Sequence[Value]:
        numbers = [
            x.view(t.dtype) if has_subbytes((t,)) else x
            for x, t in zip(args, self.types, strict=True)
        ]
        return [_bytes(np.asarray(x)) for x in self.function(*numbers)]


def _bytes(x: np.ndarray) -> np.ndarray:
    return x if unsigned_of_subbyte(x.dtype) is None else x.view(UINT8)
