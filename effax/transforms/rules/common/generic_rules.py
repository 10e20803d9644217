"""Rules that many primitives share: linear, bilinear, constant, without references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.prims import Add
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    BatchRule,
    DischargeOut,
    Indivisible,
    JvpOut,
    JvpRule,
    Linear,
    RuleBuilder,
    Rules,
    TransposeRule,
    Unsupported,
)
from effax.transforms.rules.common.arrays import zeros

P = TypeVar("P", bound=Primitive)

NONLINEAR = Unsupported("it is not linear in any operand")


def array_rules(
    jvp: JvpRule[P] | Unsupported,
    transpose: TransposeRule[P] | Unsupported,
    batch: BatchRule[P] | Unsupported,
    sparse: bool = False,
) -> Rules[P]:
    """Return the rules of a primitive on arrays: it is never split, and takes no references."""
    return Rules(jvp, transpose, batch, Indivisible(), no_refs, sparse)


def linear_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate a primitive that is jointly linear in all operands that can have tangents.

    d f(x, y) = f(dx, dy)
    """
    outs = b.emit(prim, primals)
    dense = [zeros(b, p.type) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return JvpOut(outs, b.emit(prim, dense))


def no_tangent(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate a primitive that is constant almost everywhere."""
    outs = b.emit(prim, primals)
    return JvpOut(outs, [None] * len(outs))


def no_refs(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Raise NotApplicable: the primitive takes no references, so the rule is never reached."""
    raise NotApplicable(f"{prim.name} takes no references")


def first_linear_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate a primitive of one result that is linear in its first operand.

    d f(x, i) = f(dx, i), where the other operands i are indices.
    """
    y = b(prim, *primals)
    dx = tangents[0]
    return JvpOut([y], [None if dx is None else b(prim, dx, *primals[1:])])


def identity_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate an identity: the tangents are those of the operands."""
    return JvpOut(b.emit(prim, primals), tangents)


def identity_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """Transpose an identity: the cotangents are those of the results."""
    return cts


def bilinear_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate a product: d f(x, y) = f(dx, y) + f(x, dy)."""
    x, y = primals
    dx, dy = tangents
    z = b(prim, x, y)
    dz = None if dx is None else b(prim, dx, y)
    return JvpOut([z], [add_tangents(b, dz, None if dy is None else b(prim, x, dy))])


def add_tangents(b: RuleBuilder, x: Atom | None, y: Atom | None) -> Atom | None:
    """Return ``x + y``, where None is zero."""
    if x is None or y is None:
        return y if x is None else x
    return b(Add(), x, y)
