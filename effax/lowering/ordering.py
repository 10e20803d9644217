"""Order reads before an update of the same array, so that the update stays in place.

XLA orders operations by data dependences alone. In ::

    { lambda ; a:f32[1000000] i:i32[] v:f32[]. let
        b:f32[] = gather[a[i]] a i
        c:f32[1000000] = scatter[a[i]] a v i
      in (c, b) }

no dependence puts the read before the write, so XLA writes into a copy of ``a``, a million elements
for one. :func:`ordered` makes the write depend on the element that was read::

        b:f32[] = gather[a[i]] a i
        d:f32[] e:bool[] = barrier_read b
        f:f32[1000000] = barrier_gate a e
        c:f32[1000000] = scatter[a[i]] f v i
      in (c, d)

An update comes after all other uses of the array that do not depend on it. For one that does, XLA
still copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np

from effax.ir.build import Builder
from effax.ir.dtypes import INT32, as_dtype, family, is_complex
from effax.ir.edit.uses_first import uses_first
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import (
    And,
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    Nullary,
    Scatter,
    ScatterAdd,
    ScatterMax,
    ScatterMin,
    ScatterMul,
    Slice,
)
from effax.ir.prims.common.operands import arrays
from effax.ir.prims.index import Combining
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import PREDICATE, Type, array_type
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, Val, Writer

LARGE: Final = 1 << 16
"""The size in bytes from which a copy costs more than a conditional (about 4 microseconds)."""

UPDATES: Final = frozenset(
    {Scatter, ScatterAdd, ScatterMul, ScatterMax, ScatterMin, DynamicUpdateSlice}
)
"""Primitives that replace a part of their first operand."""

READS: Final = frozenset({Gather, DynamicSlice, Slice})
"""Primitives that read a part of their first operand."""


_NO_REGIONS: Final = Primitive.regions


def contains_regions(prim: Primitive) -> bool:
    """Return whether a region of the primitive may read or update a part of an operand."""
    return bool(prim.regions()) and not prim.bound_axes()


def is_control_flow(prim: Primitive) -> bool:
    """Return whether the primitive is a loop or a selection, whose results XLA computes once."""
    return prim.selector() is not None or prim.may_repeat()


class BarrierRead(Nullary):
    """``barrier_read(x) -> (x, true)``: compute x once; uses of the boolean come later."""

    name = "barrier_read"

    def typing(self, *ins: Type) -> Typing:
        """Return the type of the operand, and a boolean."""
        return Typing((*arrays(self, ins, 1), PREDICATE))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Return the operand and true."""
        return (ins[0], np.asarray(True))


