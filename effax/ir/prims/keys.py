"""Conversion between random keys and their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from effax.ir.dtypes import UINT32
from effax.ir.errors import IllTyped
from effax.ir.key_dtype import KeyDType, key_dtype_of_tag, records_of, words_of
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.operands import KEYS, Nullary, arrays, check_dtype
from effax.ir.types import Type, array_type

__all__ = ["RandomUnwrap", "RandomWrap"]


@dataclass(frozen=True, slots=True)
class RandomWrap(Primitive):
    """Words as keys of a generator: the last axes are those of the words of one key."""

    impl: str
    name: ClassVar[str] = "random_wrap"
    is_view: ClassVar[bool] = True

    @property
    def dtype(self) -> KeyDType:
        """The dtype of the keys. Raises IllTyped for an unknown generator."""
        try:
            return key_dtype_of_tag(self.impl)
        except KeyError:
            raise IllTyped("unknown generator of random keys", found=self.impl) from None

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        dtype = self.dtype
        lead = x.ndim - len(dtype.words)
        if x.dtype != UINT32 or lead < 0 or x.shape[lead:] != dtype.words:
            raise IllTyped(
                f"these are not words of keys of {dtype.impl}",
                expected=f"u32[..., {', '.join(map(str, dtype.words))}]",
                found=str(x),
            )
        return Typing((array_type(x.shape[:lead], dtype),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (records_of(ins[0], self.dtype),)


class RandomUnwrap(Nullary):
    """The words of keys, along the last axes."""

    name = "random_unwrap"
    is_view = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, KEYS)
        dtype = cast(KeyDType, x.dtype)
        return Typing((array_type((*x.shape, *dtype.words), UINT32),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        dtype = array_type((), ins[0].dtype).dtype
        return (words_of(ins[0], cast(KeyDType, cast(object, dtype))),)
