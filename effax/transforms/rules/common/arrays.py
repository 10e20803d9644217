"""Array helpers for rules: zeros, sums over broadcast axes, permutations, the batch axis."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import Builder, lit
from effax.ir.prims import BroadcastInDim, ReduceSum, Reshape, Transpose
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType, Shape, Type
from effax.transforms.framework.rules import Linear


def array_of(atom: Atom | Linear) -> ArrayType:
    """Return the type of an operand that is an array."""
    assert isinstance(atom.type, ArrayType)
    return atom.type


def zeros(b: Builder, type_: Type) -> Atom:
    """Return zeros in the shape and dtype of ``type_``; a literal for a scalar type."""
    zero = lit(0, type_)
    return b(BroadcastInDim(type_.shape, ()), zero) if type_.shape else zero


def sum_to(b: Builder, ct: Atom, shape: Shape) -> Atom:
    """Return the cotangent of an operand of this shape, summed if the operand was a scalar."""
    if ct.type.shape == shape:
        return ct
    return b(ReduceSum(tuple(range(len(ct.type.shape)))), ct)


def to_front(b: Builder, x: Atom, batched: bool, size: int) -> Atom:
    """Return the operand with a leading batch axis, broadcast if it is not batched."""
    if batched:
        return x
    shape = x.type.shape
    return b(BroadcastInDim((size, *shape), tuple(range(1, 1 + len(shape)))), x)


def mask_like(b: Builder, mask: Atom, value: Atom) -> Atom:
    """Return the mask of batch elements, broadcast to the shape of a batched value."""
    shape = value.type.shape
    return mask if len(shape) == 1 else b(BroadcastInDim(shape, (0,)), mask)


def permuted(b: Builder, x: Atom, permutation: Sequence[int]) -> Atom:
    """Return the operand with its axes permuted, or itself for the identity."""
    if list(permutation) == list(range(len(permutation))):
        return x
    return b(Transpose(tuple(permutation)), x)


def reshaped(b: Builder, x: Atom, shape: Shape) -> Atom:
    """Return the operand in this shape, or itself if it has the shape."""
    return x if x.type.shape == shape else b(Reshape(shape), x)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse of a permutation."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def after_batch(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes, shifted by a leading batch axis."""
    return tuple(a + 1 for a in axes)


def placed(positions: Sequence[int], values: Sequence[Atom], n: int) -> list[Atom | None]:
    """Return a list of length ``n`` with the values at these positions and None elsewhere."""
    found = dict(zip(positions, values, strict=True))
    return [found.get(i) for i in range(n)]