class BarrierDone(Nullary):
    """``barrier_done(x) -> true``: uses of the boolean come after x."""

    name = "barrier_done"

    def typing(self, *ins: Type) -> Typing:
        """Return a boolean."""
        arrays(self, ins, 1)
        return Typing((PREDICATE,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Return true."""
        return (np.asarray(True),)


class BarrierGate(Nullary):
    """``barrier_gate(x, ready) -> x``: uses of the result come after ``ready``, which is true."""

    name = "barrier_gate"

    def typing(self, *ins: Type) -> Typing:
        """Return the type of the first operand."""
        return Typing((arrays(self, ins, 2)[0],))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Return the first operand."""
        return (ins[0],)


def barrier_read(w: Writer, prim: BarrierRead, ins: Sequence[Val]) -> Sequence[Val]:
    """Write the operand, and a true value that depends on it."""
    (x,) = ins
    return _first_of_two(w, x, lambda: (x,), lambda: (ops.full(w, 0, x),))


def barrier_done(w: Writer, prim: BarrierDone, ins: Sequence[Val]) -> Sequence[Val]:
    """Write a true value that depends on the operand."""
    return _first_of_two(w, ins[0], lambda: (), lambda: ())


def barrier_gate(w: Writer, prim: BarrierGate, ins: Sequence[Val]) -> Sequence[Val]:
    """Overwrite the first element with itself, in place, in dependence on ``ready``."""
    x, ready = ins
    zero = w.constant(0, array_type((), INT32))
    # With a position that is known when the read and the write are fused, XLA copies the array.
    starts = [ops.same(w, "optimization_barrier", zero), *[zero] * (len(x.shape) - 1)]
    first = ops.dynamic_slice(w, x, starts, (1,) * len(x.shape))
    kept = ops.select(w, ready, first, ops.full(w, 0, first))
    return (ops.dynamic_update_slice(w, x, kept, starts),)


def _first_of_two(
    w: Writer, x: Val, first: Callable[[], Sequence[Val]], second: Callable[[], Sequence[Val]]
) -> Sequence[Val]:
    """Write the results of ``first``, and true, such that both depend on ``x``.

    The conditional always takes its first branch, which XLA cannot prove. An optimization barrier
    is not enough: jaxlib 0.10 removes it before it schedules operations. Nor is a boolean
    predicate: a conditional of simple branches becomes a selection.
    """
    bits = _bits(w, x)
    # `bits | 1` is not 0, so the branch index is always 0.
    odd = ops.same(w, "or", bits, ops.full(w, 1, bits))
    which = ops.convert(w, ops.compare(w, "EQ", odd, ops.full(w, 0, odd)), INT32)

    def taken() -> Sequence[Val]:
        return (*first(), w.constant(True, PREDICATE))

    def not_taken() -> Sequence[Val]:
        read = _bits(w, x)
        return (*second(), ops.compare(w, "EQ", read, ops.full(w, 0, read)))

    regions = [w.region([], branch, captures=True) for branch in (taken, not_taken)]
    types = [*[v.type for v in first()], PREDICATE]
    text = f'"stablehlo.case"({which}) ({", ".join(regions)}) : {ops.signature([which], *types)}'
    return w.op(text, *types)


def _bits(w: Writer, x: Val) -> Val:
    """Write the first element as an unsigned integer."""
    ndim, dtype = len(x.shape), x.type.dtype
    if ndim:
        first = ops.slice_(w, x, [0] * ndim, [1] * ndim, [1] * ndim)
        return _bits(w, ops.reshape(w, first, ()))
    if is_complex(dtype):
        return _bits(w, ops.real(w, x))
    if family(dtype) == "float":
        return ops.bitcast(w, x, as_dtype(f"uint{dtype.itemsize * 8}"))
    return ops.convert(w, x, as_dtype("uint8")) if family(dtype) in ("bool", "void") else x


ORDERING: Final = (
    NO_RULES.extend(BarrierRead, barrier_read)
    .extend(BarrierDone, barrier_done)
    .extend(BarrierGate, barrier_gate)
)

MANY: Final = -1
"""The label of a value that flows to more than one place."""


class PartRead(NamedTuple):
    """A part of an array that an equation reads: the equation's position, and the result."""

    at: int
    part: Var


def ordered(jaxpr: Jaxpr, fixed: frozenset[int] = frozenset()) -> Jaxpr:
    """Return the program with updates of large arrays ordered after reads of the old elements.

    Args:
        jaxpr: the program.
        fixed: ids of variables whose buffers must not change, such as arguments that are not
            donated: their updates copy anyway.
    """
    eqns = list(jaxpr.eqns)
    updates = _updates(eqns, fixed)
    ends = _read_later(eqns, updates)
    if ends:
        eqns = [eqns[k] for k in uses_first(eqns, ends)]
        jaxpr = jaxpr.replace(eqns=eqns)
        updates = _updates(eqns, fixed)
    waits = _waits(eqns, jaxpr.outs, updates) if updates else {}
    return _with_order(jaxpr, waits) if waits else jaxpr


def _updates(eqns: Sequence[Eqn], fixed: frozenset[int]) -> dict[int, list[Var]]:
    """Return the large arrays that each equation updates, by its position."""
    updates: dict[int, list[Var]] = {}
    for k, eqn in enumerate(eqns):
        kind = type(eqn.prim)
        # Decide most equations by their class, without a call.
        if kind in UPDATES or (kind.regions is not _NO_REGIONS and contains_regions(eqn.prim)):
            found = [x for x in _updated(eqn) if is_large(x.type) and x.id not in fixed]
            if found:
                updates[k] = found
    return updates


def _read_later(eqns: Sequence[Eqn], updates: dict[int, list[Var]]) -> dict[int, list[Var]]:
    """Return the updates of an array that a later equation uses."""
    if not updates:
        return {}
    last = {a.id: k for k, eqn in enumerate(eqns) for a in eqn.ins if isinstance(a, Var)}
    later = {k: [x for x in found if last[x.id] > k] for k, found in updates.items()}
    return {k: found for k, found in later.items() if found}


def is_large(type_: Type) -> bool:
    """Return whether a copy of an array of this type costs more than a conditional or a loop."""
    return prod(type_.shape) * type_.dtype.itemsize >= LARGE


def _updated(eqn: Eqn) -> list[Var]:
    """Return the operands that the equation updates, or may update."""
    prim, ins, outs, _, _ = eqn
    found: Sequence[Atom] = ins[:1]
    if contains_regions(prim):
        # A loop updates its carries only; its other operands are loop invariant.
        loops = prim.may_repeat()
        places = [
            i for r in prim.regions() for i in (r.carry_to if loops else r.args) if i is not None
        ]
        found = [ins[i] for i in dict.fromkeys(places)]
    types = {v.type for v in outs}
    return [a for a in found if isinstance(a, Var) and a.type in types and ins.count(a) == 1]


def _waits(
    eqns: Sequence[Eqn], outs: Sequence[Atom], updates: dict[int, list[Var]]
) -> dict[int, dict[int, list[PartRead]]]:
    """Return, by update and variable that it uses last, the reads that must come before."""
    flows, last = _flows(eqns, outs, updates)
    reads: dict[int, list[PartRead]] = {}
    waits: dict[int, dict[int, list[PartRead]]] = {}
    for k, eqn in enumerate(eqns):
        for x in last.get(k, ()):
            before = [r for r in reads.get(x, ()) if r.part.id in flows]
            found = [r for r in before if flows[r.part.id] != k or not _is_safe(eqns[r.at], eqn)]
            if found:
                waits.setdefault(k, {})[x] = found
        contains = contains_regions(eqn.prim)
        if contains or type(eqn.prim) in READS:
            for a in eqn.ins if contains else eqn.ins[:1]:
                if isinstance(a, Var) and a.id not in last.get(k, ()):
                    size = prod(a.type.shape)
                    # A result as large as the array is not a part: to keep it is a copy as well.
                    parts = [v for v in eqn.outs if 0 < prod(v.type.shape) < size]
                    reads.setdefault(a.id, []).extend([PartRead(k, v) for v in parts])
    return waits


def _is_safe(read: Eqn, update: Eqn) -> bool:
    """Return whether an update that alone uses a read stays in place without a barrier.

    XLA fuses the read into the update, in place if both access one window at a run-time position.
    It fuses neither reads at an array of positions nor loops.
    """
    if is_control_flow(read.prim):
        return True
    if isinstance(update.prim, Scatter | Combining):
        indexer, operands = update.prim.indexer, update.ins[2:]
        if any(a.type.shape for a in operands):
            return True
        return bool(operands) and read.ins[1:] == operands and read.prim == Gather(indexer)
    return (
        isinstance(read.prim, DynamicSlice)
        and read.ins[1:] == update.ins[2:]
        and read.prim.slice_sizes == update.ins[1].type.shape
        and any(isinstance(a, Var) for a in read.ins[1:])
    )


def _with_order(jaxpr: Jaxpr, waits: dict[int, dict[int, list[PartRead]]]) -> Jaxpr:
    """Return the program with a gate for each variable ``x`` before its update ``k``.

    The gate depends on the parts in ``waits[k][x]``.
    """
    read_at = {r.part.id: r.at for found in waits.values() for rs in found.values() for r in rs}
    starts = set(read_at.values())
    renamed: dict[int, Atom] = {}
    signals: dict[int, Var] = {}
    b = Builder()
    b.next_id = jaxpr.size

    def new(atom: Atom) -> Atom:
        return renamed.get(atom.id, atom) if isinstance(atom, Var) else atom

    for k, eqn in enumerate(jaxpr.eqns):
        for x, reads in waits.get(k, {}).items():
            ready = signals[reads[0].part.id]
            for r in reads[1:]:
                ready = b(And(), ready, signals[r.part.id])
            position = [_id(a) for a in eqn.ins].index(x)
            renamed[x] = b(BarrierGate(), new(eqn.ins[position]), ready)
        b.eqns.append(eqn._replace(ins=tuple([new(a) for a in eqn.ins])))
        for part in eqn.outs if k in starts else ():
            if part.id not in read_at:
                continue
            if is_control_flow(eqn.prim):
                # XLA does not repeat a loop or a selection: the result needs no copy.
                signals[part.id] = b(BarrierDone(), part)
            else:
                renamed[part.id], signals[part.id] = b.emit(BarrierRead(), (part,))
    return jaxpr.replace(eqns=b.eqns, outs=[new(a) for a in jaxpr.outs])


def _id(atom: Atom) -> int:
    return atom.id if isinstance(atom, Var) else MANY


def _flows(
    eqns: Sequence[Eqn], outs: Sequence[Atom], updates: dict[int, list[Var]]
) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Return a label for each live value, and the variables that each update uses last.

    A value that is used only to compute the elements that update ``k`` stores has the label ``k``:
    the update depends on it already. Other live values have the label :data:`MANY`.
    """
    flows: dict[int, int] = {v.id: MANY for v in outs if isinstance(v, Var)}
    last: dict[int, list[int]] = {}

    def use(atom: Atom, label: int) -> None:
        if isinstance(atom, Var):
            flows[atom.id] = label if flows.get(atom.id, label) == label else MANY

    for k in range(len(eqns) - 1, -1, -1):
        eqn = eqns[k]
        labels = {flows[v.id] for v in eqn.outs if v.id in flows}
        if not labels:
            continue
        label = labels.pop() if len(labels) == 1 else MANY
        ins = eqn.ins
        if k in updates:
            dying = [x.id for x in updates[k] if x.id not in flows]
            if dying:
                last[k] = dying
            if type(eqn.prim) in UPDATES:
                use(ins[0], label)
                ins, label = ins[1:], k
        for a in ins:
            use(a, label)
    return flows, last
