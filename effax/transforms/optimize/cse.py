"""Common subexpressions: what was computed before is not computed again.

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

An equation that only reads gives what an equal one gave before, unless something between the two
does not commute with a read of the same reference.
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
    """Compute equal things once, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same; reads may get fewer.
    Laws:     tests/laws/test_simplify.py
    """
    made = Rewriter(jaxpr)
    known: dict[Key, tuple[Var, ...]] = {}
    # By number in the new program, how often each reference was changed so far.
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
    """Whether running the equation again gives the same and changes nothing."""
    return not eqn.effects or all(isinstance(e, Read) for e in eqn.effects)


def _changed(eqn: Eqn, ins: tuple[Atom, ...], versions: dict[int, int]) -> None:
    for effect in eqn.effects:
        if isinstance(effect, SideEffect | Alloc) or commutes(effect, Read(effect.ref)):
            continue
        ref = ins[effect.ref]
        if isinstance(ref, Var):
            versions[ref.id] = versions.get(ref.id, 0) + 1
