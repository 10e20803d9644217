"""Lowering of the primitives that hold programs. Every held program becomes a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import INT32, family
from effax.ir.prims.scan import stacked_type
from effax.ir.syntax import Jaxpr, Var
from effax.ir.types import COUNTER, ArrayType, Type
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, Val, Writer


def jit(w: Writer, prim: p.Jit, ins: Sequence[Val]) -> Sequence[Val]:
    return w.call(prim.jaxpr, ins, prim.label)


def cond(w: Writer, prim: p.Cond, ins: Sequence[Val]) -> Sequence[Val]:
    index, *operands = ins
    if len(prim.branches) == 1:
        return w.call(prim.branches[0], operands, "branch")
    two = len(prim.branches) == 2
    regions = [
        w.region([], lambda branch=branch: _branch(w, branch, operands, two), captures=True)
        for branch in prim.branches
    ]
    types = [_array(t) for t in prim.branches[0].out_types]
    if family(index.type.dtype) == "bool":
        # Not StableHLO's `if`: XLA copies what a branch of that passes on.
        inside = ops.convert(w, index, INT32)
    else:
        # An index outside takes the nearest branch; StableHLO's case would take the last one.
        low, high = ops.full(w, 0, index), ops.full(w, len(regions) - 1, index)
        inside = ops.mapped(w, "clamp", index.type, low, index, high)
    held = f"({', '.join(regions)})"
    return w.op(f'"stablehlo.case"({inside}) {held} : {ops.signature([inside], *types)}', *types)


def _branch(w: Writer, branch: Jaxpr, operands: Sequence[Val], of_two: bool) -> Sequence[Val]:
    """A branch. One of two that only passes values on is no function: XLA would copy them."""
    given = {v.id: x for v, x in zip(branch.binders, operands, strict=True)}
    passed = [given[a.id] for a in branch.outs if isinstance(a, Var) and a.id in given]
    if of_two and len(passed) == len(branch.outs):
        return passed
    return w.call(branch, operands, "branch")


def while_(w: Writer, prim: p.While, ins: Sequence[Val]) -> Sequence[Val]:
    consts, carry = ins[: prim.n_consts], ins[prim.n_consts :]

    def again(*carry: Val) -> Sequence[Val]:
        return w.call(prim.cond, [*consts, *carry], "cond")

    def step(*carry: Val) -> Sequence[Val]:
        return w.call(prim.body, [*consts, *carry], "body")

    return ops.while_(w, carry, again, step)


def scan(w: Writer, prim: p.Scan, ins: Sequence[Val]) -> Sequence[Val]:
    """A counting loop that reads elements and writes results into arrays made before it."""
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
        """Iteration ``count``, from and to ``(*carry, *ys)``."""
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


def _array(type_: Type) -> ArrayType:
    assert isinstance(type_, ArrayType)
    return type_


def _origin(x: Val, place: Sequence[Val]) -> list[Val]:
    """Indices of element ``place[0]`` along the leading axis, and ``place[1]``, zero, beyond."""
    return [place[0], *[place[1]] * (len(x.shape) - 1)]


CONTROL: Final = (
    NO_RULES.extend(p.Jit, jit).extend(p.Cond, cond).extend(p.While, while_).extend(p.Scan, scan)
)
