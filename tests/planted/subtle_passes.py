"""Passes that are wrong at few places, as their authors might write them, and right ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from returns.result import Success

from effax.effects import NO_EFFECTS
from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import int_bounds, is_float, is_integer
from effax.ir.edit.alpha import renumbered
from effax.ir.edit.mapping import map_eqns
from effax.ir.edit.operations import everywhere, substitute
from effax.ir.prims import AddUpdate, Cond, DebugCallback, Get, IoCallback, Scan, Swap, While
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.passes import EXACT, Guarantee, Pass

Change = Callable[[Builder, Eqn], Any]


def local(change: Change, *guarantees: Guarantee) -> Pass:
    """Return the pass that replaces equations, at every depth."""
    function = partial(everywhere, partial(map_eqns, change))
    laws = guarantees or (Guarantee.SAME_MEANING,)
    return Pass(change.__name__, lambda jaxpr: Success(function(jaxpr)), laws)


def whole(change: Callable[[Jaxpr], Jaxpr], *guarantees: Guarantee) -> Pass:
    """Return the pass that changes programs, at every depth."""
    laws = guarantees or (Guarantee.SAME_MEANING,)
    return Pass(change.__name__, lambda jaxpr: Success(everywhere(change, jaxpr)), laws)


def made_by(b: Builder, a: Atom, prim: type) -> Eqn | None:
    found = b.equation_of(a) if isinstance(a, Var) else None
    return found if found is not None and isinstance(found.prim, prim) else None


def relu(b: Builder, eqn: Eqn) -> Any:
    """Rewrite select(x > 0, 0, x) to max(x, 0), which is nan at nan."""
    if not isinstance(eqn.prim, p.SelectN) or len(eqn.ins) != 3:
        return None
    test = made_by(b, eqn.ins[0], p.Gt)
    if test is None or eqn.ins[2] != test.ins[0] or test.ins[1] != eqn.ins[1]:
        return None
    return b(p.Max(), *test.ins) if is_float(eqn.outs[0].type.dtype) else None


def turned_difference(b: Builder, eqn: Eqn) -> Any:
    """Rewrite -(x - y) to y - x, which is 0 where the other is -0."""
    inner = made_by(b, eqn.ins[0], p.Sub) if isinstance(eqn.prim, p.Neg) else None
    return inner and b(p.Sub(), inner.ins[1], inner.ins[0])


def constant_quotients(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x / c to x · (1/c) bit by bit, which is right for powers of two only."""
    if not isinstance(eqn.prim, p.Div) or not is_float(eqn.ins[0].type.dtype):
        return None
    c = eqn.ins[1]
    if not isinstance(c, Lit) or not complex(c.value).real:
        return None
    return b(p.Mul(), eqn.ins[0], lit(1 / complex(c.value).real, c.type))


def zeroed_products(b: Builder, eqn: Eqn) -> Any:
    """Rewrite exp(x) · 0 to 0, which is nan where exp overflows."""
    if not isinstance(eqn.prim, p.Mul) or not is_float(eqn.outs[0].type.dtype):
        return None
    for x, zero in (eqn.ins, eqn.ins[::-1]):
        if isinstance(zero, Lit) and zero.value == 0 and made_by(b, x, p.Exp) is not None:
            like = b(p.IsFinite(), x)
            return b(p.ConvertElementType(x.type.dtype), b(p.Xor(), like, like))
    return None


