"""Steps that append equations which combine elements."""

from __future__ import annotations

from math import prod

from effax.ir import prims as p
from effax.ir.syntax import Atom, Var
from effax.ir.types import ArrayType
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.shape import is_real


def _axes(g: ProgramBuilder, x: Var) -> tuple[int, ...]:
    """Some axes; all of them is the simplest."""
    axes = range(len(x.type.shape))
    kept = g.choose.subset(axes)
    return tuple(a for a in axes if a not in kept)


def _numbers(g: ProgramBuilder, min_ndim: int) -> Var:
    """Real numbers, floats mostly; not linear."""
    found = None
    if g.choose.chance(25):
        found = g.maybe(
            lambda v: is_real(v) and v.id not in g.linear and len(v.type.shape) >= min_ndim
        )
    return g.fixed(min_ndim) if found is None else found


def sum_(g: ProgramBuilder) -> None:
    """A sum over some axes."""
    x = g.operand(1)
    axes = _axes(g, x)
    count = prod(x.type.shape[a] for a in axes)
    g.squashed(g.one(p.ReduceSum(axes), x, magnitude=g.magnitude(x) * max(count, 1)))


def extremum(g: ProgramBuilder) -> None:
    """The greatest or the least element."""
    x = _numbers(g, 1)
    axes = _axes(g, x)
    if any(x.type.shape[a] == 0 for a in axes):
        axes = ()
    g.one(g.choose.pick((p.ReduceMax(axes), p.ReduceMin(axes))), x)


def product(g: ProgramBuilder) -> None:
    """A product over some axes, or a running one, of numbers near 1."""
    x = g.fixed(1)
    x = g.one(p.Cosh(), g.one(p.Tanh(), x, magnitude=1.0), magnitude=1.6)
    axis = g.choose.below(len(x.type.shape))
    if g.choose.chance(40):
        g.squashed(g.one(p.CumProd(axis, g.choose.chance(40)), x, magnitude=40.0))
    else:
        g.squashed(g.one(p.ReduceProd(_axes(g, x)), x, magnitude=40.0))


def cumulative(g: ProgramBuilder) -> None:
    """A running sum, of linear values too."""
    x = g.operand(1)
    axis = g.choose.below(len(x.type.shape))
    magnitude = g.magnitude(x) * max(x.type.shape[axis], 1)
    prim = p.CumSum(axis, g.choose.chance(40))
    g.squashed(g.one(prim, x, magnitude=magnitude))


def cumulative_extremum(g: ProgramBuilder) -> None:
    """A running maximum or minimum."""
    x = _numbers(g, 1)
    axis, reverse = g.choose.below(len(x.type.shape)), g.choose.chance(40)
    g.one(g.choose.pick((p.CumMax(axis, reverse), p.CumMin(axis, reverse))), x)


def position(g: ProgramBuilder) -> None:
    """Where the greatest or the least element is."""
    x = _numbers(g, 1)
    axes = [a for a, n in enumerate(x.type.shape) if n]
    if not axes:
        g.one(p.Neg(), x)
        return
    axis, dtype = g.choose.pick(axes), g.features.ints[0]
    g.one(g.choose.pick((p.Argmax(axis, dtype), p.Argmin(axis, dtype))), x)


def sort(g: ProgramBuilder) -> None:
    """Arrays sorted together, or the greatest elements of one."""
    x = _numbers(g, 1)
    rest = g.maybe(lambda v: v.type.shape == x.type.shape and v.id not in g.linear)
    operands = [x] if rest is None or g.choose.chance(50) else [x, rest]
    axis = g.choose.below(len(x.type.shape))
    if g.choose.chance(30):
        g.emit(p.TopK(g.choose.below(x.type.shape[axis] + 1), axis), x)
        return
    g.emit(p.Sort(axis), *operands)


def of_booleans(g: ProgramBuilder) -> None:
    """Whether all or any of some booleans are true."""
    x = g.maybe(lambda v: v.type.dtype.kind == "b" and len(v.type.shape) > 0)
    if x is None:
        y = g.fixed(1)
        x = g.one(p.Gt(), y, g.threshold(y.type.dtype))
    axes = _axes(g, x)
    g.one(g.choose.pick((p.ReduceAnd(axes), p.ReduceOr(axes))), x)


def dot(g: ProgramBuilder) -> None:
    """A contraction, of which one operand may be linear."""
    x = g.operand(1)
    shape = x.type.shape

    def fits(v: Var) -> bool:
        return (
            v.type.dtype == x.type.dtype
            and v.id not in g.linear
            and any(n == m for n in shape for m in v.type.shape)
        )

    y: Atom | None = g.maybe(fits)
    if y is None:
        y = g.value(_plain(x)) if g.is_linear(x) else x
    if prod(shape) * prod(y.type.shape) > MAX_ELEMENTS * 12:
        g.one(p.Neg(), x)
        return
    numbers = _dimension_numbers(g, shape, y.type.shape)
    ((contracted, _), _) = numbers
    count = prod(shape[a] for a in contracted)
    magnitude = g.magnitude(x) * g.magnitude(y) * max(count, 1)
    if g.choose.chance(40):
        (lc, rc), (lb, rb) = numbers
        numbers, x, y = ((rc, lc), (rb, lb)), y, x  # type: ignore[assignment]  # both are atoms here
    result = p.DotGeneral(numbers).typing(x.type, y.type).outs[0]
    if prod(result.shape) > MAX_ELEMENTS:
        g.one(p.Neg(), x)
        return
    g.squashed(g.one(p.DotGeneral(numbers), x, y, magnitude=magnitude))


def _plain(x: Var) -> ArrayType:
    assert isinstance(x.type, ArrayType)
    return x.type.strong()


def _dimension_numbers(
    g: ProgramBuilder, left: tuple[int, ...], right: tuple[int, ...]
) -> p.DotDimensionNumbers:
    """One contracted pair of axes mostly, sometimes a batch pair too, or none."""
    contract: list[tuple[int, int]] = []
    batch: list[tuple[int, int]] = []
    for pairs, percent in ((contract, 90), (batch, 40)):
        taken_left = {a for a, _ in contract}
        taken_right = {b for _, b in contract}
        free = [
            (a, b)
            for a, n in enumerate(left)
            for b, m in enumerate(right)
            if n == m and a not in taken_left and b not in taken_right
        ]
        if free and not g.choose.chance(100 - percent):
            pairs.append(g.choose.pick(free))
    lc, rc = (tuple(pair[i] for pair in contract) for i in (0, 1))
    lb, rb = (tuple(pair[i] for pair in batch) for i in (0, 1))
    return ((lc, rc), (lb, rb))
