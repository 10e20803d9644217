"""Loop-invariant code motion: invariant equations and carries leave the loop.

Before; ``loop_carries`` makes the carry that never changes a constant, then ``hoist`` runs::

    { lambda ; a:f32[] b:f32[3]. let
        c:f32[] d:f32[] e:f32[3] = scan[
          jaxpr={ lambda ; a:f32[] b:f32[] c:f32[]. let
              d:f32[] = sin a
              e:f32[] = mul c d
              f:f32[] = add b e
            in (a, f, e) }
          length=3
          n_carry=2
          n_consts=0
          reverse=False
          unroll=1
        ] a 0.0:f32[] b
      in (c, d, e) }

After both, and after ``dce``::

    { lambda ; a:f32[] b:f32[3]. let
        c:f32[] = sin a
        d:f32[] e:f32[3] = scan[
          jaxpr={ lambda a:f32[]; b:f32[] c:f32[]. let
              d:f32[] = mul c a
              e:f32[] = add b d
            in (e, d) }
          length=3
          n_carry=1
          n_consts=1
          reverse=False
          unroll=1
        ] c 0.0:f32[] b
      in (a, d, e) }

A primitive declares that it is a loop by ``Primitive.with_constants``, which returns it with more
operands that are the same in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.effects import Read, SideEffect, commutes
from effax.ir.edit.renumber import numbered
from effax.ir.edit.rewriter import Rewriter
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import PREDICATE, Type
from effax.transforms.framework.rewriter import Transform, at_every_depth


def _hoist(jaxpr: Jaxpr) -> Jaxpr:
    """Move loop-invariant equations before their loop.

    Type:     a -> b  =>  a -> b
    Effects:  the same; a loop may have fewer reads.
    Laws:     tests/laws/test_simplify.py

    An equation is invariant if its operands are, and its only effects are reads of references on
    which every effect of the loop commutes with a read. It then runs also if the loop has no
    iterations: it must terminate, so loops on a predicate stay, and it must not change state.
    """
    made = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        moved = _movable(eqn.prim, tuple([a.type for a in ins])) if _is_loop(eqn.prim) else ()
        if any(moved):
            _lift(made, eqn, ins, moved)
        else:
            made.keep(eqn, ins)
    return made.finish()


hoist: Final[Transform] = at_every_depth(_hoist)


@memoize(maxsize=1 << 12)
def _is_loop(prim: Primitive) -> bool:
    subjaxprs = prim.subjaxprs()
    if not subjaxprs or len(prim.regions()) != len(subjaxprs):
        return False
    if not prim.may_repeat() or prim.selector() is not None:
        return False
    extended = [_with_first(j, [Var(j.size, PREDICATE)], j.eqns, j.size + 1) for j in subjaxprs]
    return prim.with_constants(extended, 1) is not None


def _carries(regions: Sequence[Region]) -> set[int]:
    """Return the operands that are carries."""
    return {c for region in regions for c in region.carry_to if c is not None}


@memoize(maxsize=1 << 12)
def _movable(prim: Primitive, types: tuple[Type, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the positions of the invariant equations in each region of a loop."""
    regions = prim.regions()
    carries = _carries(regions)
    changed = {
        region.args[effect.ref]
        for region in regions
        for effect in region.jaxpr.effects
        if not isinstance(effect, SideEffect) and not commutes(effect, Read(effect.ref))
    }
    return tuple(_movable_in(region, types, carries, changed) for region in regions)


def _movable_in(
    region: Region, types: Sequence[Type], carries: set[int], changed: set[int]
) -> tuple[int, ...]:
    jaxpr = region.jaxpr
    # An operand that is scanned over has another type than its elements.
    constant = {
        v.id
        for v, arg in zip(jaxpr.binders, region.args, strict=True)
        if arg not in carries and v.type is types[arg]
    }
    stable = {
        v.id
        for v, arg in zip(jaxpr.binders, region.args, strict=True)
        if v.id in constant and arg not in changed
    }
    moved: list[int] = []
    for i, eqn in enumerate(jaxpr.eqns):
        taken = [a.id for a in eqn.ins if isinstance(a, Var)]
        if taken and constant.issuperset(taken) and _may_move(eqn, stable):
            moved.append(i)
            constant.update(v.id for v in eqn.outs)
    return tuple(moved)


