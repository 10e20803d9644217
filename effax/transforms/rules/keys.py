"""Rules of random keys, which have no tangents and are moved as any elements, and of their bits."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, Self

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import UINT32, DType, as_dtype
from effax.ir.primitive import Primitive
from effax.ir.prims.common import philox
from effax.ir.syntax import Atom
from effax.ir.types import Shape, array_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.rules import NO_RULES, BatchOut, RuleBuilder, RuleSet
from effax.transforms.rules.common.arrays import reshaped
from effax.transforms.rules.common.generic_rules import NONLINEAR, array_rules, no_tangent

UINT64: Final = as_dtype("uint64")
_TYPE: Final = array_type((), UINT64)


def _batch(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


@dataclass(frozen=True)
class _Number:
    """An array of 64-bit integers of the program under construction, with the operators."""

    b: Builder
    atom: Atom

    def _apply(self, prim: Primitive, other: Self | int) -> Self:
        operand = lit(other, _TYPE) if isinstance(other, int) else other.atom
        shape = self.atom.type.shape
        if operand.type.shape and shape != operand.type.shape:
            pairs = zip(shape, operand.type.shape, strict=True)
            common = tuple([m if n == 1 else n for n, m in pairs])
            return self.wider(common)._apply(prim, type(self)(self.b, operand).wider(common))
        return type(self)(self.b, self.b(prim, self.atom, operand))

    def wider(self, shape: Shape) -> Self:
        """Return the array broadcast along its axes of size 1."""
        if self.atom.type.shape == shape:
            return self
        axes = tuple(range(len(shape)))
        return type(self)(self.b, self.b(p.BroadcastInDim(shape, axes), self.atom))

    def __add__(self, other: Self | int) -> Self:
        return self._apply(p.Add(), other)

    def __mul__(self, other: Self | int) -> Self:
        return self._apply(p.Mul(), other)

    def __xor__(self, other: Self | int) -> Self:
        return self._apply(p.Xor(), other)

    def __or__(self, other: Self | int) -> Self:
        return self._apply(p.Or(), other)

    def __and__(self, other: Self | int) -> Self:
        return self._apply(p.And(), other)

    def __rshift__(self, other: int) -> Self:
        return self._apply(p.ShiftRightLogical(), other)

    def __lshift__(self, other: int) -> Self:
        return self._apply(p.ShiftLeft(), other)

    def as_dtype(self, dtype: DType) -> Atom:
        """Return the array in another dtype."""
        return self.b(p.ConvertElementType(dtype), self.atom)


def _batch_bits(
    b: RuleBuilder,
    prim: p.RngBitGenerator,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    """Compute the bits of each batch element from its own state, as the evaluator does."""
    width = 8 * prim.dtype.itemsize
    count = philox.vectors(prim.shape, width)
    wide = b(p.ConvertElementType(UINT64), ins[0])
    words = [_Number(b, b(p.Slice((0, i), (size, i + 1)), wide)) for i in range(4)]
    start, high = words[2] | (words[3] << 32), words[0] | (words[1] << 32)
    low = (start + _Number(b, b(p.Iota(UINT64, (1, count), 1)))).wider((size, count))
    passed = b(p.Lt(), low.atom, start.wider((size, count)).atom)
    upper = high + _Number(b, b(p.ConvertElementType(UINT64), passed))
    counter = (low & philox.WORD, low >> 32, upper & philox.WORD, upper >> 32)
    found = philox.hashed((words[0], words[1]), counter)
    several = philox.joined(found) if width == 64 else list(found)
    parts = [b(p.ExpandDims((2,)), x.as_dtype(prim.dtype)) for x in several]
    flat = reshaped(b, b(p.Concatenate(2), *parts), (size, count * len(parts)))
    kept = b(p.Slice((0, 0), (size, prod(prim.shape))), flat)
    return BatchOut(
        [_advanced(b, words, start, count), reshaped(b, kept, (size, *prim.shape))], [True, True]
    )


def _advanced(b: RuleBuilder, words: Sequence[_Number], start: _Number, count: int) -> Atom:
    """Return the states after so many hashes."""
    stop = start + count
    parts = (words[0], words[1], stop & philox.WORD, stop >> 32)
    return b(p.Concatenate(1), *[x.as_dtype(UINT32) for x in parts])


RULES: Final[RuleSet] = (
    NO_RULES.extend(p.RandomWrap, array_rules(jvp=no_tangent, transpose=NONLINEAR, batch=_batch))
    .extend(p.RandomUnwrap, array_rules(jvp=no_tangent, transpose=NONLINEAR, batch=_batch))
    .extend(p.RngBitGenerator, array_rules(jvp=no_tangent, transpose=NONLINEAR, batch=_batch_bits))
)
