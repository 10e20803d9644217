"""Rules of derivatives, under the names of ``jax.interpreters.ad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from effax import transforms as passes
from effax.api.autodiff import jvp as effax_jvp
from effax.arrays.array import Array
from effax.arrays.traced_array import TracedArray
from effax.drop_in.core import Trace
from effax.drop_in.primitive import Declared, Rule
from effax.drop_in.primitives import PRIMITIVES
from effax.drop_in.rules import primitive_jvps, primitive_transposes
from effax.drop_in.zeros import (
    UndefinedPrimal,
    Zero,
    instantiate_zeros,
    is_undefined_primal,
    zeros_like_aval,
)
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.operation import Operation
from effax.ir.syntax import ClosedJaxpr
from effax.transforms.framework.runner import unwrap
from effax.tree import PyTree

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "defjvp_zero",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "jvp_jaxpr",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]


JVPTrace = Trace

add_jaxvals_p: Final[Operation] = PRIMITIVES["add_p"]
"""The sum of two tangents."""


class _JVPTracerKind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TracedArray) and is_inexact_dtype(instance.dtype)


class JVPTracer(metaclass=_JVPTracerKind):
    """The traced arrays that may have tangents."""


def add_jaxvals(x: Array, y: Array) -> Array:
    """Return the sum of two tangents."""
    return x + y


def add_tangents(x: Array | Zero, y: Array | Zero) -> Array | Zero:
    """Return the sum of two tangents, each of which may be a symbolic zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def _zero_of(prim: Declared, out: object) -> object:
    if prim.multiple_results:
        return [Zero.from_primal_value(x) for x in cast("Sequence[object]", out)]
    return Zero.from_primal_value(out)


def deflinear(prim: Declared, transpose_rule: Rule) -> None:
    """Declare a primitive linear, by its transpose ``rule(ct, **params)``."""
    deflinear2(prim, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(prim: Declared, transpose_rule: Rule) -> None:
    """Declare a primitive linear, by its transpose ``rule(ct, *args, **params)``."""
    primitive_jvps[prim] = partial(_linear_jvp, prim)
    primitive_transposes[prim] = partial(_linear_transpose, transpose_rule)


def _linear_jvp(
    prim: Declared, primals: Sequence[object], tangents: Sequence[object], **params: object
) -> tuple[object, object]:
    out = prim.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        return out, _zero_of(prim, out)
    return out, prim.bind(*[instantiate_zeros(t) for t in tangents], **params)


def _linear_transpose(rule: Rule, ct: object, *args: object, **params: object) -> object:
    if isinstance(ct, Zero):
        return [Zero(x.aval) if isinstance(x, UndefinedPrimal) else None for x in args]
    return rule(ct, *args, **params)


def defjvp(prim: Declared, *rules: Rule | None) -> None:
    """Set the derivative in each operand: ``rule(tangent, *primals, **params)``; None for zero."""
    primitive_jvps[prim] = partial(_standard_jvp, rules, prim, False)


def defjvp2(prim: Declared, *rules: Rule | None) -> None:
    """Set derivatives as :func:`defjvp`: ``rule(tangent, result, *primals, **params)``."""
    primitive_jvps[prim] = partial(_standard_jvp, rules, prim, True)


def _standard_jvp(
    rules: Sequence[Rule | None],
    prim: Declared,
    takes_result: bool,
    primals: Sequence[object],
    tangents: Sequence[object],
    **params: object,
) -> tuple[object, object]:
    out = prim.bind(*primals, **params)
    given = [out, *primals] if takes_result else primals
    found: list[Array | Zero] = [
        cast("Array | Zero", rule(t, *given, **params))
        for rule, t in zip(rules, tangents, strict=True)
        if rule is not None and type(t) is not Zero
    ]
    total: Array | Zero = Zero.from_primal_value(out)
    for x in found:
        total = add_tangents(total, x)
    return out, total


def defjvp_zero(prim: Declared) -> None:
    """Declare that the derivative of a primitive is zero."""
    primitive_jvps[prim] = partial(_zero_jvp, prim)


def _zero_jvp(
    prim: Declared, primals: Sequence[object], tangents: Sequence[object], **params: object
) -> tuple[object, object]:
    out = prim.bind(*primals, **params)
    return out, _zero_of(prim, out)


def defbilinear(prim: Declared, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Declare a primitive of two operands linear in each, by transposes ``rule(ct, x, y, **p)``."""
    defjvp(
        prim,
        lambda dx, x, y, **params: prim.bind(dx, y, **params),
        lambda dy, x, y, **params: prim.bind(x, dy, **params),
    )
    primitive_transposes[prim] = partial(_bilinear_transpose, lhs_rule, rhs_rule)


def _bilinear_transpose(
    lhs_rule: Rule, rhs_rule: Rule, ct: object, x: object, y: object, **params: object
) -> tuple[object, object]:
    if is_undefined_primal(x):
        return lhs_rule(ct, x, y, **params), None
    return None, rhs_rule(ct, x, y, **params)


def get_primitive_transpose(prim: Declared) -> Callable[..., object]:
    """Return the transpose rule of a primitive. Raises KeyError if it has none."""
    return primitive_transposes[prim]


def jvp(
    fun: Callable[..., object],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: bool = False,
    **options: object,
) -> PyTree:
    """Return the results of a function and their tangents, as :func:`effax.jvp`."""
    given = tuple([instantiate_zeros(t) for t in tangents])
    differentiate = cast("Callable[..., PyTree]", effax_jvp)
    return differentiate(fun, tuple(primals), given, has_aux=has_aux)


def jvp_jaxpr(
    jaxpr: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program of results and their tangents, and which results have one.

    Args:
        jaxpr: the program.
        nonzeros: which of its inputs have a tangent.
        instantiate: for which results a zero tangent is returned as an array.
    """
    consts = [False] * len(jaxpr.consts)
    made = unwrap(passes.jvp(jaxpr.jaxpr, [*consts, *nonzeros], instantiate))
    return ClosedJaxpr(made.jaxpr, jaxpr.consts), list(made.out_tangents)
