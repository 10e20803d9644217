"""Programs with their inputs and results in another order, numbered in order of binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var

_new = tuple.__new__


def numbered(
    binders: Sequence[Var],
    eqns: Iterable[Eqn],
    outs: Sequence[Atom],
    size: int,
    n_consts: int = 0,
    names: Sequence[str] = (),
) -> Jaxpr:
    """A program of these parts, its variables numbered anew.

    Args:
        binders: the inputs.
        eqns: the equations, in which every variable that is used is bound.
        outs: the results.
        size: one more than the greatest number in use so far.
        n_consts: how many leading binders are captured.
        names: what the user calls each binder.
    """
    n = len(binders)
    env = cast("list[Atom]", [None] * size)  # None is never read: bound before use
    fresh = [Var(i, v.type) for i, v in enumerate(binders)]
    for v, w in zip(binders, fresh, strict=True):
        env[v.id] = w
    made: list[Eqn] = []
    push = made.append
    for prim, ins, bound, effects, source in eqns:
        # Most equations have two arguments, and one result.
        if len(ins) == 2:
            a, b = ins
            if type(a) is not Lit:
                a = env[a[0]]
            if type(b) is not Lit:
                b = env[b[0]]
            new_ins: tuple[Atom, ...] = (a, b)
        else:
            new_ins = tuple([a if type(a) is Lit else env[a[0]] for a in ins])
        if len(bound) == 1:
            (v,) = bound
            w = env[v[0]] = _new(Var, (n, v[1]))
            n += 1
            new_outs: tuple[Var, ...] = (w,)
        else:
            new_outs = tuple([_new(Var, (n + i, v[1])) for i, v in enumerate(bound)])
            n += len(bound)
            for v, w in zip(bound, new_outs, strict=True):
                env[v[0]] = w
        push(_new(Eqn, (prim, new_ins, new_outs, effects, source)))
    results = [a if isinstance(a, Lit) else env[a.id] for a in outs]
    return Jaxpr(fresh, made, results, n_consts, names)


def rearranged(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int]) -> Jaxpr:
    """The program that takes its inputs, and gives its results, in these orders."""
    names = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in ins]
    return numbered(
        [jaxpr.binders[i] for i in ins],
        jaxpr.eqns,
        [jaxpr.outs[i] for i in outs],
        jaxpr.size,
        names=names if any(names) else (),
    )
