"""One transposed equation: the rule of its primitive, run once and cached as a template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from effax.ir.build import Builder, Template, Where, template, typing_of
from effax.ir.dtypes import DType
from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import AddUpdate, ConvertElementType
from effax.ir.syntax import Atom, Var
from effax.ir.types import RefType, Type, ref_type, tangent_type
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Linear, RuleBuilder, RuleSet, Unsupported
from effax.transforms.transpose.linearity import FIXED, WANTED, Kind, Kinds

IN_REF: Final[Kind] = WANTED + 1
"""A wanted operand whose cotangent is added to a reference."""


class TransposeTemplate(NamedTuple):
    """One transposed equation.

    Attributes:
        body: maps (fixed operands, cotangent references, nonzero cotangents) to cotangents.
        ct_operands: the positions of the operands whose cotangents ``body`` returns.
    """

    body: Template
    ct_operands: tuple[int, ...]


def cotangent_ref_type(type_: Type, dtype: DType | None = None) -> RefType:
    """Return the type of the reference in which the cotangent of a value accumulates."""
    if isinstance(type_, RefType):
        return type_
    return ref_type(type_ if dtype is None else type_.update(dtype=dtype))


class _WideningBuilder(RuleBuilder):
    """A builder that converts what is added to a reference of a wider dtype."""

    __slots__ = ()

    def emit(self, prim: Primitive, ins: Sequence[Atom], source: Where = None) -> tuple[Var, ...]:
        if isinstance(prim, AddUpdate) and ins[0].type.dtype != ins[1].type.dtype:
            ins = [ins[0], self(ConvertElementType(ins[0].type.dtype), ins[1]), *ins[2:]]
        return super().emit(prim, ins, source)


@memoize(maxsize=1 << 14)
def transpose_template(
    rules: RuleSet,
    prim: Primitive,
    types: tuple[Type, ...],
    how: Kinds,
    has: Mask,
    ref_types: tuple[Type, ...],
) -> TransposeTemplate:
    """Return the template of one equation, without dead code for unwanted cotangents.

    Args:
        rules: the rules.
        prim: the primitive.
        types: the types of its operands.
        how: one entry an operand: its kind, or ``IN_REF``.
        has: which results have a cotangent.
        ref_types: the types of the references for ``IN_REF`` operands, in order.
    """
    rule = rules.of(prim).transpose
    if isinstance(rule, Unsupported):
        raise rule.error(prim, "transpose")
    b = _WideningBuilder(rules)
    fixed = [b.bind(t) if k == FIXED else None for t, k in zip(types, how, strict=True)]
    refs = iter([b.bind(t) for t in ref_types])
    ins = [
        Linear(t, next(refs) if k == IN_REF else None, k >= WANTED) if x is None else x
        for t, k, x in zip(types, how, fixed, strict=True)
    ]
    outs = typing_of(prim, types).outs
    cts = [b.bind(tangent_type(t)) if h else None for t, h in zip(outs, has, strict=True)]
    found = [
        (i, _checked(b, prim, i, ct, types[i]))
        for i, (ct, k) in enumerate(zip(rule(b, prim, ins, cts), how, strict=True))
        if ct is not None and k >= WANTED
    ]
    body = without_dead(b.finish([ct for _, ct in found]), rules)
    return TransposeTemplate(template(body), tuple([i for i, _ in found]))


def _checked(b: Builder, prim: Primitive, i: int, ct: Atom, type_: Type) -> Atom:
    """Return the cotangent of operand ``i``, converted to its tangent type.

    Raises TransformError for another shape or dtype.
    """
    expected = cotangent_ref_type(type_).inner
    if ct.type is expected:
        return ct
    if (ct.type.shape, ct.type.dtype) != (expected.shape, expected.dtype):
        raise TransformError(
            f"the transpose rule of {prim.name} returns a cotangent of the wrong type: operand {i}",
            expected=str(expected),
            found=str(ct.type),
        )
    return b(ConvertElementType(expected.dtype), ct)
