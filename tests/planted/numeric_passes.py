"""Passes that change rounding: right ones within a tolerance, and wrong ones of each kind."""

from __future__ import annotations

from typing import Any, Final

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import as_dtype
from effax.ir.syntax import Eqn, Jaxpr, Lit
from effax.ir.text.parser import parse
from effax.ir.types import ArrayType
from effax.passes import Guarantee, Pass
from tests.planted.subtle_passes import local, made_by

BFLOAT16: Final = as_dtype("bfloat16")
FINITE: Final = Guarantee.SAME_WHERE_FINITE

SOFTMAX: Final[Jaxpr] = parse("""
    { lambda ; a:f32[4]. let
        b:f32[4] = exp a
        c:f32[] = reduce_sum[axes=(0,)] b
        d:f32[4] = broadcast_in_dim[broadcast_dimensions=() shape=(4,)] c
        e:f32[4] = div b d
      in (e,) }
""")

LAYER: Final[Jaxpr] = parse("""
    { lambda ; a:f32[4,3] b:f32[3,5] c:f32[5]. let
        d:f32[4,5] = dot_general[
          dimension_numbers=(((1,), (0,)), ((), ()))
        ] a b
        e:f32[4,5] = broadcast_in_dim[broadcast_dimensions=(1,) shape=(4, 5)] c
        f:f32[4,5] = add d e
        g:f32[4,5] = tanh f
      in (g,) }
""")


def _softmax(b: Builder, eqn: Eqn, shifted: bool, factor: float) -> Any:
    """Rewrite exp(x) / sum(exp(x)) to the quotient of shifted exponentials."""
    top = made_by(b, eqn.ins[0], p.Exp) if isinstance(eqn.prim, p.Div) else None
    wide = made_by(b, eqn.ins[1], p.BroadcastInDim) if top else None
    total = made_by(b, wide.ins[0], p.ReduceSum) if wide else None
    if top is None or wide is None or total is None or total.ins[0] != eqn.ins[0]:
        return None
    (x,) = top.ins
    axes, spread = total.prim.axes, wide.prim  # type: ignore[attr-defined]  # of a reduction
    most = b(spread, b(p.ReduceMax(axes), x))
    if factor != 1:
        most = b(p.Mul(), most, lit(factor, x.type))
    powers = b(p.Exp(), b(p.Sub(), x, most) if shifted else x)
    return b(p.Div(), powers, b(spread, b(p.ReduceSum(axes), b(p.Exp(), b(p.Sub(), x, most)))))


def softmax(b: Builder, eqn: Eqn) -> Any:
    """Return the softmax, which is finite where exp overflows."""
    return _softmax(b, eqn, True, 1)


def unshifted_softmax(b: Builder, eqn: Eqn) -> Any:
    """Shift the denominator alone."""
    return _softmax(b, eqn, False, 1)


def distributed(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x · (y + z) to x·y + x·z."""
    inner = made_by(b, eqn.ins[1], p.Add) if isinstance(eqn.prim, p.Mul) else None
    if inner is None or eqn.ins[0].type != inner.ins[0].type:
        return None
    x, (y, z) = eqn.ins[0], inner.ins
    return b(p.Add(), b(p.Mul(), x, y), b(p.Mul(), x, z))


def half_distributed(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x · (y + z) to x·y + z."""
    inner = made_by(b, eqn.ins[1], p.Add) if isinstance(eqn.prim, p.Mul) else None
    if inner is None or eqn.ins[0].type != inner.ins[1].type:
        return None
    return b(p.Add(), b(p.Mul(), eqn.ins[0], inner.ins[0]), inner.ins[1])


def factored(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x·y + x·z to x · (y + z)."""
    if not isinstance(eqn.prim, p.Add):
        return None
    first, second = (made_by(b, a, p.Mul) for a in eqn.ins)
    if first is None or second is None or first.ins[0] != second.ins[0]:
        return None
    if first.ins[1].type != second.ins[1].type:
        return None
    return b(p.Mul(), first.ins[0], b(p.Add(), first.ins[1], second.ins[1]))


def half_factored(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x·y + x·z to x · (y - z)."""
    made = factored(b, eqn)
    if made is None:
        return None
    first, second = (made_by(b, a, p.Mul) for a in eqn.ins)
    assert first is not None and second is not None
    return b(p.Mul(), first.ins[0], b(p.Sub(), first.ins[1], second.ins[1]))


def _narrow(b: Builder, eqn: Eqn, swapped: bool) -> Any:
    prim = eqn.prim
    out = eqn.outs[0].type if eqn.outs else None
    if not isinstance(prim, p.DotGeneral) or out is None or out.dtype.name != "float32":
        return None
    assert isinstance(out, ArrayType)
    x, y = (a if isinstance(a, Lit) else b(p.ConvertElementType(BFLOAT16), a) for a in eqn.ins)
    if swapped and x.type.shape:
        x = b(p.Rev((0,)), x)
    return b(p.ConvertElementType(as_dtype("float32"), out.weak), b(prim, x, y))


def half_contractions(b: Builder, eqn: Eqn) -> Any:
    """Contract in bfloat16."""
    return _narrow(b, eqn, False)


def reversed_contractions(b: Builder, eqn: Eqn) -> Any:
    """Contract in bfloat16, rows of the first operand in the other order."""
    return _narrow(b, eqn, True)


RIGHT: Final[tuple[tuple[Pass, dict[str, Any]], ...]] = (
    (local(softmax, FINITE), {"programs": SOFTMAX}),
    (local(distributed, FINITE), {}),
    (local(factored, FINITE), {}),
    (local(half_contractions), {"rtol": 1e-2, "programs": LAYER}),
)
WRONG: Final[tuple[tuple[Pass, dict[str, Any]], ...]] = (
    (local(unshifted_softmax, FINITE), {"programs": SOFTMAX}),
    (local(half_distributed, FINITE), {}),
    (local(half_factored, FINITE), {}),
    (local(reversed_contractions), {"rtol": 1e-2, "programs": LAYER}),
    (local(half_contractions), {"rtol": 1e-4, "programs": LAYER}),
    (local(distributed, Guarantee.SAME_BITS), {}),
)
