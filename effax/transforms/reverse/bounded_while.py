"""Loops with a bound: a ``while`` as scans whose steps are skipped once it is over.

Before::

    while cond(c): c = body(c)                             at most 9 times

After, where nothing is computed again::

    scan 9 times (running, c) -> cond running: (cond(body(c)), body(c)), else: (false, c)

What a scan keeps for its backward pass is kept for every step. With ``sqrt`` the steps are in
blocks of 3, and each block is a ``remat``: only what it begins with is kept, and its steps are
computed once more, one block at a time::

    scan 3 times (running, c) -> cond running: remat(scan 3 times ...), else: (false, c)

``log`` does the same in blocks of 4 blocks of 4 blocks ..., down to steps.
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
    """What a loop of at most ``n`` steps keeps for its backward pass.

    ``ALL``: what every step computes, so that no step runs twice. ``SQRT``: what ``2·√n`` steps
    compute or begin with; each step runs twice. ``LOG``: what ``4·log4 n`` steps begin with; each
    step runs up to ``1 + log4 n`` times.
    """

    ALL = "all"
    SQRT = "sqrt"
    LOG = "log"


def bounded(loop: While, max_steps: int, checkpoints: Checkpoints = Checkpoints.SQRT) -> Jaxpr:
    """The loop as a program that takes at most ``max_steps`` steps, then ends.

    Type:     while: (a, c) -> c  =>  (a, c) -> c
    Effects:  those of the loop; none on references from outside unless ``ALL`` is kept.
    Laws:     tests/laws/test_bounded.py
    Raises:   RefError: the loop has effects, and some of what it does would be done again.
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
    """Blocks, the largest first, and how often each runs, for so many steps in all.

    These are the digits of the number of steps, to the base of how many blocks are in the next.
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
    """So many blocks, of which only the beginning is kept."""
    b = Builder(inside)
    outs = b.emit(Scan(block, count, False, n, len(inside) - n), b.binders)
    whole = b.finish(outs)
    again = Builder(inside)
    # Inside of a loop nothing merges what is computed again with what was computed before.
    return again.finish(again.emit(Remat(whole, prevent_cse=False), again.binders))


def _while_running(inside: Sequence[Type], n: int, step: Jaxpr) -> Jaxpr:
    """The step, if the loop is not over."""
    over = Builder(inside)
    done = over.finish([lit(False, PREDICATE), *over.binders[n + 1 :]])
    b = Builder(inside)
    return b.finish(b.emit(Cond((done, step)), [b.binders[n], *b.binders]))