def _may_move(eqn: Eqn, stable: set[int]) -> bool:
    """Return whether an equation on invariant operands may move before the loop."""
    for effect in eqn.effects:
        if not isinstance(effect, Read):
            return False
        ref = eqn.ins[effect.ref]
        if not isinstance(ref, Var) or ref.id not in stable:
            return False
    return terminates(eqn.prim)


@memoize(maxsize=1 << 12)
def terminates(prim: Primitive) -> bool:
    """Return whether an equation is known to terminate: it has no loop on a predicate."""
    if not prim.subjaxprs():
        return True
    regions = prim.regions()
    if not regions or any(region.is_predicate for region in regions):
        return False
    return all(terminates(eqn.prim) for region in regions for eqn in region.jaxpr.eqns)


def _lift(
    made: Rewriter, eqn: Eqn, ins: tuple[Atom, ...], moved: tuple[tuple[int, ...], ...]
) -> None:
    """Append the invariant equations, then the loop, which takes their results as constants."""
    regions = eqn.prim.regions()
    hoisted = [_needed(r.jaxpr, places) for r, places in zip(regions, moved, strict=True)]
    bodies = [
        _reduced(region.jaxpr, places, hoisted, k)
        for k, (region, places) in enumerate(zip(regions, moved, strict=True))
    ]
    prim = eqn.prim.with_constants(bodies, sum(map(len, hoisted)))
    if prim is None:
        made.keep(eqn, ins)
        return
    constants: list[Atom] = []
    for region, places, needed in zip(regions, moved, hoisted, strict=True):
        body = region.jaxpr
        outside = made.nested(body, [ins[arg] for arg in region.args])
        for i in places:
            outside.keep(body.eqns[i], outside.operands(body.eqns[i]))
        constants += [outside.read(v) for v in needed]
    made.replace(eqn, made.emit(eqn, prim, [*constants, *ins]))


def _needed(body: Jaxpr, moved: Sequence[int]) -> list[Var]:
    """Return the results of moved equations that other equations or results use."""
    gone = set(moved)
    made = {v.id for i in moved for v in body.eqns[i].outs}
    rest = [a for i, eqn in enumerate(body.eqns) if i not in gone for a in eqn.ins]
    return [*dict.fromkeys(a for a in (*rest, *body.outs) if isinstance(a, Var) and a.id in made)]


def _reduced(body: Jaxpr, moved: Sequence[int], hoisted: Sequence[list[Var]], own: int) -> Jaxpr:
    """Return the region without the moved equations.

    Its first inputs are the moved results of all regions of the loop; it uses its own.
    """
    gone = set(moved)
    eqns = [eqn for i, eqn in enumerate(body.eqns) if i not in gone]
    free = body.size
    first: list[Var] = []
    for k, variables in enumerate(hoisted):
        for v in variables:
            first.append(v if k == own else Var(free, v.type))
            free += k != own
    return _with_first(body, first, eqns, free)


def _with_first(body: Jaxpr, first: Sequence[Var], eqns: Sequence[Eqn], size: int) -> Jaxpr:
    names = [*[""] * len(first), *body.names] if body.names else ()
    n_consts = body.n_consts + len(first)
    return numbered([*first, *body.binders], eqns, body.outs, size, n_consts, names)


