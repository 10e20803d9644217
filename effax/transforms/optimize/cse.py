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

Equal operands of a loop, branch or call that no iteration changes become one, so that its programs
share what they compute from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from returns.result import Result

from effax.effects import Alloc, Read, SideEffect, commutes
from effax.ir.edit.operations import equation, map_prim_subjaxprs
from effax.ir.edit.renumber import with_merged_inputs
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import TransformError
from effax.ir.primitive import Primitive, Region
from effax.ir.recursion import may_have_subjaxprs, with_fresh_stack
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.transforms.framework.runner import as_result

Key = tuple[Primitive, tuple[Atom, ...], tuple[int, ...]]
Visit = Callable[[Jaxpr], Jaxpr]


def cse(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Replace equations by earlier equal ones, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same; there may be fewer reads.
    Laws:     tests/laws/test_simplify.py
    """
    return as_result(_everywhere)(jaxpr)


def _everywhere(jaxpr: Jaxpr) -> Jaxpr:
    """Change every program, outermost first, so that equal operands of a loop are known."""
    done: dict[Jaxpr, Jaxpr] = {}

    @with_fresh_stack
    def visit(program: Jaxpr) -> Jaxpr:
        found = done.get(program)
        if found is None:
            found = done[program] = _cse(program, visit)
        return found

    return visit(jaxpr)


def _cse(jaxpr: Jaxpr, visit: Visit) -> Jaxpr:
    made = Rewriter(jaxpr)
    known: dict[Key, tuple[Var, ...]] = {}
    # By number in the new program, the changes of each reference so far.
    versions: dict[int, int] = {}
    for old in jaxpr.eqns:
        ins = made.operands(old)
        eqn = _inside(old, ins, visit) if may_have_subjaxprs(old.prim) else old
        if eqn is not old:
            made.changed = True
            ins = eqn.ins
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


def _inside(eqn: Eqn, ins: tuple[Atom, ...], visit: Visit) -> Eqn:
    """Return the equation on ``ins`` with its equal operands merged, and its programs changed."""
    prim, ins = _merged(eqn.prim, ins)
    prim = map_prim_subjaxprs(visit, prim)
    return eqn if prim is eqn.prim else equation(prim, ins, eqn.outs, eqn.source)


def _merged(prim: Primitive, ins: tuple[Atom, ...]) -> tuple[Primitive, tuple[Atom, ...]]:
    """Return the primitive and its operands, of which equal ones that it treats alike are one."""
    if len(set(ins)) == len(ins) or prim.has_own_rules or prim.first_linear() is not None:
        return prim, ins
    regions = prim.regions()
    same = _same_operands(regions, ins) if len(regions) == len(prim.subjaxprs()) else {}
    if not same:
        return prim, ins
    keep = [i not in same for i in range(len(ins))]
    jaxprs = [with_merged_inputs(r.jaxpr, _inputs(r, same)) for r in regions]
    n_outs = 1 + max((k for r in regions for k in r.results if k is not None), default=-1)
    made = prim.restrict(jaxprs, keep, [True] * n_outs)
    if made is None:
        return prim, ins
    return made, tuple([a for a, kept in zip(ins, keep, strict=True) if kept])


def _same_operands(regions: Sequence[Region], ins: Sequence[Atom]) -> dict[int, int]:
    """Return the operands that equal an earlier one, whole and unchanged in all runs.

    Each is mapped to the first such operand.
    """
    varying = {c for r in regions for c in r.carry_to if c is not None}
    varying.update(r.args[part] for r in regions for part in r.parts)
    bound: list[list[object]] = [[] for _ in ins]
    for number, region in enumerate(regions):
        for v, arg in zip(region.jaxpr.binders, region.args, strict=True):
            bound[arg].append((number, v.type))
    first: dict[object, int] = {}
    same: dict[int, int] = {}
    for i, (a, places) in enumerate(zip(ins, bound, strict=True)):
        if places and i not in varying:
            other = first.setdefault((a, *places), i)
            if other != i:
                same[i] = other
    return same


def _inputs(region: Region, same: dict[int, int]) -> dict[int, int]:
    """Return the inputs of a region for merged operands, each with the one that replaces it."""
    input_of = {arg: i for i, arg in enumerate(region.args)}
    return {input_of[a]: input_of[b] for a, b in same.items() if a in input_of}


def _repeatable(eqn: Eqn) -> bool:
    """Return whether a repetition of the equation returns the same and changes nothing."""
    if eqn.prim.stays_apart:
        return False
    return not eqn.effects or all(isinstance(e, Read) for e in eqn.effects)


def _changed(eqn: Eqn, ins: tuple[Atom, ...], versions: dict[int, int]) -> None:
    for effect in eqn.effects:
        if isinstance(effect, SideEffect | Alloc) or commutes(effect, Read(effect.ref)):
            continue
        ref = ins[effect.ref]
        if isinstance(ref, Var):
            versions[ref.id] = versions.get(ref.id, 0) + 1
