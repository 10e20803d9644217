"""Constant folding: scalars that depend only on literals are evaluated.

Before::

    { lambda ; a:f32[]. let
        b:f32[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] 3.0:f32[]
        c:f32[] = reduce_sum[axes=(0,)] b
        d:f32[] = mul a c
      in (d,) }

After; the array, now unused, is left to ``dce``::

    { lambda ; a:f32[]. let
        b:f32[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] 3.0:f32[]
        c:f32[] = mul a 6.0:f32[]
      in (c,) }

Only scalars become literals; small arrays are evaluated on the way to them. A branch selected by a
literal is inlined.
"""

from __future__ import annotations

from math import isnan
from typing import Final

import numpy as np

from effax.ir.build import lit
from effax.ir.dtypes import family
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import EffaxError
from effax.ir.eval.numpy import literal_value
from effax.ir.primitive import Region, Value
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import ArrayType
from effax.transforms.framework.rewriter import Transform, at_every_depth

SMALL: Final = 64
"""Arrays of more elements than this are not evaluated."""


def _fold(jaxpr: Jaxpr) -> Jaxpr:
    """Evaluate scalars that depend only on literals, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same, without those of branches that are not taken.
    Laws:     tests/laws/test_simplify.py
    """
    made = Rewriter(jaxpr)
    _equations(made, jaxpr, {})
    return made.finish()


fold: Final[Transform] = at_every_depth(_fold)


def _equations(made: Rewriter, jaxpr: Jaxpr, known: dict[Atom, Value]) -> None:
    """Fold the equations of a program whose inputs are bound in ``made``."""
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        branch = _branch_taken(eqn, ins)
        if branch is not None:
            inner = made.nested(branch.jaxpr, [ins[i] for i in branch.args])
            _equations(inner, branch.jaxpr, known)
            made.replace(eqn, inner.results())
            continue
        values = _results(eqn, ins, known)
        if values is None:
            made.keep(eqn, ins)
            continue
        scalars = [_literal(x, v.type) for x, v in zip(values, eqn.outs, strict=True)]
        if all(s is not None for s in scalars):
            made.replace(eqn, [s for s in scalars if s is not None])
        else:
            known.update(zip(made.keep(eqn, ins), values, strict=True))


def _branch_taken(eqn: Eqn, ins: tuple[Atom, ...]) -> Region | None:
    """Return the region that a literal selects, if its types are those of the equation."""
    selector = eqn.prim.selector()
    index = None if selector is None else ins[selector]
    if not isinstance(index, Lit):
        return None
    regions = eqn.prim.regions()
    region = regions[min(max(int(index.value.real), 0), len(regions) - 1)]
    jaxpr = region.jaxpr
    given = tuple([ins[i].type for i in region.args]), tuple([v.type for v in eqn.outs])
    is_whole = region.results == tuple(range(len(eqn.outs))) and not region.repeats
    return region if is_whole and given == (jaxpr.in_types, jaxpr.out_types) else None


def _results(eqn: Eqn, ins: tuple[Atom, ...], known: dict[Atom, Value]) -> list[Value] | None:
    """Return the values of the results of an equation; None if it is not evaluated."""
    prim = eqn.prim
    if eqn.effects or not eqn.outs or prim.subjaxprs():
        return None
    # Axis indices and Python functions have values at run time only.
    if prim.by_reference or prim.free_axes():
        return None
    if any(not isinstance(v.type, ArrayType) or v.type.size > SMALL for v in eqn.outs):
        return None
    values = [literal_value(a) if isinstance(a, Lit) else known.get(a) for a in ins]
    given = [x for x in values if x is not None]
    if len(given) < len(values):
        return None
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in prim.evaluate(*given)]
    except EffaxError:
        return None


def folded(eqn: Eqn) -> list[Lit] | None:
    """Return the results of an equation as literals, if its operands are; else None."""
    values = _results(eqn, eqn.ins, {})
    if values is None:
        return None
    found = [_literal(x, v.type) for x, v in zip(values, eqn.outs, strict=True)]
    made = [a for a in found if a is not None]
    return made if len(made) == len(found) else None


def _literal(value: Value, type_: object) -> Lit | None:
    """Return a scalar as a literal; None for an array, and for nan: a literal loses its bits."""
    assert isinstance(type_, ArrayType)
    if type_.shape or family(type_.dtype) == "void":
        return None
    number = value.astype(complex if type_.dtype.kind == "c" else value.dtype).item()
    scalar = complex(number) if isinstance(number, complex) else number
    if not isinstance(scalar, bool | int | float | complex):
        scalar = float(scalar)
    if isinstance(scalar, complex):
        return None if isnan(scalar.real) or isnan(scalar.imag) else lit(scalar, type_)
    return None if isnan(scalar) else lit(scalar, type_)