def _loop_carries(jaxpr: Jaxpr) -> Jaxpr:
    """Make carries that a loop never changes constants.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     tests/laws/test_simplify.py

    The carry itself, now unused, is left to ``dce``.
    """
    made = Rewriter(jaxpr)
    used = {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
    used.update(a.id for a in jaxpr.outs if isinstance(a, Var))
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        same = _unchanged(eqn, ins, used) if _is_loop(eqn.prim) else []
        bodies = [_with_copies(region, ins, same) for region in eqn.prim.regions() if same]
        prim = eqn.prim.with_constants(bodies, len(same)) if same else None
        if prim is None:
            made.keep(eqn, ins)
            continue
        made.replace(eqn, made.emit(eqn, prim, [*[ins[arg] for arg in same], *ins]))
        for result, arg in _results_of(eqn.prim.regions()):
            if arg in same:
                made.env[eqn.outs[result].id] = ins[arg]
    return made.finish()


loop_carries: Final[Transform] = at_every_depth(_loop_carries)


def _results_of(regions: Sequence[Region]) -> list[tuple[int, int]]:
    """Return the results that are final carries, each with the operand that it starts as."""
    return [
        (result, carry)
        for region in regions
        for result, carry in zip(region.results, region.carry_to, strict=True)
        if result is not None and carry is not None
    ]


def _unchanged(eqn: Eqn, ins: Sequence[Atom], used: set[int]) -> list[int]:
    """Return the carries that never change, and are used apart from being carried."""
    regions = eqn.prim.regions()
    same: dict[int, bool] = {}
    for region in regions:
        inputs = {v.id: arg for v, arg in zip(region.jaxpr.binders, region.args, strict=True)}
        for a, carry in zip(region.jaxpr.outs, region.carry_to, strict=True):
            if carry is not None:
                is_same = isinstance(a, Var) and inputs.get(a.id) == carry
                same[carry] = same.get(carry, True) and is_same
    after = {arg for result, arg in _results_of(regions) if eqn.outs[result].id in used}
    fits = {arg for result, arg in _results_of(regions) if eqn.outs[result].type is ins[arg].type}
    inside = {arg for region in regions for arg in _used_inside(region)}
    return [
        arg
        for arg, is_same in same.items()
        if is_same and arg in fits and (arg in after or arg in inside) and _typed(regions, arg, ins)
    ]


def _typed(regions: Sequence[Region], arg: int, ins: Sequence[Atom]) -> bool:
    return all(
        v.type is ins[arg].type
        for region in regions
        for v, a in zip(region.jaxpr.binders, region.args, strict=True)
        if a == arg
    )


def _used_inside(region: Region) -> set[int]:
    """Return the operands that a region uses apart from carrying them."""
    jaxpr = region.jaxpr
    inputs = {v.id: arg for v, arg in zip(jaxpr.binders, region.args, strict=True)}
    atoms = [a for eqn in jaxpr.eqns for a in eqn.ins]
    atoms += [
        a
        for a, carry in zip(jaxpr.outs, region.carry_to, strict=True)
        if carry is None or (isinstance(a, Var) and inputs.get(a.id) != carry)
    ]
    return {inputs[a.id] for a in atoms if isinstance(a, Var) and a.id in inputs}


def _with_copies(region: Region, ins: Sequence[Atom], same: Sequence[int]) -> Jaxpr:
    """Return the region with the operands ``same`` as first inputs, which replace their uses."""
    body = region.jaxpr
    inputs = {v.id: arg for v, arg in zip(body.binders, region.args, strict=True)}
    copies = {arg: Var(body.size + i, ins[arg].type) for i, arg in enumerate(same)}

    def use(a: Atom) -> Atom:
        return a if isinstance(a, Lit) else copies.get(inputs.get(a.id, -1), a)

    eqns = [eqn._replace(ins=tuple(map(use, eqn.ins))) for eqn in body.eqns]
    outs = [
        a if carry is not None and isinstance(a, Var) and inputs.get(a.id) == carry else use(a)
        for a, carry in zip(body.outs, region.carry_to, strict=True)
    ]
    changed = body.replace(outs=outs)
    return _with_first(changed, list(copies.values()), eqns, body.size + len(same))