def strong_numbers(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x · 1 to x, also where x is weak and the product is not, or the reverse."""
    if not isinstance(eqn.prim, p.Mul):
        return None
    x, one = eqn.ins
    if isinstance(one, Lit) and one.value == 1 and one.type.dtype == x.type.dtype:
        return b(p.Copy(), x)
    return None


def first_iteration(b: Builder, eqn: Eqn) -> Any:
    """Peel the first iteration of a loop over constants, also of a loop without iterations."""
    prim = eqn.prim
    if not isinstance(prim, Scan) or prim.reverse or eqn.effects:
        return None
    if len(eqn.ins) != prim.n_consts + prim.n_carry or len(prim.jaxpr.outs) != prim.n_carry:
        return None
    consts, carry = eqn.ins[: prim.n_consts], eqn.ins[prim.n_consts :]
    first = b.inline_jaxpr(prim.jaxpr, [*consts, *carry])
    return b.emit(replace(prim, length=max(0, prim.length - 1)), [*consts, *first])


def paired_iterations(b: Builder, eqn: Eqn) -> Any:
    """Run half as many iterations of twice the body; an odd last one is lost."""
    prim = eqn.prim
    if not isinstance(prim, Scan) or prim.length % 2 == 0 or eqn.effects or prim.length > 1:
        return None
    if len(eqn.ins) != prim.n_consts + prim.n_carry or len(prim.jaxpr.outs) != prim.n_carry:
        return None
    return b.emit(replace(prim, length=0), eqn.ins)


def eager_loop(b: Builder, eqn: Eqn) -> Any:
    """Replace a while by its first iteration and the loop, whose condition may fail at once."""
    prim = eqn.prim
    if not isinstance(prim, While) or eqn.effects:
        return None
    consts, carry = eqn.ins[: prim.n_consts], eqn.ins[prim.n_consts :]
    return b.emit(prim, [*consts, *b.inline_jaxpr(prim.body, [*consts, *carry])])


def reload(jaxpr: Jaxpr) -> Jaxpr:
    """Replace a load by an earlier one of the same place, over stores in nested programs."""
    b = Builder(jaxpr.in_types)
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=True))
    known: dict[Any, Atom] = {}
    for eqn in jaxpr.eqns:
        ins = tuple([env.get(a, a) for a in eqn.ins])
        if isinstance(eqn.prim, Get) and known.get((eqn.prim, ins)) is not None:
            env[eqn.outs[0]] = known[eqn.prim, ins]
            continue
        outs = b.emit(eqn.prim, ins, eqn.source)
        env.update(zip(eqn.outs, outs, strict=True))
        if isinstance(eqn.prim, Get):
            known[eqn.prim, ins] = outs[0]
        elif not eqn.prim.subjaxprs():
            known = {k: x for k, x in known.items() if k[1][0] not in ins}
    return b.finish([env.get(a, a) for a in jaxpr.outs], jaxpr.n_consts, jaxpr.names)


def used(jaxpr: Jaxpr) -> set[Atom]:
    return {a for eqn in jaxpr.eqns for a in eqn.ins} | {*jaxpr.outs}


def silent_branches(b: Builder, eqn: Eqn) -> Any:
    """Remove calls of the host without results in branches."""
    if not isinstance(eqn.prim, Cond):
        return None
    branches = [
        renumbered(one.replace(eqns=[e for e in one.eqns if not isinstance(e.prim, DebugCallback)]))
        for one in eqn.prim.subjaxprs()
    ]
    return b.emit(eqn.prim.with_subjaxprs(branches), eqn.ins)


def shared_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Make one of two equal calls of the host, which are observed."""
    b = Builder(jaxpr.in_types)
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=True))
    known: dict[Any, Sequence[Atom]] = {}
    for eqn in jaxpr.eqns:
        key = eqn.prim, tuple([env.get(a, a) for a in eqn.ins])
        is_call = isinstance(eqn.prim, IoCallback | DebugCallback)
        outs = known.get(key) if is_call else None
        if outs is None:
            outs = known[key] = b.emit(eqn.prim, key[1], eqn.source)
        env.update(zip(eqn.outs, outs, strict=True))
    return b.finish([env.get(a, a) for a in jaxpr.outs], jaxpr.n_consts, jaxpr.names)


def same_place(jaxpr: Jaxpr) -> Jaxpr:
    """Remove a store before another one to the reference, at other positions too."""
    seen = used(jaxpr)
    dead = {
        i
        for i, (first, second) in enumerate(pairwise(jaxpr.eqns))
        if isinstance(first.prim, Swap)
        and first.prim == second.prim
        and first.ins[0] == second.ins[0]
        and first.outs[0] not in seen
    }
    eqns = [eqn for i, eqn in enumerate(jaxpr.eqns) if i not in dead]
    return renumbered(jaxpr.replace(eqns=eqns)) if dead else jaxpr


def late_sums(jaxpr: Jaxpr) -> Jaxpr:
    """Move an accumulation over the equation that follows it, which may load the sum."""
    eqns = [*jaxpr.eqns]
    for i, (first, second) in enumerate(pairwise(eqns)):
        if isinstance(first.prim, AddUpdate) and second.prim.subjaxprs():
            eqns[i : i + 2] = second, first
            return renumbered(jaxpr.replace(eqns=eqns))
    return jaxpr


