"""Rules that fit many primitives: linear ones, and those without tangents or references."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import DischargeOut, JvpOut, RuleBuilder
from effax.transforms.rules.common.arrays import zeros


def linear_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """For a primitive that is linear in each of its operands that can have a tangent, jointly.

    d f(x) = f(dx)
    """
    outs = b.emit(prim, primals)
    dense = [zeros(b, p.type) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return JvpOut(outs, b.emit(prim, dense))


def no_tangent(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """For a primitive that is constant almost everywhere."""
    outs = b.emit(prim, primals)
    return JvpOut(outs, [None] * len(outs))


def no_refs(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """The discharge rule of primitives that take no references; never reached."""
    raise NotApplicable(f"{prim.name} takes no references")


def first_linear_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """For a primitive of one result, linear in its first operand; the others are indices.

    d f(x, i) = f(dx, i)
    """
    y = b(prim, *primals)
    dx = tangents[0]
    return JvpOut([y], [None if dx is None else b(prim, dx, *primals[1:])])
