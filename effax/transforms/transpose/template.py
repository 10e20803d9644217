"""One equation transposed: the rule of its primitive run once, and kept as a template."""

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
"""A wanted argument whose cotangent goes into a reference."""


class TransposeTemplate(NamedTuple):
    """One application transposed, and the positions of the arguments whose cotangents it gives.

    Its arguments: those that are fixed, the references of cotangents, the cotangents present.
    """

    body: Template
    given: tuple[int, ...]


def cotangent_ref_type(type_: Type, dtype: DType | None = None) -> RefType:
    """The type of the reference in which the cotangent of a value accumulates."""
    if isinstance(type_, RefType):
        return type_
    return ref_type(type_ if dtype is None else type_.update(dtype=dtype))


class _WideningBuilder(RuleBuilder):
    """Adds to references that are wider than what is added, by converting it first."""

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
    """The template of one application, without what computes cotangents that nobody wants.

    Args:
        rules: the rules.
        prim: the primitive.
        types: of its arguments.
        how: one entry an argument: its kind, or that its cotangent goes into a reference.
        has: which results have a cotangent.
        ref_types: of the references for cotangents, in the order of the arguments.
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
    given = [
        (i, _checked(b, prim, i, ct, types[i]))
        for i, (ct, k) in enumerate(zip(rule(b, prim, ins, cts), how, strict=True))
        if ct is not None and k >= WANTED
    ]
    body = without_dead(b.finish([ct for _, ct in given]), rules)
    return TransposeTemplate(template(body), tuple([i for i, _ in given]))


def _checked(b: Builder, prim: Primitive, i: int, ct: Atom, type_: Type) -> Atom:
    """The cotangent that a rule gives operand ``i``, in its tangent type."""
    ct_spec = cotangent_ref_type(type_).inner
    if ct.type is ct_spec:
        return ct
    if (ct.type.shape, ct.type.dtype) != (ct_spec.shape, ct_spec.dtype):
        raise TransformError(
            f"the transpose rule of {prim.name} gives operand {i} a cotangent of another type",
            expected=str(ct_spec),
            found=str(ct.type),
        )
    return b(ConvertElementType(ct_spec.dtype), ct)
