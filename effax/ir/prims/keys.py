"""Conversion between random keys and their words, and XLA's generator of random bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from effax.ir.dtypes import UINT32, DType, family
from effax.ir.errors import IllTyped
from effax.ir.key_dtype import KeyDType, key_dtype_of_tag, records_of, words_of
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common import philox
from effax.ir.prims.common.operands import KEYS, Nullary, arrays, check_dtype
from effax.ir.types import Shape, Type, array_type
from effax.lazy.dataclasses import dataclass

__all__ = ["RandomUnwrap", "RandomWrap", "RngBitGenerator"]


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


@dataclass(frozen=True, slots=True)
class RngBitGenerator(Primitive):
    """The next state of XLA's generator, and unsigned integers of random bits.

    A state is ``u32[4]``. On CPU the bits are those of Philox-4x32, on other platforms those of the
    platform's generator.
    """

    dtype: DType
    shape: Shape
    name: ClassVar[str] = "rng_bit_generator"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        if x.dtype != UINT32 or x.shape != (4,) or family(self.dtype) != "uint":
            raise IllTyped(
                "rng_bit_generator takes a state of four words, and an unsigned dtype",
                expected="u32[4]",
                found=f"{x}, {self.dtype}",
            )
        return Typing((x, array_type(self.shape, self.dtype)))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        width = 8 * self.dtype.itemsize
        bits = philox.random_bits(ins[0], self.shape, self.dtype)
        return (philox.advanced(ins[0], self.shape, width), bits)
