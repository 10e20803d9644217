"""Reads before writes: keeping an update in place when the old elements are wanted too.

XLA orders operations by data alone. In ::

    { lambda ; a:f32[1000000] i:i32[] v:f32[]. let
        b:f32[] = gather[a[i]] a i
        c:f32[1000000] = scatter[a[i]] a v i
      in (c, b) }

nothing says that the read comes before the write, so XLA writes into a copy of ``a``, a million
elements for one. :func:`ordered` makes the write depend on what was read::

        b:f32[] = gather[a[i]] a i
        d:f32[] e:bool[] = hold b
        f:f32[1000000] = gate a e
        c:f32[1000000] = scatter[a[i]] f v i
      in (c, d)

It takes the order of the program: a read that comes after the update gets its copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np

from effax.ir.build import Builder
from effax.ir.dtypes import INT32, as_dtype, family, is_complex
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
    """Whether a primitive may read or update a part of any operand, in one of its regions."""
    return bool(prim.regions()) and not prim.bound_axes()


def is_control_flow(prim: Primitive) -> bool:
    """Whether a primitive runs its regions by a loop or a selection, which XLA does once."""
    return prim.selector() is not None or prim.may_repeat()


class BarrierRead(Nullary):
    """``hold(x) -> (x, true)``: x is computed once, and what uses the truth comes later."""

    name = "hold"

    def typing(self, *ins: Type) -> Typing:
        """The type of the operand, and a boolean."""
        return Typing((*arrays(self, ins, 1), PREDICATE))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """The operand and true."""
        return (ins[0], np.asarray(True))


class BarrierDone(Nullary):
    """``done(x) -> true``: what uses the truth comes after x."""

    name = "done"

    def typing(self, *ins: Type) -> Typing:
        """A boolean."""
        arrays(self, ins, 1)
        return Typing((PREDICATE,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """True."""
        return (np.asarray(True),)


class BarrierGate(Nullary):
    """``gate(x, ready) -> x``: what uses the result comes after ``ready``, which is true."""

    name = "gate"

    def typing(self, *ins: Type) -> Typing:
        """The type of the first operand."""
        return Typing((arrays(self, ins, 2)[0],))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """The first operand."""
        return (ins[0],)


def hold(w: Writer, prim: BarrierRead, ins: Sequence[Val]) -> Sequence[Val]:
    """The operand, and a truth that is there after it."""
    (x,) = ins
    return _first_of_two(w, x, lambda: (x,), lambda: (ops.full(w, 0, x),))


def done(w: Writer, prim: BarrierDone, ins: Sequence[Val]) -> Sequence[Val]:
    """A truth that is there after the operand."""
    return _first_of_two(w, ins[0], lambda: (), lambda: ())


def gate(w: Writer, prim: BarrierGate, ins: Sequence[Val]) -> Sequence[Val]:
    """The array with its first element written over by itself, in place, once it is ready."""
    x, ready = ins
    zero = w.constant(0, array_type((), INT32))
    # XLA would not stay in place if it knew the position when it fuses the read and the write.
    starts = [ops.same(w, "optimization_barrier", zero), *[zero] * (len(x.shape) - 1)]
    first = ops.dynamic_slice(w, x, starts, (1,) * len(x.shape))
    kept = ops.select(w, ready, first, ops.full(w, 0, first))
    return (ops.dynamic_update_slice(w, x, kept, starts),)


def _first_of_two(
    w: Writer, x: Val, first: Callable[[], Sequence[Val]], second: Callable[[], Sequence[Val]]
) -> Sequence[Val]:
    """The results of ``first``, and true; both after ``x``.

    A conditional that always takes its first branch, which XLA cannot know. An optimization
    barrier says the same, but is gone before jaxlib 0.10 orders operations, and an ``if`` of
    simple branches becomes a selection.
    """
    bits = _bits(w, x)
    odd = ops.same(w, "or", bits, ops.full(w, 1, bits))
    which = ops.convert(w, ops.compare(w, "EQ", odd, ops.full(w, 0, odd)), INT32)

    def as_is() -> Sequence[Val]:
        return (*first(), w.constant(True, PREDICATE))

    def never() -> Sequence[Val]:
        read = _bits(w, x)
        return (*second(), ops.compare(w, "EQ", read, ops.full(w, 0, read)))

    regions = [w.region([], branch, captures=True) for branch in (as_is, never)]
    types = [*[v.type for v in first()], PREDICATE]
    text = f'"stablehlo.case"({which}) ({", ".join(regions)}) : {ops.signature([which], *types)}'
    return w.op(text, *types)


def _bits(w: Writer, x: Val) -> Val:
    """The first element as an unsigned integer."""
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
    NO_RULES.extend(BarrierRead, hold).extend(BarrierDone, done).extend(BarrierGate, gate)
)

MANY: Final = -1
"""The label of a value that flows to more than one place."""


class PartRead(NamedTuple):
    """A part that an equation reads: the equation's number, and the result."""

    at: int
    part: Var


