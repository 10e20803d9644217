"""Steps that append equations which hold programs, grown in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from effax.ir.build import lit
from effax.ir.dtypes import INT32, is_float
from effax.ir.primitive import Primitive
from effax.ir.prims import elementwise as ew
from effax.ir.prims.control import Cond, Jit, Scan, While, element_type
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type, array_type
from effax.testing.grower import MAX_ELEMENTS, Grower
from effax.testing.steps import refs

Grow = Callable[[Grower, int], None]
"""Lets a held program grow by at most so many steps."""

COUNTER = array_type((), INT32)


def _arguments(g: Grower, most: int, accept: Callable[[Var], bool] = lambda v: True) -> list[Var]:
    """Some arrays in scope; one may come twice."""
    found = [v for v in g.arrays if accept(v)]
    if not found:
        return []
    return [g.choose.pick(found) for _ in range(g.choose.below(most + 1))]


def _references(g: Grower, accept: Callable[[Var], bool] = lambda v: True) -> list[Var]:
    """Some references in scope, each once."""
    return g.choose.subset([r for r in g.refs if accept(r)][:3], 60)


def _inside(g: Grower, types: Sequence[Type], ins: Sequence[Var | None]) -> Grower:
    """A program to be held, on arguments of these types; what is linear outside is so inside."""
    linear = [v is not None and g.is_linear(v) for v in ins]
    return Grower(g.choose, g.features, types, linear, outer=g)


def _result(g: Grower, type_: ArrayType, linear: bool) -> Atom:
    """A result of this type, the most recent one mostly, of moderate magnitude."""
    recent = [v for v in g.arrays if v.type is type_ and g.is_linear(v) == linear]
    found = recent[-1] if recent and g.choose.chance(70) else g.value(type_, linear)
    if isinstance(found, Lit) or not is_float(type_.dtype) or g.magnitude(found) <= 4:
        return found
    if linear:
        factor = lit(1 / g.magnitude(found), type_.strong())
        return g.one(ew.Mul(), found, factor, magnitude=1.0)
    return g.one(ew.Tanh(), found, magnitude=1.0)


def _results(g: Grower, most: int, max_elements: int = MAX_ELEMENTS) -> list[Var]:
    """Some values of the program, those that nothing uses first."""
    small = [v for v in g.arrays if prod(v.type.shape) <= max_elements]
    leaves = {v.id for v in g.leaves()}
    last = [v for v in reversed(small) if v.id in leaves][:most]
    if last:
        return last
    return [g.choose.pick(small)] if small else []


def _call(
    g: Grower, prim: Primitive, ins: Sequence[Atom], linear: Sequence[bool]
) -> tuple[Var, ...]:
    """Append an application; which of its results are linear is known."""
    outs = g.emit(prim, *ins, magnitude=4.0)
    for v, flag in zip(outs, linear, strict=True):
        (g.linear.add if flag else g.linear.discard)(v.id)
    return outs


def jit(g: Grower, grow: Grow) -> None:
    """A call."""
    ins = [*_references(g), *_arguments(g, 3)]
    inner = _inside(g, [v.type for v in ins], ins)
    grow(inner, 3)
    refs.consume_rest(inner)
    outs = _results(inner, 3)
    _call(g, Jit(inner.finish(outs), "f"), ins, [inner.is_linear(v) for v in outs])


def cond(g: Grower, grow: Grow) -> None:
    """A choice of one to three branches, which do different things to references."""
    which: Atom
    if g.choose.chance(50):
        which, count = g.predicate(), 2
    else:
        found = g.maybe(lambda v: v.type is COUNTER)
        which, count = found or lit(g.choose.below(4), COUNTER), g.choose.pick((2, 3, 1))
    ins = [*_references(g), *_arguments(g, 3)]
    types = [v.type for v in ins]
    first = _inside(g, types, ins)
    grow(first, 2)
    refs.consume_rest(first)
    outs = [v for v in _results(first, 2) if isinstance(v.type, ArrayType)]
    flags = [first.is_linear(v) for v in outs]
    branches = [first.finish(outs)]
    for _ in range(count - 1):
        branch = _inside(g, types, ins)
        grow(branch, 2)
        refs.consume_rest(branch)
        made = [_result(branch, _array(v), flag) for v, flag in zip(outs, flags, strict=True)]
        branches.append(branch.finish(made))
    _call(g, Cond(tuple(branches)), [which, *ins], flags)


def scan(g: Grower, grow: Grow) -> None:
    """A loop over leading axes, with references among what is closed over and scanned."""
    length, xs = _scanned(g)
    consts = [*_references(g, lambda r: r not in xs), *_arguments(g, 2)]
    carry = _arguments(g, 2, lambda v: prod(v.type.shape) * length <= 2 * MAX_ELEMENTS)
    ins = [*consts, *carry, *xs]
    types = [*(v.type for v in (*consts, *carry)), *(element_type(v.type) for v in xs)]
    inner = _inside(g, types, ins)
    grow(inner, 3)
    refs.consume_rest(inner)
    flags = [g.is_linear(v) for v in carry]
    fed = [_result(inner, _array(v), flag) for v, flag in zip(carry, flags, strict=True)]
    ys = _results(inner, 2, MAX_ELEMENTS // max(length, 1))
    flags += [inner.is_linear(v) for v in ys]
    body = inner.finish([*fed, *ys])
    prim = Scan(body, length, g.choose.chance(40), len(consts), len(carry))
    _call(g, prim, ins, flags)


def _scanned(g: Grower) -> tuple[int, list[Var]]:
    """A length, and arrays and references with that many elements along their leading axis."""
    first = g.maybe(lambda v: len(v.type.shape) > 0)
    if first is None or g.choose.chance(25):
        length, xs = g.choose.pick((2, 3, 1, 0)), []
    else:
        length, xs = first.type.shape[0], [first]
        xs += _arguments(g, 1, lambda v: v.type.shape[:1] == (length,))
    return length, xs + _references(g, lambda r: r.type.shape[:1] == (length,))


def loop(g: Grower, grow: Grow) -> None:
    """A while loop of a few trips; its condition may read and change references too."""
    # A loop whose number of trips is not static has no transpose.
    consts = [
        *_references(g, lambda r: not g.is_linear(r)),
        *_arguments(g, 2, lambda v: not g.is_linear(v)),
    ]
    carry = _arguments(g, 2, lambda v: not g.is_linear(v))
    types = [*(v.type for v in consts), COUNTER, *(v.type for v in carry)]
    ins: list[Var | None] = [*consts, None, *carry]
    trips = g.choose.pick((2, 1, 3, 0))
    test = _condition(_inside(g, types, ins), len(consts), trips, grow)
    body = _inside(g, types, ins)
    count = body.b.binders[len(consts)]
    grow(body, 3)
    refs.consume_rest(body)
    fed = [_result(body, _array(v), False) for v in carry]
    count = body.one(ew.Add(), count, lit(1, COUNTER))
    prim = While(test, body.finish([count, *fed]), len(consts))
    start: list[Atom] = [*consts, lit(0, COUNTER), *carry]
    _call(g, prim, start, [False] * (1 + len(carry)))


def _condition(g: Grower, at: int, trips: int, grow: Grow) -> Jaxpr:
    """The counter is small; sometimes something else holds too."""
    count = g.b.binders[at]
    if g.choose.chance(40):
        grow(g, 2)
    refs.consume_rest(g)
    more = g.one(ew.Lt(), count, lit(trips, COUNTER))
    if g.choose.chance(30):
        more = g.one(ew.And(), more, g.predicate())
    return g.finish([more])


def _array(v: Var) -> ArrayType:
    assert isinstance(v.type, ArrayType)
    return v.type


def holds_ref(types: Sequence[Type]) -> bool:
    """Whether a reference is among the types."""
    return any(isinstance(t, RefType) for t in types)