def both_branches(b: Builder, eqn: Eqn) -> Any:
    """Replace a branch by a choice of the results of both, whose effects happen too."""
    prim = eqn.prim
    if not isinstance(prim, Cond) or len(prim.subjaxprs()) != 2 or not eqn.outs:
        return None
    index, *rest = eqn.ins
    if index.type.dtype.name != "bool":
        return None
    first, second = (b.inline_jaxpr(one, rest) for one in prim.subjaxprs())
    return [b(p.SelectN(), index, x, y) for x, y in zip(first, second, strict=True)]


def merged_comparison(b: Builder, eqn: Eqn) -> Any:
    """Rewrite x - y > 0 to x > y, which differs where both are infinite or the difference wraps."""
    if not isinstance(eqn.prim, p.Gt):
        return None
    inner = made_by(b, eqn.ins[0], p.Sub)
    zero = eqn.ins[1]
    if inner is None or not isinstance(zero, Lit) or zero.value != 0:
        return None
    return b(p.Gt(), *inner.ins)


def closed_bound(b: Builder, eqn: Eqn) -> Any:
    """Rewrite a comparison with a constant to the closed one, which differs at the constant."""
    if not isinstance(eqn.prim, p.Lt) or not isinstance(eqn.ins[1], Lit):
        return None
    return b(p.Le(), *eqn.ins)


def unnamed_effects(jaxpr: Jaxpr) -> Jaxpr:
    """Forget the effects of accumulations."""
    eqns = [
        eqn._replace(effects=NO_EFFECTS) if isinstance(eqn.prim, AddUpdate) else eqn
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=eqns)


def unnumbered(jaxpr: Jaxpr) -> Jaxpr:
    """Move the first equation behind the second, without new numbers."""
    for i, (first, second) in enumerate(pairwise(jaxpr.eqns)):
        free = not first.effects and not second.effects and not {*first.outs} & {*second.ins}
        if free and first.outs and second.outs:
            eqns = [*jaxpr.eqns]
            eqns[i : i + 2] = second, first
            return jaxpr.replace(eqns=eqns)
    return jaxpr


def clamped(b: Builder, eqn: Eqn) -> Atom | None:
    """Rewrite a clamp, where the upper bound is last, to one where the lower one is."""
    if not isinstance(eqn.prim, p.Clamp) or len({a.type for a in eqn.ins}) > 1:
        return None
    low, x, high = eqn.ins
    return b(p.Max(), low, b(p.Min(), x, high))


def saturated(b: Builder, eqn: Eqn) -> Atom | None:
    """Rewrite (x + c) + d to x + (c + d), where the sum of the constants saturates."""
    inner = made_by(b, eqn.ins[0], p.Add) if isinstance(eqn.prim, p.Add) else None
    if inner is None or not is_integer(eqn.outs[0].type.dtype):
        return None
    (x, c), d = inner.ins, eqn.ins[1]
    if not isinstance(c, Lit) or not isinstance(d, Lit):
        return None
    least, greatest = int_bounds(c.type.dtype)
    total = int(c.value.real) + int(d.value.real)
    return b(p.Add(), x, lit(max(least, min(total, greatest)), d.type))


def halved(b: Builder, eqn: Eqn) -> Atom | None:
    """Compare two scalars multiplied by 0.5, which is zero for the smallest numbers."""
    x = eqn.ins[0].type if eqn.ins else None
    if not isinstance(eqn.prim, p.Lt | p.Gt) or x is None or x.shape or not is_float(x.dtype):
        return None
    return b(eqn.prim, *[b(p.Mul(), a, lit(0.5, a.type)) for a in eqn.ins])


def quiet_branches(b: Builder, eqn: Eqn) -> Sequence[Atom] | None:
    """Remove a conditional without results or stores, one of whose branches is empty."""
    if not isinstance(eqn.prim, Cond) or eqn.outs or eqn.effects.refs:
        return None
    return [] if any(not branch.eqns for branch in eqn.prim.branches) else None


