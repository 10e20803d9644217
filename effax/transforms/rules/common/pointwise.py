"""Building blocks of elementwise rules: arithmetic shorthands, and rules from derivatives.

A scalar operand combines with operands of any shape, so a term of a tangent may need
broadcasting, and the cotangent of a scalar operand is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import is_complex
from effax.ir.primitive import Primitive
from effax.ir.prims import BroadcastInDim
from effax.ir.syntax import Atom, Lit, Scalar
from effax.transforms.framework.rules import (
    BatchOut,
    JvpOut,
    JvpRule,
    RuleBuilder,
    Rules,
    TransposeRule,
    Unsupported,
)
from effax.transforms.rules.common.generic_rules import NONLINEAR, array_rules, no_tangent

P = TypeVar("P", bound=Primitive)

Derivative = Callable[[RuleBuilder, Atom, Atom, Atom], Atom]
"""From (b, dx, x, y) with y = f(x): the tangent dy."""

Partial = Callable[[RuleBuilder, Atom, Atom, Atom, Atom], Atom]
"""From (b, d, x, y, z) with z = f(x, y): the term of the tangent dz due to operand tangent d."""


def const(value: Scalar, like: Atom) -> Lit:
    """Return a literal in the dtype of ``like``."""
    return lit(value, like.type)


def add(b: Builder, x: Atom, y: Atom) -> Atom:
    """Return ``x + y``."""
    return b(p.Add(), x, y)


def sub(b: Builder, x: Atom, y: Atom) -> Atom:
    """Return ``x - y``."""
    return b(p.Sub(), x, y)


def mul(b: Builder, x: Atom, y: Atom) -> Atom:
    """Return ``x · y``."""
    return b(p.Mul(), x, y)


def div(b: Builder, x: Atom, y: Atom) -> Atom:
    """Return ``x / y``."""
    return b(p.Div(), x, y)


def neg(b: Builder, x: Atom) -> Atom:
    """Return ``-x``."""
    return b(p.Neg(), x)


def square(b: Builder, x: Atom) -> Atom:
    """Return ``x²``."""
    return b(p.Square(), x)


def scaled(b: Builder, x: Atom, factor: Scalar) -> Atom:
    """Return ``factor · x``."""
    return mul(b, x, const(factor, x))


def shifted(b: Builder, x: Atom, term: Scalar) -> Atom:
    """Return ``x + term``."""
    return add(b, x, const(term, x))


def where(b: Builder, condition: Atom, yes: Atom, no: Atom) -> Atom:
    """Return ``yes`` where the condition is true, else ``no``; scalar literals are broadcast."""
    return b(p.SelectN(), condition, no, yes)


def slope_product(b: Builder, d: Atom, slope: Atom) -> Atom:
    """Return ``d · slope`` for a slope that is infinite where the function has a finite value.

    A tangent of 0 stays 0 there. A cotangent is multiplied as usual: that of √x² is 0·inf at 0.
    """
    return mul(b, d, slope) if is_complex(d.type.dtype) else b(p.StrongZeroMul(), d, slope)


def nonzero(b: Builder, x: Atom) -> Atom:
    """Return ``x`` with 0 replaced by 1: a divisor that is never 0."""
    return where(b, b(p.Eq(), x, const(0, x)), const(1, x), x)


def inverse_magnitude(b: Builder, y: Atom) -> Atom:
    """Return ``1/y`` for a magnitude ``y``; at 0 it is 0, and its derivative is infinite."""
    is_zero = b(p.Eq(), y, const(0, y))
    steep = b(p.StraightThrough(), y, b(p.Log(), y))
    return where(b, is_zero, steep, div(b, const(1, y), nonzero(b, y)))


def in_shape(b: Builder, x: Atom, like: Atom) -> Atom:
    """Return a scalar ``x`` broadcast to the shape of ``like``."""
    if x.type.shape == like.type.shape:
        return x
    return b(BroadcastInDim(like.type.shape, ()), x)


def unary_jvp(
    derivative: Derivative,
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Return y = f(x) and dy = f'(x)·dx."""
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    return JvpOut([y], [derivative(b, dx, x, y)])


def binary_jvp(
    partials: tuple[Partial, Partial],
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Return z = f(x, y) and dz = ∂f/∂x·dx + ∂f/∂y·dy, broadcast to the shape of z."""
    x, y = primals
    z = b(prim, x, y)
    parts = [
        part(b, d, x, y, z) for part, d in zip(partials, tangents, strict=True) if d is not None
    ]
    return JvpOut([z], [total(b, parts, z)])


def total(b: RuleBuilder, parts: Sequence[Atom], like: Atom) -> Atom:
    """Return the sum of the terms of a tangent, in the shape of ``like``."""
    result = parts[0]
    for part in parts[1:]:
        result = add(b, result, part)
    return in_shape(b, result, like)


def batch_elementwise(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch by the same primitive, on operands broadcast to one rank; scalars stay scalars."""
    ranks = [len(x.type.shape) + (not has) for x, has in zip(ins, batched, strict=True)]
    ndim = max(ranks)
    widest = ranks.index(ndim)
    shape = ins[widest].type.shape
    if not batched[widest]:
        shape = (size, *shape)
    args: list[Atom] = []
    for x, has in zip(ins, batched, strict=True):
        rank = len(x.type.shape)
        if rank == ndim or not (has or rank):
            args.append(x)
        else:
            # A batched scalar keeps the batch axis; an unbatched array keeps all the others.
            dims = (0,) if has else tuple(range(1, ndim))
            args.append(b(BroadcastInDim(shape, dims), x))
    return BatchOut(b.emit(prim, args), [True])


def pointwise(jvp: JvpRule[P], transpose: TransposeRule[P] | Unsupported = NONLINEAR) -> Rules[P]:
    """Return the rules of an elementwise primitive with this jvp rule."""
    return array_rules(jvp, transpose, batch_elementwise)


def constant() -> Rules[Primitive]:
    """Return the rules of an elementwise primitive that is constant almost everywhere."""
    return pointwise(no_tangent)


def unary(
    derivative: Derivative, transpose: TransposeRule[Primitive] | Unsupported = NONLINEAR
) -> Rules[Primitive]:
    """Return the rules of a unary primitive with this derivative."""
    return pointwise(partial(unary_jvp, derivative), transpose)


def binary(
    fx: Partial, fy: Partial, transpose: TransposeRule[Primitive] | Unsupported = NONLINEAR
) -> Rules[Primitive]:
    """Return the rules of a binary primitive with these partial derivatives."""
    return pointwise(partial(binary_jvp, (fx, fy)), transpose)
