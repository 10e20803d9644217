"""Steps that append equations which hold programs, grown in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.dtypes import is_float, is_inexact_dtype
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    AddUpdate,
    BroadcastInDim,
    Cond,
    Get,
    Jit,
    Kept,
    ReduceSum,
    Remat,
    SavePolicy,
    Scan,
    While,
)
from effax.ir.prims.scan import element_type
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import COUNTER, ArrayType, Type
from effax.testing.generate import refs
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder

Grow = Callable[[ProgramBuilder, int], None]
"""Lets a held program grow by at most so many steps."""

OF_REFS = 1
"""The theme of programs that use references often."""


def arguments(
    g: ProgramBuilder, most: int, accept: Callable[[Var], bool] = lambda v: True
) -> list[Var]:
    """Some arrays in scope; one may come twice."""
    found = [v for v in g.arrays if accept(v)]
    args: list[Var] = []
    for _ in range(g.choose.below(most + 1) if found else 0):
        others = [v for v in found if v not in args]
        args.append(g.choose.pick(others if others and not g.choose.chance(20) else found))
    return args


def references(g: ProgramBuilder, accept: Callable[[Var], bool] = lambda v: True) -> list[Var]:
    """Some references in scope, each once."""
    if g.features.refs and not g.refs and g.choose.chance(40):
        refs.new(g)
    return g.choose.subset([r for r in g.refs if accept(r)][:3], 75)


def inside(
    g: ProgramBuilder, types: Sequence[Type], ins: Sequence[Var | None], parts: bool = False
) -> ProgramBuilder:
    """A program to be held, on arguments of these types; what is linear outside is so inside.

    Where devices may take different ways (``parts``) it has no collectives.
    """
    linear = [v is not None and g.is_linear(v) for v in ins]
    inner = ProgramBuilder(g.choose, g.features, types, linear, outer=g)
    inner.axes = () if parts else g.axes
    if inner.refs:
        inner.theme = OF_REFS
        inner.sums = {
            w.id for v, w in zip(ins, inner.b.binders, strict=True) if v and v.id in g.sums
        }
    return inner


def _fill(g: ProgramBuilder, grow: Grow, most: int) -> None:
    """Let a held program grow, and do something to the references that it is given."""
    grow(g, most)
    if any(r in g.refs for r in g.b.binders) and g.choose.chance(50):
        g.choose.pick((refs.addupdate, refs.swap))(g)
    refs.consume_rest(g)


def _result(g: ProgramBuilder, type_: ArrayType, linear: bool) -> Atom:
    """A result of this type, the most recent one mostly, of moderate magnitude."""
    if not (type_.shape or type_.weak or linear) and g.choose.chance(12):
        return g.literal(type_.dtype)
    recent = [v for v in g.arrays if v.type is type_ and g.is_linear(v) == linear]
    found = recent[-1] if recent and g.choose.chance(70) else g.value(type_, linear)
    if isinstance(found, Lit) or not is_inexact_dtype(type_.dtype) or g.magnitude(found) <= 4:
        return found
    if linear or not is_float(type_.dtype):
        factor = lit(1 / g.magnitude(found), type_.strong())
        return g.one(p.Mul(), found, factor, magnitude=1.0)
    return g.one(p.Tanh(), found, magnitude=1.0)


def results(g: ProgramBuilder, most: int, max_elements: int = MAX_ELEMENTS) -> list[Var]:
    """Some values of the program, those that nothing uses first."""
    small = [v for v in g.arrays if prod(v.type.shape) <= max_elements]
    leaves = {v.id for v in g.leaves()}
    last = [v for v in reversed(small) if v.id in leaves][:most]
    if last:
        return last
    return [g.choose.pick(small)] if small else []


def call(
    g: ProgramBuilder, prim: Primitive, ins: Sequence[Atom], linear: Sequence[bool]
) -> tuple[Var, ...]:
    """Append an application; which of its results are linear is known."""
    outs = g.emit(prim, *ins, magnitude=4.0)
    for v, flag in zip(outs, linear, strict=True):
        (g.linear.add if flag else g.linear.discard)(v.id)
    return outs


def jit(g: ProgramBuilder, grow: Grow) -> None:
    """A call."""
    ins = [*references(g), *arguments(g, 3)]
    inner = inside(g, [v.type for v in ins], ins)
    _fill(inner, grow, 3)
    outs = [] if inner.refs and g.choose.chance(25) else results(inner, 3)
    call(g, Jit(inner.finish(outs), "f"), ins, [inner.is_linear(v) for v in outs])


POLICIES = (
    None,
    SavePolicy(Kept.EVERYTHING),
    SavePolicy(Kept.DOTS),
    SavePolicy(Kept.THESE_NAMES, ("a",)),
    SavePolicy(Kept.ANYTHING_BUT_THESE_NAMES, ("a",)),
)


def remat(g: ProgramBuilder, grow: Grow) -> None:
    """A call that derivatives compute again; it uses only references that it makes."""
    ins = arguments(g, 3)
    inner = inside(g, [v.type for v in ins], ins)
    grow(inner, 3)
    refs.consume_rest(inner)
    outs = results(inner, 3)
    flags = [inner.is_linear(v) for v in outs]
    call(g, Remat(inner.finish(outs), g.choose.pick(POLICIES)), ins, flags)


def cond(g: ProgramBuilder, grow: Grow) -> None:
    """A choice of one to three branches, which do different things to references."""
    which: Atom
    if g.choose.chance(50):
        which, count = g.predicate(), 2
    else:
        found = g.maybe(lambda v: v.type is COUNTER)
        which, count = found or lit(g.choose.below(4), COUNTER), g.choose.pick((2, 3, 1))
    ins = [*references(g), *arguments(g, 3)]
    types = [v.type for v in ins]
    first = inside(g, types, ins, parts=True)
    _fill(first, grow, 2)
    outs = [v for v in results(first, 2) if isinstance(v.type, ArrayType)]
    flags = [first.is_linear(v) for v in outs]
    branches = [first.finish(outs)]
    for _ in range(count - 1):
        branch = inside(g, types, ins, parts=True)
        _fill(branch, grow, 2)
        made = [_result(branch, _array(v), flag) for v, flag in zip(outs, flags, strict=True)]
        branches.append(branch.finish(made))
    call(g, Cond(tuple(branches)), [which, *ins], flags)


def scan(g: ProgramBuilder, grow: Grow) -> None:
    """A loop over leading axes, with references among what is closed over and scanned."""
    length, xs = _scanned(g)
    consts = [*references(g, lambda r: r not in xs), *arguments(g, 2)]
    carry = _carried(g, lambda v: prod(v.type.shape) * length <= 2 * MAX_ELEMENTS)
    ins = [*consts, *carry, *xs]
    types = [*(v.type for v in (*consts, *carry)), *(element_type(v.type) for v in xs)]
    inner = inside(g, types, _variables(ins))
    _fill(inner, grow, 3)
    flags = [g.is_linear(v) for v in carry]
    fed = [_result(inner, _array(v), flag) for v, flag in zip(carry, flags, strict=True)]
    ys = results(inner, 2, MAX_ELEMENTS // max(length, 1))
    flags += [inner.is_linear(v) for v in ys]
    body = inner.finish([*fed, *ys])
    prim = Scan(body, length, g.choose.chance(40), len(consts), len(carry))
    call(g, prim, ins, flags)


def _carried(g: ProgramBuilder, accept: Callable[[Var], bool] = lambda v: True) -> list[Atom]:
    """What a loop begins with: arrays, and sometimes a number."""
    found: list[Atom] = [*arguments(g, 2, accept)]
    if g.choose.chance(15):
        found.append(g.literal(g.choose.pick((*g.features.floats, g.features.ints[0]))))
    return found


def _variables(ins: Sequence[Atom]) -> list[Var | None]:
    """Those of the arguments that are no numbers."""
    return [a if isinstance(a, Var) else None for a in ins]


def _scanned(g: ProgramBuilder) -> tuple[int, list[Var]]:
    """A length, and arrays and references with that many elements along their leading axis."""
    first = g.maybe(lambda v: len(v.type.shape) > 0)
    if first is None or g.choose.chance(25):
        length, xs = g.choose.pick((2, 3, 0, 1, 0)), []
    else:
        length, xs = first.type.shape[0], [first]
        xs += arguments(g, 1, lambda v: v.type.shape[:1] == (length,))
    return length, xs + references(g, lambda r: r.type.shape[:1] == (length,))


def loop(g: ProgramBuilder, grow: Grow) -> None:
    """A while loop of a few trips; its condition may read and change references too."""
    consts = [*references(g), *arguments(g, 2)]
    carry = _carried(g)
    types = [*(v.type for v in consts), COUNTER, *(v.type for v in carry)]
    ins = [*_variables(consts), None, *_variables(carry)]
    trips = g.choose.pick((2, 3, 4, 3, 1, 0))
    test, read = _condition(inside(g, types, ins, parts=True), len(consts), trips, grow)
    body = inside(g, types, ins, parts=True)
    count = body.b.binders[len(consts)]
    _fill(body, grow, 3)
    if read is not None and g.choose.chance(80):
        _increase(body, body.b.binders[read])
    flags = [g.is_linear(v) for v in carry]
    fed = [_result(body, _array(v), flag) for v, flag in zip(carry, flags, strict=True)]
    count = body.one(p.Add(), count, lit(1, COUNTER))
    prim = While(test, body.finish([count, *fed]), len(consts))
    start: list[Atom] = [*consts, lit(0, COUNTER), *carry]
    call(g, prim, start, [False, *flags])


def _condition(g: ProgramBuilder, at: int, trips: int, grow: Grow) -> tuple[Jaxpr, int | None]:
    """The counter is small; sometimes something else holds too.

    Gives the input too that is a reference on whose contents it depends, if there is one.
    """
    count = g.b.binders[at]
    if g.choose.chance(40):
        grow(g, 2)
    held = [
        i
        for i, v in enumerate(g.b.binders)
        if v in g.refs and is_float(v.type.dtype) and v.id not in g.sums and not g.is_linear(v)
    ]
    read: int | None = None
    also: Atom | None = None
    if held and g.choose.chance(65):
        read = g.choose.pick(held)
        also = _is_small(g, g.b.binders[read])
    elif g.choose.chance(40):
        also = g.predicate()
    more = g.one(p.Lt(), count, lit(trips, COUNTER))
    if also is not None:
        more = g.one(p.And(), more, also)
    refs.consume_rest(g)
    return g.finish([more]), read


def _is_small(g: ProgramBuilder, ref: Var) -> Atom:
    """Whether what a reference holds sums up to little."""
    shape = ref.type.shape
    x = g.one(Get(whole(shape)), ref)
    total = g.one(ReduceSum(tuple(range(len(shape)))), x) if shape else x
    return g.one(p.Lt(), total, g.threshold(total.type.dtype))


def _increase(g: ProgramBuilder, ref: Var) -> None:
    """Add to what a reference holds."""
    number: Atom = g.literal(ref.type.dtype, 2.0)
    if ref.type.shape:
        number = g.one(BroadcastInDim(ref.type.shape, ()), number)
    g.emit(AddUpdate(whole(ref.type.shape)), ref, number)


def _array(v: Atom) -> ArrayType:
    assert isinstance(v.type, ArrayType)
    return v.type
