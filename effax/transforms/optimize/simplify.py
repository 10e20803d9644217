"""Algebraic simplification by rewrite rules that are exact, bit by bit.

Before::

    { lambda ; a:f32[2,3]. let
        b:f32[3,2] = transpose[permutation=(1, 0)] a
        c:f32[3,2] = mul b 1.0:f32[]
        d:f32[2,3] = transpose[permutation=(1, 0)] c
        e:f32[2,3] = neg d
        f:f32[2,3] = add a e
      in (f,) }

After, and after ``dce``::

    { lambda ; a:f32[2,3]. let b:f32[2,3] = sub a a in (b,) }

No rule changes a rounding, the sign of a zero, or the propagation of infinities and nan. So
``x + 0`` is ``x`` for integers only (-0.0 + 0.0 is 0.0, while ``x + -0.0`` is ``x``), and ``x - x``
is 0 for integers only (it is nan for infinity).
"""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import as_dtype, family
from effax.ir.prims import (
    BroadcastInDim,
    ExpandDims,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Rev,
    Squeeze,
    Transpose,
)
from effax.ir.types import ArrayType
from effax.transforms.framework.rewriter import Transform
from effax.transforms.optimize.rewrite import (
    ANY,
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    App,
    Hole,
    Match,
    Number,
    Pattern,
    RewriteRule,
    Rewriting,
    Sample,
)

x: Final = Hole("x")
y: Final = Hole("y")


def _type(match: Match, name: str = "x") -> ArrayType:
    found = match.atoms[name].type
    assert isinstance(found, ArrayType)
    return found


def _composed(match: Match) -> Pattern:
    # y[i] = x[p[i]], z[i] = y[q[i]]  =>  z[i] = x[p[q[i]]]
    inner, outer = match.prims["inner"], match.prims["outer"]
    assert isinstance(inner, Transpose) and isinstance(outer, Transpose)
    return App(Transpose(tuple(inner.permutation[i] for i in outer.permutation)), x)


def _is_identity(match: Match) -> bool:
    prim = match.prims["outer"]
    return isinstance(prim, Transpose) and list(prim.permutation) == sorted(prim.permutation)


def _outer(match: Match) -> Pattern:
    return App(match.prims["outer"], x)


def _placed_twice(match: Match) -> Pattern:
    inner, outer = match.prims["inner"], match.prims["outer"]
    assert isinstance(inner, BroadcastInDim) and isinstance(outer, BroadcastInDim)
    places = tuple(outer.broadcast_dimensions[d] for d in inner.broadcast_dimensions)
    return App(BroadcastInDim(outer.shape, places), x)


def _same_axes(match: Match) -> bool:
    inner, outer = match.prims["inner"], match.prims["outer"]
    return getattr(inner, "dimensions", None) == getattr(outer, "dimensions", ())


def _widened(match: Match) -> bool:
    """Return whether the inner conversion is exact."""
    inner = match.prims["inner"]
    assert isinstance(inner, p.ConvertElementType)
    have, middle = _type(match).dtype, inner.new_dtype
    wide = ("float32", "float64")
    return family(middle) == "float" and (
        middle.name == "float64" or (have.name in ("bfloat16", "float16") and middle.name in wide)
    )


def _nested(kind: type, *, inner: object, outer: object) -> App:
    return App(kind(outer), App(kind(inner), x))


ARITHMETIC: Final = (
    RewriteRule("-(-x) = x", App(p.Neg, App(p.Neg, x)), x, NUMBERS),
    RewriteRule("x + 0 = x", App(p.Add, x, Number(0)), x, INTEGERS),
    RewriteRule("x + -0.0 = x", App(p.Add, x, Number(-0.0)), x, FLOATS),
    RewriteRule("x - 0 = x", App(p.Sub, x, Number(0)), x, REALS),
    RewriteRule("0 - x = -x", App(p.Sub, Number(0), x), App(p.Neg, x), INTEGERS),
    RewriteRule("-0.0 - x = -x", App(p.Sub, Number(-0.0), x), App(p.Neg, x), FLOATS),
    RewriteRule("x - x = 0", App(p.Sub, x, x), Number(0), INTEGERS),
    RewriteRule("x + (-y) = x - y", App(p.Add, x, App(p.Neg, y)), App(p.Sub, x, y), REALS),
    RewriteRule("x - (-y) = x + y", App(p.Sub, x, App(p.Neg, y)), App(p.Add, x, y), REALS),
    RewriteRule("x · 1 = x", App(p.Mul, x, Number(1)), x, REALS),
    RewriteRule("x · 0 = 0", App(p.Mul, x, Number(0)), Number(0), INTEGERS),
    RewriteRule("x · -1 = -x", App(p.Mul, x, Number(-1)), App(p.Neg, x), FLOATS),
    RewriteRule(
        "(-x) · (-y) = x · y",
        App(p.Mul, App(p.Neg, x), App(p.Neg, y)),
        App(p.Mul, x, y),
        REALS,
    ),
    RewriteRule("x / 1 = x", App(p.Div, x, Number(1)), x, REALS),
    RewriteRule("x¹ = x", App(p.IntegerPow(1), x), x, REALS),
    RewriteRule("max(x, x) = x", App(p.Max, x, x), x, REALS),
    RewriteRule("min(x, x) = x", App(p.Min, x, x), x, REALS),
)