def ordered(jaxpr: Jaxpr, fixed: frozenset[int] = frozenset()) -> Jaxpr:
    """The program with updates of big arrays ordered after the reads of what they replace.

    Args:
        jaxpr: the program.
        fixed: numbers of variables whose memory must be kept, so that a copy is made anyway.
    """
    eqns = list(jaxpr.eqns)
    updates: dict[int, list[Var]] = {}
    for k, eqn in enumerate(eqns):
        kind = type(eqn.prim)
        # Decide most equations by their class, without a call.
        if kind in UPDATES or (kind.regions is not _NO_REGIONS and contains_regions(eqn.prim)):
            found = [x for x in _updated(eqn) if is_large(x.type) and x.id not in fixed]
            if found:
                updates[k] = found
    waits = _waits(eqns, jaxpr.outs, updates) if updates else {}
    return _with_order(jaxpr, waits) if waits else jaxpr


def is_large(type_: Type) -> bool:
    """Return whether a copy of an array of this type costs more than a conditional or a loop."""
    return prod(type_.shape) * type_.dtype.itemsize >= LARGE


def _updated(eqn: Eqn) -> list[Var]:
    """The operands that the equation updates, or may update."""
    prim, ins, outs, _, _ = eqn
    found: Sequence[Atom] = ins[:1]
    if contains_regions(prim):
        # A loop updates what it carries, and passes its other operands on.
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
    """For updates of variables that are not used again: the reads that they must wait for."""
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
                    # What is as large as the array is no part of it: holding it is a copy too.
                    parts = [v for v in eqn.outs if 0 < prod(v.type.shape) < size]
                    reads.setdefault(a.id, []).extend([PartRead(k, v) for v in parts])
    return waits


def _is_safe(read: Eqn, update: Eqn) -> bool:
    """Whether what is read, and serves the update alone, leaves the update in place.

    XLA fuses the read into the update, in place if both are one window at a run-time position.
    An array of positions is not fused, and neither are loops.
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
    """The program in which variable ``x`` passes a gate before its update ``k``.

    The gate waits for the parts in ``waits[k][x]``.
    """
    held = {r.part.id: r.at for found in waits.values() for rs in found.values() for r in rs}
    starts = set(held.values())
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
            if part.id not in held:
                continue
            if is_control_flow(eqn.prim):
                signals[part.id] = b(BarrierDone(), part)
            else:
                renamed[part.id], signals[part.id] = b.emit(BarrierRead(), (part,))
    return jaxpr.replace(eqns=b.eqns, outs=[new(a) for a in jaxpr.outs])


def _id(atom: Atom) -> int:
    return atom.id if isinstance(atom, Var) else MANY


def _flows(
    eqns: Sequence[Eqn], outs: Sequence[Atom], updates: dict[int, list[Var]]
) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Where live values flow, and the variables that an update is the last one to use.

    A value that only serves to compute what update ``k`` stores has the label ``k``: the update
    depends on it already. Dead values have none.
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
