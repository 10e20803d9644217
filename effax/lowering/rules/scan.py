"""Lowering of ``scan``: a counting loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.prims.scan import stacked_type
from effax.ir.types import COUNTER
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def scan(w: Writer, prim: p.Scan, ins: Sequence[Val]) -> Sequence[Val]:
    """Write a counting loop that reads ``xs[i]``, and writes ``ys[i]`` in place.

    ``ys`` are carries of the loop, allocated before it, so that an iteration writes one element.
    """
    consts, carry, xs = prim.split(ins)
    n = prim.length
    unroll = max(1, min(prim.unroll, n))
    y_types = [stacked_type(t, n) for t in prim.jaxpr.out_types[prim.n_carry :]]
    ys: Sequence[Val] = [w.constant(0, t) for t in y_types]
    if n == 0:
        return (*carry, *ys)

    def element(x: Val, place: Sequence[Val]) -> Val:
        part = ops.dynamic_slice(w, x, _origin(x, place), (1, *x.shape[1:]))
        return ops.reshape(w, part, x.shape[1:])

    def stored(y: Val, value: Val, place: Sequence[Val]) -> Val:
        row = ops.reshape(w, value, (1, *value.shape))
        return ops.dynamic_update_slice(w, y, row, _origin(y, place))

    def step(count: Val, state: Sequence[Val]) -> Sequence[Val]:
        """Write iteration ``count``, from and to ``(*carry, *ys)``."""
        carry, ys = state[: prim.n_carry], state[prim.n_carry :]
        zero = w.constant(0, COUNTER)
        at = ops.same(w, "subtract", w.constant(n - 1, COUNTER), count) if prim.reverse else count
        elements = [element(x, [at, zero]) for x in xs]
        outs = w.call(prim.jaxpr, [*consts, *carry, *elements], "body")
        new = outs[prim.n_carry :]
        written = [stored(y, v, [at, zero]) for y, v in zip(ys, new, strict=True)]
        return (*outs[: prim.n_carry], *written)

    def iterations(count: Val, *state: Val) -> Sequence[Val]:
        for k in range(unroll):
            at = ops.same(w, "add", count, w.constant(k, COUNTER)) if k else count
            state = tuple(step(at, state))
        return (ops.same(w, "add", count, w.constant(unroll, COUNTER)), *state)

    def again(count: Val, *state: Val) -> Sequence[Val]:
        return (ops.compare(w, "LT", count, w.constant(n - n % unroll, COUNTER)),)

    state: Sequence[Val] = (*carry, *ys)
    rest = range(n - n % unroll, n)
    if unroll == n:
        rest = range(n)
    else:
        _, *state = ops.while_(w, [w.constant(0, COUNTER), *state], again, iterations)
    for k in rest:
        state = step(w.constant(k, COUNTER), state)
    return state


def _origin(x: Val, place: Sequence[Val]) -> list[Val]:
    """Return ``place[0]``, the index along the leading axis, and ``place[1]``, 0, for others."""
    return [place[0], *[place[1]] * (len(x.shape) - 1)]


RULES: Final[LoweringRules] = NO_RULES.extend(p.Scan, scan)
