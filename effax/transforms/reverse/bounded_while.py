"""Bounded loops: a ``while`` as scans, whose steps are skipped after the predicate is false.

Before::

    while cond(c): c = body(c)                             at most 9 times

After, with ``all``: every step saves its values::

    scan 9 times (running, c) -> cond running: (cond(body(c)), body(c)), else: (false, c)

A scan saves the residuals of every step. With ``sqrt`` the steps are in blocks of 3, and each block
is a ``remat``: it saves its inputs only, and its steps are recomputed in the backward pass, one
block at a time::

    scan 3 times (running, c) -> cond running: remat(scan 3 times ...), else: (false, c)

``log`` nests blocks of 4 blocks of 4 blocks ..., down to steps: recursive checkpointing, as in
Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation" (1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import isqrt

from effax.ir.build import Builder, lit
from effax.ir.prims import Cond, Remat, Scan, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import PREDICATE, Type


class Checkpoints(Enum):
    """The values that a loop of at most ``n`` steps saves for its backward pass.

    ``ALL``: the residuals of every step; no step runs twice. ``SQRT``: the inputs or residuals of
    ``2·√n`` steps; each step runs twice. ``LOG``: the inputs of ``4·log4 n`` steps; each step runs
    up to ``1 + log4 n`` times.
    """

    ALL = "all"
    SQRT = "sqrt"
    LOG = "log"


def bounded(loop: While, max_steps: int, checkpoints: Checkpoints = Checkpoints.SQRT) -> Jaxpr:
    """Return a program that runs at most ``max_steps`` steps of a loop.

    Type:     while: (a, c) -> c  =>  (a, c) -> c
    Effects:  those of the loop; none on the caller's references unless ``ALL`` is saved.
    Laws:     tests/laws/test_bounded.py
    Raises:   RefError: the loop has effects that would be repeated by recomputation.
    """
    types = loop.body.in_types
    n = loop.n_consts
    b = Builder(types)
    consts, carry = b.binders[:n], list[Atom](b.binders[n:])
    (running,) = b.inline_jaxpr(loop.cond, [*consts, *carry])
    state = [running, *carry]
    inside = (*types[:n], PREDICATE, *types[n:])
    block = _while_running(inside, n, _step(loop, inside))
    for count, whole in _blocks(max_steps, checkpoints, inside, n, block):
        state = list(b.emit(Scan(whole, count, False, n, len(state)), [*consts, *state]))
    return b.finish(state[1:])


def _blocks(
    steps: int, checkpoints: Checkpoints, inside: Sequence[Type], n: int, block: Jaxpr
) -> list[tuple[int, Jaxpr]]:
    """Return blocks, the largest first, and how often each runs, for a number of steps in all.

    The counts are the digits of the number of steps; the base is the number of blocks in the next.
    """
    if checkpoints is Checkpoints.ALL:
        return [(steps, block)]
    base = 4 if checkpoints is Checkpoints.LOG else max(2, isqrt(max(steps - 1, 0)) + 1)
    found: list[tuple[int, Jaxpr]] = []
    while steps > base:
        steps, rest = divmod(steps, base)
        if rest:
            found.append((rest, block))
        block = _while_running(inside, n, _remat(inside, n, base, block))
    return [*([(steps, block)] if steps else []), *found[::-1]]


def _step(loop: While, inside: Sequence[Type]) -> Jaxpr:
    """``(consts, running, carry) -> (whether another step follows, carry)``."""
    b = Builder(inside)
    n = loop.n_consts
    consts, carry = b.binders[:n], b.binders[n + 1 :]
    new = b.inline_jaxpr(loop.body, [*consts, *carry])
    again = b.inline_jaxpr(loop.cond, [*consts, *new])
    return b.finish([*again, *new])


def _remat(inside: Sequence[Type], n: int, count: int, block: Jaxpr) -> Jaxpr:
    """Return a program of ``count`` blocks that saves its inputs only."""
    b = Builder(inside)
    outs = b.emit(Scan(block, count, False, n, len(inside) - n), b.binders)
    whole = b.finish(outs)
    again = Builder(inside)
    # In a loop no pass merges the recomputed equations with the original ones.
    return again.finish(again.emit(Remat(whole, prevent_cse=False), again.binders))


def _while_running(inside: Sequence[Type], n: int, step: Jaxpr) -> Jaxpr:
    """Return the step, which is skipped if the loop has ended."""
    over = Builder(inside)
    done = over.finish([lit(False, PREDICATE), *over.binders[n + 1 :]])
    b = Builder(inside)
    return b.finish(b.emit(Cond((done, step)), [b.binders[n], *b.binders]))
