"""What is the same in every iteration of a loop leaves the loop.

Before ``hoist``, of which ``loop_carries`` first makes the carry that never changes a constant::

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

Which primitives are loops is their own word: ``Primitive.with_constants`` gives one with more
arguments that are the same in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.effects import Read, SideEffect, commutes
from effax.ir.edit.rewriter import Rewriter
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import Type
from effax.transforms.framework.renumber import numbered
from effax.transforms.framework.rewriter import Transform, at_every_depth


def _hoist(jaxpr: Jaxpr) -> Jaxpr:
    """Compute before a loop, once, what is the same in each of its iterations.

    Type:     a -> b  =>  a -> b
    Effects:  the same; a loop may read less.
    Laws:     tests/laws/test_simplify.py

    An equation leaves the loop if all that it takes is constant there and all that it does is to
    read references on which the loop does nothing that does not commute with reading. It runs then
    even where the loop has no iterations; so it must end, and loops on a condition stay.
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
    held = prim.subjaxprs()
    if not held or len(prim.regions()) != len(held):
        return False
    if not prim.may_repeat() or prim.selector() is not None:
        return False
    return prim.with_constants(held, 0) is not None


def _fed(regions: Sequence[Region]) -> set[int]:
    """The arguments that change from one iteration to the next."""
    return {feed for region in regions for feed in region.carry_to if feed is not None}


@memoize(maxsize=1 << 12)
def _movable(prim: Primitive, types: tuple[Type, ...]) -> tuple[tuple[int, ...], ...]:
    """For each program of a loop, the places of the equations that can be computed before it."""
    regions = prim.regions()
    fed = _fed(regions)
    changed = {
        region.args[effect.ref]
        for region in regions
        for effect in region.jaxpr.effects
        if not isinstance(effect, SideEffect) and not commutes(effect, Read(effect.ref))
    }
    return tuple(_movable_in(region, types, fed, changed) for region in regions)