LOGIC: Final = (
    RewriteRule("¬¬x = x", App(p.Not, App(p.Not, x)), x, INTEGERS | BOOL),
    RewriteRule("x ∧ x = x", App(p.And, x, x), x, INTEGERS | BOOL),
    RewriteRule("x ∨ x = x", App(p.Or, x, x), x, INTEGERS | BOOL),
    RewriteRule("x ∧ true = x", App(p.And, x, Number(True)), x, BOOL),
    RewriteRule("x ∧ false = false", App(p.And, x, Number(False)), Number(False), BOOL),
    RewriteRule("x ∨ 0 = x", App(p.Or, x, Number(0)), x, INTEGERS | BOOL),
    RewriteRule("x ⊕ 0 = x", App(p.Xor, x, Number(0)), x, INTEGERS | BOOL),
    RewriteRule("x ⊕ x = 0", App(p.Xor, x, x), Number(0), INTEGERS | BOOL),
    RewriteRule("p ? x : x = x", App(p.SelectN, Hole("p"), x, x), x, BOOL),
)

PARTS: Final = (
    RewriteRule("conj(conj(x)) = x", App(p.Conj, App(p.Conj, x)), x, COMPLEX),
    RewriteRule(
        "re(x + iy) = x",
        App(p.Real, App(p.Complex, x, y)),
        x,
        COMPLEX,
        samples=(Sample(App(p.Real(), App(p.Complex(), x, y)), (3,), "float64"),),
    ),
    RewriteRule(
        "im(x + iy) = y",
        App(p.Imag, App(p.Complex, x, y)),
        y,
        COMPLEX,
        samples=(Sample(App(p.Imag(), App(p.Complex(), x, y)), (3,), "float32"),),
    ),
    RewriteRule(
        "stop(stop(x)) = stop(x)",
        App(p.StopGradient, App(p.StopGradient, x)),
        App(p.StopGradient, x),
        ANY,
    ),
)

_F64 = as_dtype("float64")
_F32 = as_dtype("float32")

CONVERSIONS: Final = (
    RewriteRule(
        "convert(x) = x, where x has the type",
        App(p.ConvertElementType, x, name="outer"),
        x,
        ANY,
        samples=(Sample(App(p.ConvertElementType(_F32), x), (2, 3), "float32"),),
    ),
    RewriteRule(
        "convert(wider(x)) = x",
        App(p.ConvertElementType, App(p.ConvertElementType, x, name="inner")),
        x,
        FLOATS,
        _widened,
        (
            Sample(
                App(p.ConvertElementType(_F32), App(p.ConvertElementType(_F64), x)),
                (2, 3),
                "float32",
            ),
        ),
    ),
)

SHAPES: Final = (
    RewriteRule(
        "transpose(x) = x, for the identity",
        App(Transpose, x, name="outer"),
        x,
        ANY,
        _is_identity,
        (Sample(App(Transpose((0, 1)), x), (2, 3)),),
    ),
    RewriteRule(
        "transpose_q(transpose_p(x)) = transpose_qp(x)",
        App(Transpose, App(Transpose, x, name="inner"), name="outer"),
        _composed,
        ANY,
        None,
        (Sample(_nested(Transpose, inner=(1, 2, 0), outer=(0, 2, 1)), (2, 3, 4)),),
    ),
    RewriteRule(
        "reshape(x) = x, for the same shape",
        App(Reshape, x),
        x,
        ANY,
        None,
        (Sample(App(Reshape((2, 3)), x), (2, 3)),),
    ),
    RewriteRule(
        "reshape(reshape(x)) = reshape(x)",
        App(Reshape, App(Reshape, x), name="outer"),
        _outer,
        ANY,
        None,
        (Sample(_nested(Reshape, inner=(6,), outer=(3, 2)), (2, 3)),),
    ),
    RewriteRule(
        "broadcast(x) = x, for the same shape",
        App(BroadcastInDim, x),
        x,
        ANY,
        None,
        (Sample(App(BroadcastInDim((2, 3), (0, 1)), x), (2, 3)),),
    ),
    RewriteRule(
        "broadcast_b(broadcast_a(x)) = broadcast_ba(x)",
        App(BroadcastInDim, App(BroadcastInDim, x, name="inner"), name="outer"),
        _placed_twice,
        ANY,
        None,
        (
            Sample(
                App(BroadcastInDim((4, 1, 2, 3), (1, 3)), App(BroadcastInDim((1, 3), (1,)), x)),
                (3,),
            ),
        ),
    ),
    RewriteRule(
        "reverse(reverse(x)) = x",
        App(Rev, App(Rev, x, name="inner"), name="outer"),
        x,
        ANY,
        _same_axes,
        (Sample(_nested(Rev, inner=(0,), outer=(0,)), (3, 2)),),
    ),
    RewriteRule(
        "squeeze(expand(x)) = x",
        App(Squeeze, App(ExpandDims, x, name="inner"), name="outer"),
        x,
        ANY,
        _same_axes,
        (Sample(App(Squeeze((1,)), App(ExpandDims((1,)), x)), (3, 2)),),
    ),
    *(
        RewriteRule(
            f"{kind.name} over no axes = x",
            App(kind(()), x),
            x,
            # A sum begins with 0.0, and 0.0 + -0.0 is 0.0.
            INTEGERS if kind is ReduceSum else REALS,
            samples=(Sample(App(kind(()), x), (3,)),),
        )
        for kind in (ReduceSum, ReduceProd, ReduceMax, ReduceMin)
    ),
)

RULES: Final = (*ARITHMETIC, *LOGIC, *PARTS, *CONVERSIONS, *SHAPES)
"""All rules of the library."""

simplify: Final[Transform] = Rewriting(RULES, may_cycle=True)
