"""Steps over references: allocation, reads, writes, accumulation, consumption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.build import Builder
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.indexing import Indexer, Pick, Span, whole
from effax.ir.primitive import Primitive
from effax.ir.prims import Scan
from effax.ir.prims import refs as p
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import ArrayType
from effax.testing.generate.index import fits, indexer, part_type
from effax.testing.generate.nested_access import KINDS, enclosed
from effax.testing.generate.program_builder import LARGE, ProgramBuilder
from effax.testing.generate.step import Steps


def _ref(g: ProgramBuilder, only_added: bool = False) -> Var:
    """Return a reference in scope, or a new one."""
    found = [r for r in g.refs if only_added or r.id not in g.sums]
    return g.choose.pick(found) if found else new(g)


def new(g: ProgramBuilder) -> Var:
    x: Atom = g.any_array()
    if g.choose.chance(20) and not g.is_linear(x):
        x = g.companion(x) if isinstance(x, Var) else x
    return g.one(p.NewRef(), x)


def empty(g: ProgramBuilder) -> None:
    x = g.any_array()
    assert isinstance(x.type, ArrayType)
    ref = g.one(p.EmptyRef(x.type.strong()))
    if g.is_linear(x):
        g.linear.add(ref.id)
    g.emit(p.Swap(whole(x.type.shape)), ref, x)
    # The contents of a new reference are undefined, so no equation may use them.
    undefined = g.arrays.pop()
    g.used.add(undefined.id)


def get(g: ProgramBuilder) -> None:
    ref = _ref(g)
    made, operands = indexer(g, ref.type.shape)
    if fits(made, ref.type.shape, operands):
        g.one(p.Get(made), ref, *operands, magnitude=max(g.magnitude(ref), 4.0))


def swap(g: ProgramBuilder) -> None:
    ref = _ref(g)
    made, operands = indexer(g, ref.type.shape)
    # The order of writes to one position differs between machines.
    if g.features.lowerable and any(o.type.shape for o in operands):
        made, operands = whole(ref.type.shape), []
    if not fits(made, ref.type.shape, operands):
        return
    value = g.value(part_type(ref, made, operands), g.is_linear(ref))
    g.one(p.Swap(made), ref, _moderate(g, value), *operands, magnitude=4.0)


def addupdate(g: ProgramBuilder) -> None:
    ref = _ref(g, only_added=True)
    if ref.type.dtype.kind == "b":
        get(g)
        return
    made, operands = indexer(g, ref.type.shape)
    if not fits(made, ref.type.shape, operands):
        return
    value = g.value(part_type(ref, made, operands), g.is_linear(ref))
    g.emit(p.AddUpdate(made), ref, _moderate(g, value), *operands)
    g.magnitudes[ref.id] = min(g.magnitude(ref) + 4.0, LARGE)


def nested(g: ProgramBuilder) -> None:
    """Append a load, a nested program that stores, and a load; or the same of stores and a load.

    A load and a program that stores may also be the body of a loop.
    """
    kinds = [kind for kind in KINDS if kind in g.features.control]
    if not kinds or g.depth <= 0:
        get(g)
        return
    ref, kind = _ref(g), g.choose.pick(kinds)
    everything = whole(ref.type.shape)
    value = _moderate(g, g.value(part_type(ref, everything, []), g.is_linear(ref)))
    swap, load = p.Swap(everything), p.Get(everything)
    stores, may_add = g.choose.chance(60), ref.type.dtype.kind != "b"
    operands: list[Atom] = [ref, value]
    body = _store(g, operands) if stores else _load(operands)
    if g.choose.chance(35):
        # Passes may look one level deep.
        inner, first, last = enclosed(g.choose.pick(kinds), body, g.predicate())
        operands = [*first, *operands, *last]
        b = Builder([a.type for a in operands])
        body = b.finish(b.emit(inner, b.binders))
    prim, before, after = enclosed(kind, body, g.predicate())
    magnitude = max(g.magnitude(ref), 4.0)
    if stores and "scan" in kinds and g.choose.chance(20):
        _repeat(g, prim, ref, [*before, *operands, *after], magnitude)
        return
    adds, is_dead = may_add and g.choose.chance(25), g.choose.chance(75)

    def outer() -> None:
        if stores:
            g.one(load, ref, magnitude=magnitude)
            return
        if adds:
            g.emit(p.AddUpdate(everything), ref, value)
            return
        old = g.one(swap, ref, value, magnitude=magnitude)
        if is_dead:
            # A store, whose result is not used.
            g.arrays.remove(old)
            g.used.add(old.id)

    outer()
    g.emit(prim, *before, *operands, *after, magnitude=magnitude)
    outer()


def _repeat(
    g: ProgramBuilder, prim: Primitive, ref: Var, operands: list[Atom], magnitude: float
) -> None:
    """Append a loop of two iterations, each of which loads the reference, then stores into it."""
    b = Builder([a.type for a in operands])
    old = b(p.Get(whole(ref.type.shape)), b.binders[operands.index(ref)])
    b.emit(prim, b.binders)
    g.emit(Scan(b.finish([old]), 2, False, len(operands), 0), *operands, magnitude=magnitude)


def _load(operands: Sequence[Atom]) -> Jaxpr:
    b = Builder([a.type for a in operands])
    return b.finish([b(p.Get(whole(operands[0].type.shape)), b.binders[0])])


def _store(g: ProgramBuilder, operands: list[Atom]) -> Jaxpr:
    """Return a program that stores or adds a value, and may store into a part before or after.

    The value of the part is appended to the operands.
    """
    ref = operands[0]
    shape = ref.type.shape
    everything = whole(shape)
    added = ref.type.dtype.kind != "b" and g.choose.chance(40)
    first = p.AddUpdate(everything) if added else p.Swap(everything)
    if not shape or not shape[0] or not g.choose.chance(60):
        b = Builder([a.type for a in operands])
        b.emit(first, b.binders)
        return b.finish([])
    part = Indexer((Pick(g.choose.below(shape[0])), *[Span(0, n) for n in shape[1:]]))
    assert isinstance(ref, Var)
    operands.append(_moderate(g, g.value(part_type(ref, part, []), g.is_linear(ref))))
    b = Builder([a.type for a in operands])
    inner, value, other = b.binders
    stores = [(first, [inner, value]), (p.Swap(part), [inner, other])]
    for store, ins in stores if g.choose.chance(50) else reversed(stores):
        b.emit(store, ins)
    return b.finish([])


def consume(g: ProgramBuilder) -> None:
    own = [r for r in g.refs if r.id in g.made]
    if not own:
        get(g)
        return
    ref = g.choose.pick(own)
    g.consume(ref, p.FreeRef() if g.choose.chance(20) else p.Freeze())


def consume_rest(g: ProgramBuilder) -> None:
    """Freeze, free or leave the references that a program allocates."""
    for ref in [r for r in g.refs if r.id in g.made]:
        match g.choose.below(4):
            case 0 | 1:
                g.consume(ref, p.Freeze())
            case 2:
                g.consume(ref, p.FreeRef())
            case _:
                pass


def _moderate(g: ProgramBuilder, value: Atom) -> Atom:
    if not isinstance(value, Var) or not is_inexact_dtype(value.type.dtype):
        return value
    return g.squashed(value) if g.magnitude(value) > 8 else value


STEPS: Final = Steps(
    refs=((7, get), (7, swap), (7, addupdate), (4, new), (2, empty), (2, consume), (3, nested))
)
