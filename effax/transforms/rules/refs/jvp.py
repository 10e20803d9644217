"""Jvp rules of references: each operation on a reference is repeated on its tangent reference.

A reference that differentiated values are written to has a tangent reference from its allocation;
the same indexers and operands access both. A value without a tangent has the tangent zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import TransformError
from effax.ir.prims import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.syntax import Atom
from effax.ir.types import tangent_type
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.rules.common.arrays import zeros


def new_ref_jvp(
    b: RuleBuilder, prim: NewRef, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    (x,), (dx,) = primals, tangents
    return JvpOut([b(prim, x)], [None if dx is None else b(prim, dx)])


def empty_ref_jvp(
    b: RuleBuilder, prim: EmptyRef, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    return JvpOut([b(prim)], [None])


def get_jvp(
    b: RuleBuilder, prim: Get, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    # d r[i] = dr[i]
    dref, operands = tangents[0], primals[1:]
    return JvpOut([b(prim, *primals)], [None if dref is None else b(prim, dref, *operands)])


def swap_jvp(
    b: RuleBuilder, prim: Swap, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    # y = r[i]; r[i] = x  =>  dy = dr[i]; dr[i] = dx
    _, x, *operands = primals
    dref, dx = tangents[:2]
    y = b(prim, *primals)
    if dref is None:
        _need_tangent(dx)
        return JvpOut([y], [None])
    dense = zeros(b, tangent_type(x.type)) if dx is None else dx
    return JvpOut([y], [b(prim, dref, dense, *operands)])


def add_update_jvp(
    b: RuleBuilder, prim: AddUpdate, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    # r[i] += x  =>  dr[i] += dx
    operands = primals[2:]
    dref, dx = tangents[:2]
    b.emit(prim, primals)
    if dref is None:
        _need_tangent(dx)
    elif dx is not None:
        b.emit(prim, [dref, dx, *operands])
    return JvpOut([], [])


def freeze_jvp(
    b: RuleBuilder, prim: Freeze, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    (ref,), (dref,) = primals, tangents
    return JvpOut([b(prim, ref)], [None if dref is None else b(prim, dref)])


def free_ref_jvp(
    b: RuleBuilder, prim: FreeRef, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    b.emit(prim, primals)
    b.emit(prim, [dref for dref in tangents if dref is not None])
    return JvpOut([], [])


def _need_tangent(dx: Atom | None) -> None:
    """Raise TransformError if a tangent is written to a reference without a tangent reference."""
    if dx is not None:
        raise TransformError(
            "a differentiated value is written to a reference that is not differentiated",
            found=str(dx.type),
            remedy="write `stop_gradient(value)`, or differentiate with respect to the ref too",
        )
