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
infinity stays nan: that is how a derivative which does not exist is reported. Regions of loops,
branches and calls take the predicate as a further argument.
"""

from __future__ import annotations

from effax.ir import prims as p
from effax.ir.analysis.dataflow import analyze, close_regions
from effax.ir.build import Builder, lit
from effax.ir.dtypes import BOOL
from effax.ir.edit.rewriter import Rewriter
from effax.ir.memo import memoize
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import array_type
from effax.transforms.transpose.linearity import FIXED, LINEAR, WANTED, Kinds


def confine_nan(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program that is linear in all inputs but its constants and the first, a predicate.

    Type:     (bool[], a) -> b  =>  (bool[], a) -> b
    Effects:  unchanged.
    Laws:     tests/unit/transforms/test_confine_nan.py
    """
    n = jaxpr.n_consts
    kinds = (FIXED,) * (n + 1) + (WANTED,) * (len(jaxpr.binders) - n - 1)
    new = Rewriter(jaxpr)
    _confine(new, kinds, new.read(jaxpr.binders[n]))
    return new.finish()


@memoize(maxsize=1024)
def _nested(jaxpr: Jaxpr, kinds: Kinds) -> tuple[Jaxpr, bool]:
    """Return the program with the predicate as its first input, and whether it uses this input."""
    b = Builder()
    has_nan = b.bind(array_type((), BOOL))
    new = Rewriter(jaxpr, b, [b.bind(t) for t in jaxpr.in_types])
    _confine(new, kinds, has_nan)
    names = ("", *jaxpr.names) if jaxpr.names else ()
    return b.finish(new.results(), jaxpr.n_consts + 1, names), new.changed


def _confine(new: Rewriter, ins: Kinds, has_nan: Atom) -> None:
    """Append the program of a rewriter; ``ins`` states in which inputs it is linear."""
    found = analyze(LINEAR, new.jaxpr, ins).variables
    for eqn in new.jaxpr.eqns:
        kinds = tuple([FIXED if isinstance(a, Lit) else found[a.id] for a in eqn.ins])
        if eqn.prim.subjaxprs() and any(kinds) and _confine_regions(new, eqn, kinds, has_nan):
            continue
        outs = new.keep(eqn, new.operands(eqn))
        factors = _factors(eqn, kinds)
        if factors is not None:
            cotangent, slope = (new.read(x) for x in factors)
            lost = _lost(new, eqn, cotangent, slope, has_nan)
            value = new.emit(eqn, p.SelectN(), [lost, outs[0], lit(0, outs[0].type)])
            new.replace(eqn, new.emit(eqn, p.StraightThrough(), [value[0], outs[0]]))


def _confine_regions(new: Rewriter, eqn: Eqn, kinds: Kinds, has_nan: Atom) -> bool:
    """Append an equation whose regions take the predicate; return whether one of them needs it."""
    prim, regions = eqn.prim, eqn.prim.regions()
    if prim.has_own_rules or len(regions) != len(prim.subjaxprs()):
        return False
    closed, _ = close_regions(LINEAR, prim, kinds)
    made = [_nested(r.jaxpr, tuple([closed[a] for a in r.args])) for r in regions]
    changed = None
    if any(uses for _, uses in made):
        changed = prim.with_constants([jaxpr for jaxpr, _ in made], 1)
    if changed is None:
        return False
    selector = prim.selector()
    at = 0 if selector is None else selector + 1
    ins = new.operands(eqn)
    new.replace(eqn, new.emit(eqn, changed, [*ins[:at], has_nan, *ins[at:]]))
    return True


def _factors(eqn: Eqn, kinds: Kinds) -> tuple[Atom, Atom] | None:
    """Return the linear factor of a product or quotient and the other one, which is an array."""
    if not isinstance(eqn.prim, p.Mul | p.Div):
        return None
    (x, y), (of_x, of_y) = eqn.ins, kinds
    if isinstance(eqn.prim, p.Mul) and not of_x:
        x, y, of_x, of_y = y, x, of_y, of_x
    return None if isinstance(y, Lit) or of_y or not of_x else (x, y)


def _lost(new: Rewriter, at: Eqn, cotangent: Atom, slope: Atom, has_nan: Atom) -> Atom:
    """Return where a cotangent is 0 and its slope is nan."""
    (undefined,) = new.emit(at, p.Ne(), [slope, slope])
    (undefined,) = new.emit(at, p.And(), [undefined, has_nan])
    (is_zero,) = new.emit(at, p.Eq(), [cotangent, lit(0, cotangent.type)])
    return new.emit(at, p.And(), [undefined, is_zero])[0]
