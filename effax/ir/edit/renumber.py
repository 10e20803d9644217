"""Programs with their inputs and results in another order, numbered in order of binding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from effax.ir.build import Builder
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var


def numbered(
    binders: Sequence[Var],
    eqns: Iterable[Eqn],
    outs: Sequence[Atom],
    size: int,
    n_consts: int = 0,
    names: Sequence[str] = (),
    out_names: Sequence[str] = (),
) -> Jaxpr:
    """Return the program of these parts, its variables renumbered.

    Args:
        binders: the inputs.
        eqns: the equations, in which every variable that is used is bound.
        outs: the results.
        size: one more than the greatest number in use so far.
        n_consts: how many leading binders are captured.
        names: the user's name of each binder.
        out_names: the tree path of each result.
    """
    b = Builder([v.type for v in binders])
    env = cast("list[Atom]", [None] * size)  # None is never read: bound before use
    for v, w in zip(binders, b.binders, strict=True):
        env[v.id] = w
    b.replay(eqns, env)
    results = [a if isinstance(a, Lit) else env[a.id] for a in outs]
    return b.finish(results, n_consts, names, out_names)


def rearranged(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int]) -> Jaxpr:
    """Return the program with its inputs and results in these orders."""
    names = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in ins]
    return numbered(
        [jaxpr.binders[i] for i in ins],
        jaxpr.eqns,
        [jaxpr.outs[i] for i in outs],
        jaxpr.size,
        names=names if any(names) else (),
    )


def with_merged_inputs(jaxpr: Jaxpr, same: Mapping[int, int]) -> Jaxpr:
    """Return the program with each input in ``same`` replaced by another one, of its type."""
    env = cast("list[Atom]", [None] * jaxpr.size)  # None is never read: bound before use
    kept = [i for i in range(len(jaxpr.binders)) if i not in same]
    b = Builder([jaxpr.binders[i].type for i in kept])
    for i, w in zip(kept, b.binders, strict=True):
        env[jaxpr.binders[i].id] = w
    for i, j in same.items():
        env[jaxpr.binders[i].id] = env[jaxpr.binders[j].id]
    b.replay(jaxpr.eqns, env)
    results = [a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]
    names = [jaxpr.names[i] for i in kept if i < len(jaxpr.names)]
    return b.finish(results, sum(i < jaxpr.n_consts for i in kept), names)
