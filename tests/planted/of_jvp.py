"""Bugs in forward mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from effax.ir import prims as p
from effax.ir.indexing import Indexer, Pick
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, LinearSolve, Root, Scan, refs
from effax.ir.prims import index as ix
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.pointwise import (
    Derivative,
    Partial,
    binary_jvp,
    const,
    mul,
    neg,
    sub,
    unary_jvp,
)
from effax.transforms.rules.default import DEFAULT_RULES
from tests.planted.planting import Bug, edited, using, wrong_rule

Maybe = Sequence[Atom | None]


def unary(name: str, prim: type[Primitive], derivative: Derivative) -> Bug:
    return wrong_rule(name, "jvp", "math.smooth", prim, jvp=partial(unary_jvp, derivative))


def binary(
    name: str, focus: str | tuple[str, ...], prim: type[Primitive], fx: Partial, fy: Partial
) -> Bug:
    return wrong_rule(name, "jvp", focus, prim, jvp=partial(binary_jvp, (fx, fy)))


def right(prim: type[Primitive]) -> Callable[..., JvpOut]:
    found = DEFAULT_RULES.rules[prim].jvp
    assert callable(found)
    return found


def matrix_stands_still(b: RuleBuilder, prim: LinearSolve, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    """Omit the derivative of the solution along the constants of the system."""
    n = prim.n_consts
    return right(LinearSolve)(b, prim, xs, [*[None] * n, *ts[n:]])


def uphill(b: RuleBuilder, prim: Root, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    """The root moves the other way."""
    outs, tangents = right(Root)(b, prim, xs, ts)
    return JvpOut(outs, [None if t is None else neg(b, t) for t in tangents])


def mean_of_all(b: RuleBuilder, prim: p.ReduceMax, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    (x,), (dx,) = xs, ts
    assert dx is not None
    return JvpOut([b(prim, x)], [b(p.ReduceSum(prim.axes), dx)])


def backwards(b: RuleBuilder, prim: p.CumSum, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    (x,), (dx,) = xs, ts
    assert dx is not None
    return JvpOut([b(prim, x)], [b(p.CumSum(prim.axis), dx)])


def cases_swapped(b: RuleBuilder, prim: p.SelectN, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    which, *cases = xs
    moved = [const(0, x) if t is None else t for x, t in zip(cases, ts[1:], strict=True)]
    y = b(prim, *xs)
    return JvpOut([y], [b(p.Add(), b(prim, which, *reversed(moved)), zeros(b, y.type))])


def left_only(b: RuleBuilder, prim: p.DotGeneral, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    (x, y), (dx, _) = xs, ts
    return JvpOut([b(prim, x, y)], [None if dx is None else b(prim, dx, y)])


def from_the_start(b: RuleBuilder, prim: ix.Gather, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    operands = xs[1:]
    dims = tuple(Pick(0) if isinstance(d, Pick) and d.at else d for d in prim.indexer.dims)
    part = ix.Gather(Indexer(dims, prim.indexer.mode))
    return JvpOut([b(prim, *xs)], [None if ts[0] is None else b(part, ts[0], *operands)])


def forgets_old(b: RuleBuilder, prim: refs.Swap, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    """Return the new tangent as the old one."""
    out, tangents = right(refs.Swap)(b, prim, xs, ts)
    return JvpOut(out, [ts[1] if t is not None and ts[1] is not None else t for t in tangents])


def forgets_what_is_read(b: RuleBuilder, prim: refs.Get, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    return JvpOut([b(prim, *xs)], [None])


def keeps_old_tangent(b: RuleBuilder, prim: refs.Swap, xs: Sequence[Atom], ts: Maybe) -> JvpOut:
    """A value without a tangent leaves the old tangent where it was."""
    if ts[1] is not None or ts[0] is None:
        return right(refs.Swap)(b, prim, xs, ts)
    out = b.emit(prim, xs)
    return JvpOut(out, [b(refs.Get(prim.indexer), ts[0], *xs[2:])])


def only_primals_added(
    b: RuleBuilder, prim: refs.AddUpdate, xs: Sequence[Atom], ts: Maybe
) -> JvpOut:
    b.emit(prim, xs)
    return JvpOut([], [])


def _first_branch(prim: Primitive) -> Primitive:
    assert isinstance(prim, Cond)
    return Cond((prim.branches[0],) * len(prim.branches))


def _other_way(prim: Primitive) -> Primitive:
    assert isinstance(prim, Scan)
    return Scan(prim.jaxpr, prim.length, not prim.reverse, prim.n_consts, prim.n_carry, prim.unroll)


BUGS: tuple[Bug, ...] = (
    unary("the derivative of sin is sin", p.Sin, lambda b, d, x, y: mul(b, d, y)),
    unary(
        "the derivative of cos has no sign",
        p.Cos,
        lambda b, d, x, y: mul(b, d, b(p.Sin(), x)),
    ),
    unary(
        "the derivative of tanh is 1 - y",
        p.Tanh,
        lambda b, d, x, y: mul(b, d, sub(b, const(1, y), y)),
    ),
    unary("the derivative of logistic is y", p.Logistic, lambda b, d, x, y: mul(b, d, y)),
    binary(
        "a product is differentiated in its first factor only",
        "arith.mul",
        p.Mul,
        lambda b, d, x, y, z: mul(b, d, y),
        lambda b, d, x, y, z: mul(b, d, const(0, z)),
    ),
    binary(
        "the derivative of a difference is that of a sum",
        "arith.add",
        p.Sub,
        lambda b, d, x, y, z: d,
        lambda b, d, x, y, z: d,
    ),
    binary(
        "a quotient is differentiated in its dividend only",
        "arith.div",
        p.Div,
        lambda b, d, x, y, z: b(p.Div(), d, y),
        lambda b, d, x, y, z: mul(b, const(0, z), neg(b, d)),
    ),
    binary(
        "the tangent of a maximum is that of both operands",
        "compare.extremum",
        p.Max,
        lambda b, d, x, y, z: d,
        lambda b, d, x, y, z: d,
    ),
    wrong_rule(
        "the tangent of the greatest element is the sum of all",
        "jvp",
        "reduce.extremum",
        p.ReduceMax,
        jvp=mean_of_all,
    ),
    wrong_rule(
        "the tangent of a reversed running sum runs forward",
        "jvp",
        "reduce.cumulative",
        p.CumSum,
        jvp=backwards,
    ),
    wrong_rule(
        "the tangents of a selection are the other way round",
        "jvp",
        "convert.select",
        p.SelectN,
        jvp=cases_swapped,
    ),
    wrong_rule(
        "a contraction is differentiated in its left operand only",
        "jvp",
        "contract.dot",
        p.DotGeneral,
        jvp=left_only,
    ),
    wrong_rule(
        "a static index of the tangent is 0",
        "jvp",
        ("index.gather", "refs.consume"),
        ix.Gather,
        jvp=from_the_start,
    ),
    wrong_rule(
        "swap returns the new tangent, not the old one",
        "jvp",
        "refs.swap",
        refs.Swap,
        jvp=forgets_old,
    ),
    wrong_rule(
        "what is read from a reference has no tangent",
        "jvp",
        "refs.get",
        refs.Get,
        jvp=forgets_what_is_read,
    ),
    wrong_rule(
        "a constant that is written leaves the old tangent",
        "jvp",
        "refs.swap",
        refs.Swap,
        jvp=keeps_old_tangent,
    ),
    wrong_rule(
        "what is added to a reference adds no tangent",
        "jvp",
        "refs.addupdate",
        refs.AddUpdate,
        jvp=only_primals_added,
    ),
    wrong_rule(
        "every branch is differentiated as the first",
        "jvp",
        "cond",
        Cond,
        jvp=edited(right(Cond), using(Cond, _first_branch)),
    ),
    wrong_rule(
        "a differentiated scan runs the other way",
        "jvp",
        "scan",
        Scan,
        jvp=edited(right(Scan), using(Scan, _other_way)),
    ),
    wrong_rule("a system stands still", "jvp", "solve", LinearSolve, jvp=matrix_stands_still),
    wrong_rule("a root moves the other way", "jvp", "solve", Root, jvp=uphill),
)
