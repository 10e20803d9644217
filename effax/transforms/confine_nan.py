"""Products of unit vectors in which zero times nan is zero, where the operands have nan.

Before, where ``c`` is linear::

    { lambda a:f32[3] ; b:bool[] c:f32[3]. let d:f32[3] = mul c a in (d,) }

After::

    { lambda a:f32[3] ; b:bool[] c:f32[3]. let
        d:f32[3] = mul c a
        e:bool[3] = ne a a
        f:bool[3] = and e b
        g:bool[3] = eq c 0.0:f32[]
        h:bool[3] = and f g
        i:f32[3] = select_n h d 0.0:f32[]
        j:f32[3] = straight_through i d
      in (j,) }

A row of a Jacobian is pulled back from a unit vector. Its zeros must not reach the slope at an
element that is nan, or else that element makes every row nan. At numbers, zero times nan or
infinity stays nan: that is how a derivative which does not exist is reported.
"""

from __future__ import annotations

from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.edit.rewriter import Rewriter
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit


def confine_nan(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program that is linear in all inputs but its constants and the first, a predicate.

    Type:     (bool[], a) -> b  =>  (bool[], a) -> b
    Effects:  unchanged.
    Laws:     tests/unit/transforms/test_confine_nan.py
    """
    has_nan, *inputs = jaxpr.binders[jaxpr.n_consts :]
    linear = {v.id for v in inputs}
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        outs = new.keep(eqn, new.operands(eqn))
        factors = _factors(eqn, linear)
        if factors is not None:
            cotangent, slope = (new.read(x) for x in factors)
            lost = _lost(new, eqn, cotangent, slope, new.read(has_nan))
            value = new.emit(eqn, p.SelectN(), [lost, outs[0], lit(0, outs[0].type)])
            new.replace(eqn, new.emit(eqn, p.StraightThrough(), [value[0], outs[0]]))
        if any(not isinstance(x, Lit) and x.id in linear for x in eqn.ins):
            linear.update(v.id for v in eqn.outs)
    return new.finish()


def _factors(eqn: Eqn, linear: set[int]) -> tuple[Atom, Atom] | None:
    """Return the linear factor of a product or quotient and the other one, which is an array."""
    if not isinstance(eqn.prim, p.Mul | p.Div):
        return None
    x, y = eqn.ins
    if isinstance(eqn.prim, p.Mul) and not (isinstance(x, Lit) or x.id in linear):
        x, y = y, x
    if isinstance(x, Lit) or x.id not in linear or isinstance(y, Lit) or y.id in linear:
        return None
    return x, y


def _lost(new: Rewriter, at: Eqn, cotangent: Atom, slope: Atom, has_nan: Atom) -> Atom:
    """Return where a cotangent is 0 and its slope is nan."""
    (undefined,) = new.emit(at, p.Ne(), [slope, slope])
    (undefined,) = new.emit(at, p.And(), [undefined, has_nan])
    (is_zero,) = new.emit(at, p.Eq(), [cotangent, lit(0, cotangent.type)])
    return new.emit(at, p.And(), [undefined, is_zero])[0]
