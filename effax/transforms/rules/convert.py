"""Rules of selection, conversion, copies, and parts of complex numbers.

The pairing of cotangents with tangents is Re(ct·d), without conjugation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import is_complex, is_inexact_dtype
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType
from effax.transforms.framework.rules import NO_RULES, JvpOut, Linear, RuleBuilder, RuleSet
from effax.transforms.rules.common.arrays import array_of, sum_to
from effax.transforms.rules.common.generic_rules import (
    identity_jvp,
    identity_transpose,
    linear_jvp,
    no_tangent,
)
from effax.transforms.rules.common.linear_operands import fixed, only
from effax.transforms.rules.common.pointwise import (
    const,
    constant,
    in_shape,
    neg,
    pointwise,
)


def _select_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    # d select(i, x, y) = select(i, dx, dy)
    which, *cases = primals
    z = b(prim, which, *cases)
    chosen = [
        const(0, case) if d is None else d for case, d in zip(cases, tangents[1:], strict=True)
    ]
    return JvpOut([z], [in_shape(b, b(prim, which, *chosen), z)])


def _select_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, select(which, ..., x, ...)> = <select(which, ..., ct, ...), x>, zeros elsewhere
    ct = only(cts)
    cases = ins[1:]
    which = fixed(prim, ins[:1], 0)[0]
    made: list[Atom | None] = [None]
    for i, case in enumerate(cases):
        if isinstance(case, Linear):
            chosen = [ct if j == i else const(0, ct) for j in range(len(cases))]
            made.append(sum_to(b, b(prim, which, *chosen), case.type.shape))
        else:
            made.append(None)
    return made


def _convert_jvp(
    b: RuleBuilder,
    prim: p.ConvertElementType,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    if not is_inexact_dtype(prim.new_dtype):
        return JvpOut([y], [None])
    return JvpOut([y], [b(p.ConvertElementType(prim.new_dtype), dx)])


def _reduce_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(prim, only(cts))]


def convert_back(b: RuleBuilder, ct: Atom, type_: ArrayType) -> Atom:
    """Return a cotangent in the dtype of ``type_``: its real part if ``type_`` is real."""
    if is_complex(ct.type.dtype) and not is_complex(type_.dtype):
        ct = b(p.Real(), ct)
    return ct if ct.type.dtype == type_.dtype else b(p.ConvertElementType(type_.dtype), ct)


def _convert_transpose(
    b: RuleBuilder,
    prim: p.ConvertElementType,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    return [convert_back(b, only(cts), array_of(ins[0]))]


def _real_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # t·Re z = Re((t + 0i)·z)
    ct = only(cts)
    return [b(p.Complex(), ct, const(0, ct))]


def _imag_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # t·Im z = Re((0 - ti)·z)
    ct = only(cts)
    return [b(p.Complex(), const(0, ct), neg(b, ct))]


def _complex_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # Re(t·(x + iy)) = Re t·x - Im t·y
    ct = only(cts)
    x, y = ins
    dx = sum_to(b, b(p.Real(), ct), x.type.shape) if isinstance(x, Linear) else None
    dy = sum_to(b, neg(b, b(p.Imag(), ct)), y.type.shape) if isinstance(y, Linear) else None
    return [dx, dy]


def _conj_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # Re(t·conj(z)) = Re(conj(t)·z)
    return [b(p.Conj(), only(cts))]


def _complex_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    z = b(prim, *primals)
    parts = [const(0, x) if d is None else d for x, d in zip(primals, tangents, strict=True)]
    return JvpOut([z], [in_shape(b, b(prim, *parts), z)])


def _straight_through_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    return JvpOut([b(prim, *primals)], [tangents[1]])


RULES: Final[RuleSet] = (
    # A linear program is transposed by values: those of `stop_gradient` are those of its operand.
    NO_RULES.extend(p.StopGradient, pointwise(no_tangent, identity_transpose))
    .extend(p.StraightThrough, pointwise(_straight_through_jvp))
    .extend(p.BitcastConvertType, constant())
    .extend(p.SelectN, pointwise(_select_jvp, _select_transpose))
    .extend(p.ConvertElementType, pointwise(_convert_jvp, _convert_transpose))
    # Tangents and cotangents are rounded too.
    .extend(p.ReducePrecision, pointwise(linear_jvp, _reduce_transpose))
    .extend(p.Copy, pointwise(identity_jvp, identity_transpose))
    .extend(p.Real, pointwise(linear_jvp, _real_transpose))
    .extend(p.Imag, pointwise(linear_jvp, _imag_transpose))
    .extend(p.Complex, pointwise(_complex_jvp, _complex_transpose))
    .extend(p.Conj, pointwise(linear_jvp, _conj_transpose))
)
