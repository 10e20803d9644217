"""Common subexpression elimination.

Before::

    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:f32[] = sin a
        d:f32[] <- b[...]
        e:f32[] = sin a
        f:f32[] <- b[...]
        b[...] += e
        g:f32[] <- b[...]
      in (c, d, f, g) }

After::

    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:f32[] = sin a
        d:f32[] <- b[...]
        b[...] += c
        e:f32[] <- b[...]
      in (c, d, d, e) }

A read is equal to an earlier one unless an effect between them does not commute with it: the key of
an equation has the number of such effects so far on each reference that it reads.
"""

from __future__ import annotations

from typing import Final

from effax.effects import Alloc, Read, SideEffect, commutes
from effax.ir.edit.rewriter import Rewriter
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.transforms.framework.rewriter import Transform, at_every_depth

Key = tuple[Primitive, tuple[Atom, ...], tuple[int, ...]]


def _cse(jaxpr: Jaxpr) -> Jaxpr:
    """Replace equations by earlier equal ones, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same; there may be fewer reads.
    Laws:     tests/laws/test_simplify.py
    """
    made = Rewriter(jaxpr)
    known: dict[Key, tuple[Var, ...]] = {}
    # By number in the new program, the changes of each reference so far.
    versions: dict[int, int] = {}
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        if not _repeatable(eqn):
            made.keep(eqn, ins)
            _changed(eqn, ins, versions)
            continue
        read = [ins[ref] for ref in eqn.effects.refs]
        seen = tuple([versions.get(r.id, 0) for r in read if isinstance(r, Var)])
        key = (eqn.prim, ins, seen)
        found = known.get(key)
        if found is None:
            known[key] = made.keep(eqn, ins)
        else:
            made.replace(eqn, found)
    return made.finish()


cse: Final[Transform] = at_every_depth(_cse)


def _repeatable(eqn: Eqn) -> bool:
    """Return whether a repetition of the equation returns the same and changes nothing."""
    return not eqn.effects or all(isinstance(e, Read) for e in eqn.effects)


def _changed(eqn: Eqn, ins: tuple[Atom, ...], versions: dict[int, int]) -> None:
    for effect in eqn.effects:
        if isinstance(effect, SideEffect | Alloc) or commutes(effect, Read(effect.ref)):
            continue
        ref = ins[effect.ref]
        if isinstance(ref, Var):
            versions[ref.id] = versions.get(ref.id, 0) + 1