def _movable_in(
    region: Region, types: Sequence[Type], fed: set[int], changed: set[int]
) -> tuple[int, ...]:
    jaxpr = region.jaxpr
    # A scanned argument has another type than its elements.
    constant = {
        v.id
        for v, arg in zip(jaxpr.binders, region.args, strict=True)
        if arg not in fed and v.type is types[arg]
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
    """Whether the equation only reads what stays as it is, and ends."""
    for effect in eqn.effects:
        if not isinstance(effect, Read):
            return False
        ref = eqn.ins[effect.ref]
        if not isinstance(ref, Var) or ref.id not in stable:
            return False
    return terminates(eqn.prim)


@memoize(maxsize=1 << 12)
def terminates(prim: Primitive) -> bool:
    """Whether an application is known to end: it runs no program until a condition holds."""
    held = prim.subjaxprs()
    if not held:
        return True
    regions = prim.regions()
    if not regions or any(region.is_predicate for region in regions):
        return False
    return all(terminates(eqn.prim) for region in regions for eqn in region.jaxpr.eqns)


def _lift(
    made: Rewriter, eqn: Eqn, ins: tuple[Atom, ...], moved: tuple[tuple[int, ...], ...]
) -> None:
    """Append the equations that leave, then the loop with what they give as constants."""
    regions = eqn.prim.regions()
    constants: list[Atom] = []
    given: list[list[Var]] = []
    for region, places in zip(regions, moved, strict=True):
        body = region.jaxpr
        outside = made.nested(body, [ins[arg] for arg in region.args])
        for i in places:
            outside.keep(body.eqns[i], outside.operands(body.eqns[i]))
        given.append(_needed(body, places))
        constants += [outside.read(v) for v in given[-1]]
    bodies = [
        _reduced(region.jaxpr, places, given, k)
        for k, (region, places) in enumerate(zip(regions, moved, strict=True))
    ]
    _replace_loop(made, eqn, bodies, constants, ins)


def _needed(body: Jaxpr, moved: Sequence[int]) -> list[Var]:
    """What equations that leave give to those that stay, and to the results."""
    gone = set(moved)
    made = {v.id for i in moved for v in body.eqns[i].outs}
    rest = [a for i, eqn in enumerate(body.eqns) if i not in gone for a in eqn.ins]
    return [*dict.fromkeys(a for a in (*rest, *body.outs) if isinstance(a, Var) and a.id in made)]


def _reduced(body: Jaxpr, moved: Sequence[int], given: Sequence[list[Var]], own: int) -> Jaxpr:
    """The program without the equations that leave, on what all programs of the loop are given."""
    gone = set(moved)
    eqns = [eqn for i, eqn in enumerate(body.eqns) if i not in gone]
    free = body.size
    first: list[Var] = []
    for k, variables in enumerate(given):
        for v in variables:
            first.append(v if k == own else Var(free, v.type))
            free += k != own
    return _with_first(body, first, eqns, free)


def _with_first(body: Jaxpr, first: Sequence[Var], eqns: Sequence[Eqn], size: int) -> Jaxpr:
    names = [*[""] * len(first), *body.names] if body.names else ()
    n_consts = body.n_consts + len(first)
    return numbered([*first, *body.binders], eqns, body.outs, size, n_consts, names)


def _replace_loop(
    made: Rewriter,
    eqn: Eqn,
    bodies: Sequence[Jaxpr],
    constants: Sequence[Atom],
    ins: tuple[Atom, ...],
) -> None:
    prim = eqn.prim.with_constants(bodies, len(constants))
    assert prim is not None, "a loop"
    made.replace(eqn, made.emit(eqn, prim, [*constants, *ins]))


def _loop_carries(jaxpr: Jaxpr) -> Jaxpr:
    """Make constants of what a loop carries and never changes.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     tests/laws/test_simplify.py

    The carry itself, which nothing uses then, is left to ``dce``.
    """
    made = Rewriter(jaxpr)
    used = {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
    used.update(a.id for a in jaxpr.outs if isinstance(a, Var))
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        same = _unchanged(eqn, ins, used) if _is_loop(eqn.prim) else []
        if not same:
            made.keep(eqn, ins)
            continue
        bodies = [_with_copies(region, ins, same) for region in eqn.prim.regions()]
        _replace_loop(made, eqn, bodies, [ins[arg] for arg in same], ins)
        for result, arg in _results_of(eqn.prim.regions()):
            if arg in same:
                made.env[eqn.outs[result].id] = ins[arg]
    return made.finish()


loop_carries: Final[Transform] = at_every_depth(_loop_carries)


def _results_of(regions: Sequence[Region]) -> list[tuple[int, int]]:
    """The results that are carries in the end, each with the argument of which it is the last."""
    return [
        (result, feed)
        for region in regions
        for result, feed in zip(region.results, region.carry_to, strict=True)
        if result is not None and feed is not None
    ]


def _unchanged(eqn: Eqn, ins: Sequence[Atom], used: set[int]) -> list[int]:
    """The arguments that are fed back as they are, and are used for something besides."""
    regions = eqn.prim.regions()
    fed: dict[int, bool] = {}
    for region in regions:
        inputs = {v.id: arg for v, arg in zip(region.jaxpr.binders, region.args, strict=True)}
        for a, feed in zip(region.jaxpr.outs, region.carry_to, strict=True):
            if feed is not None:
                is_same = isinstance(a, Var) and inputs.get(a.id) == feed
                fed[feed] = fed.get(feed, True) and is_same
    after = {arg for result, arg in _results_of(regions) if eqn.outs[result].id in used}
    fits = {arg for result, arg in _results_of(regions) if eqn.outs[result].type is ins[arg].type}
    inside = {arg for region in regions for arg in _used_inside(region)}
    return [
        arg
        for arg, is_same in fed.items()
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
    """The arguments that a program uses, but for feeding them back."""
    jaxpr = region.jaxpr
    inputs = {v.id: arg for v, arg in zip(jaxpr.binders, region.args, strict=True)}
    atoms = [a for eqn in jaxpr.eqns for a in eqn.ins]
    atoms += [
        a
        for a, feed in zip(jaxpr.outs, region.carry_to, strict=True)
        if feed is None or (isinstance(a, Var) and inputs.get(a.id) != feed)
    ]
    return {inputs[a.id] for a in atoms if isinstance(a, Var) and a.id in inputs}


def _with_copies(region: Region, ins: Sequence[Atom], same: Sequence[int]) -> Jaxpr:
    """The program with the arguments ``same`` given once more, first, and used in that place."""
    body = region.jaxpr
    inputs = {v.id: arg for v, arg in zip(body.binders, region.args, strict=True)}
    copies = {arg: Var(body.size + i, ins[arg].type) for i, arg in enumerate(same)}

    def use(a: Atom) -> Atom:
        return a if isinstance(a, Lit) else copies.get(inputs.get(a.id, -1), a)

    eqns = [eqn._replace(ins=tuple(map(use, eqn.ins))) for eqn in body.eqns]
    outs = [
        a if feed is not None and isinstance(a, Var) and inputs.get(a.id) == feed else use(a)
        for a, feed in zip(body.outs, region.carry_to, strict=True)
    ]
    changed = body.replace(outs=outs)
    return _with_first(changed, list(copies.values()), eqns, body.size + len(same))