def merged_allocations(jaxpr: Jaxpr) -> Jaxpr:
    """Allocate references of equal contents once, unless one of them is consumed."""
    consumed = {e.ins[0] for e in jaxpr.eqns if isinstance(e.prim, p.Freeze | p.FreeRef)}
    first: dict[tuple[Any, ...], Var] = {}
    values: dict[Var, Atom] = {}
    for eqn in jaxpr.eqns:
        if isinstance(eqn.prim, p.NewRef) and eqn.outs[0] not in consumed:
            old = first.setdefault((eqn.prim, eqn.ins), eqn.outs[0])
            if old is not eqn.outs[0]:
                values[eqn.outs[0]] = old
    return substitute(jaxpr, values) if values else jaxpr


def shallow_reload(jaxpr: Jaxpr) -> Jaxpr:
    """Load once what is loaded twice, unless an equation or its subjaxpr stores in between."""
    known: dict[tuple[Any, ...], Var] = {}
    values: dict[Var, Atom] = {}
    for eqn in jaxpr.eqns:
        inner = [e for one in eqn.prim.subjaxprs() for e in one.eqns]
        if isinstance(eqn.prim, Get):
            old = known.setdefault((eqn.prim, eqn.ins), eqn.outs[0])
            if old is not eqn.outs[0]:
                values[eqn.outs[0]] = old
        elif not inner or any(isinstance(e.prim, Swap | AddUpdate) for e in inner):
            known = {key: v for key, v in known.items() if key[1][0] not in eqn.ins}
    return substitute(jaxpr, values) if values else jaxpr


def forgotten_index(jaxpr: Jaxpr) -> Jaxpr:
    """Remove the stores of branches before another store to the reference, at any index."""

    def branch(inner: Jaxpr) -> Jaxpr:
        used = {a for eqn in inner.eqns for a in eqn.ins} | {*inner.outs}
        kept: list[Eqn] = []
        last: Eqn | None = None
        for eqn in inner.eqns:
            if last is not None and eqn.ins[:1] == last.ins[:1] and isinstance(eqn.prim, Swap):
                kept.remove(last)
            if isinstance(eqn.prim, Swap) and eqn.outs[0] not in used:
                last = eqn
            elif eqn.effects:
                last = None
            kept.append(eqn)
        return renumbered(inner.replace(eqns=kept))

    eqns = [
        eqn._replace(prim=Cond(tuple(map(branch, eqn.prim.branches))))
        if isinstance(eqn.prim, Cond)
        else eqn
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=eqns)


def clipped_sums(b: Builder, eqn: Eqn) -> Atom | None:
    """Compute sums of two integer literals, with saturation."""
    if not isinstance(eqn.prim, p.Add) or not is_integer(eqn.outs[0].type.dtype):
        return None
    x, y = eqn.ins
    if not isinstance(x, Lit) or not isinstance(y, Lit):
        return None
    least, greatest = int_bounds(x.type.dtype)
    total = int(x.value.real) + int(y.value.real)
    return lit(max(least, min(total, greatest)), eqn.outs[0].type)


def late_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Move calls of the host behind the equation without effects that follows; right."""
    eqns = [*jaxpr.eqns]
    for i, (first, second) in enumerate(pairwise(jaxpr.eqns)):
        if isinstance(first.prim, DebugCallback) and not second.effects:
            eqns[i : i + 2] = second, first
            return renumbered(jaxpr.replace(eqns=eqns))
    return jaxpr


WRONG: Final = (
    local(relu),
    local(turned_difference, *EXACT[:1], Guarantee.SAME_BITS),
    local(constant_quotients, Guarantee.SAME_BITS),
    local(zeroed_products),
    local(strong_numbers),
    local(first_iteration),
    local(paired_iterations),
    local(eager_loop),
    whole(reload),
    local(silent_branches),
    whole(shared_calls),
    whole(same_place),
    whole(late_sums),
    local(both_branches),
    local(merged_comparison),
    local(closed_bound),
    whole(unnamed_effects),
    whole(unnumbered),
    local(clamped),
    local(saturated),
    local(halved, Guarantee.SAME_BITS),
    local(quiet_branches),
    whole(merged_allocations),
    whole(shallow_reload),
    whole(forgotten_index),
    local(clipped_sums),
)

OF_CALLS: Final = whole(late_calls)
"""A right pass that changes only programs with calls of the host."""
