"""Bugs in transposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.dtypes import as_dtype
from effax.ir.indexing import Indexer, Mode, Span
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, Jit, LinearSolve, Scan, While, refs
from effax.ir.prims import index as ix
from effax.ir.prims import reduce as red
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.types import COUNTER, array_type
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.arrays import sum_to, zeros
from effax.transforms.rules.common.linear_operands import at, fixed, linear_operand, only
from effax.transforms.rules.default import DEFAULT_RULES
from tests.planted.planting import Bug, edited, using, wrong_rule

Ins = Sequence[Atom | Linear]
Maybe = Sequence[Atom | None]


def right(prim: type[Primitive]) -> Callable[..., Maybe]:
    found = DEFAULT_RULES.rules[prim].transpose
    assert callable(found)
    return found


def bug(
    name: str, focus: str | tuple[str, ...], prim: type[Primitive], rule: Callable[..., Maybe]
) -> Bug:
    return wrong_rule(name, "transpose", focus, prim, transpose=rule)


def without_factor(b: RuleBuilder, prim: p.Mul, ins: Ins, cts: Maybe) -> Maybe:
    position, x, _ = linear_operand(prim, ins)
    return at(position, sum_to(b, only(cts), x.type.shape), ins)


def without_sign(b: RuleBuilder, prim: p.Sub, ins: Ins, cts: Maybe) -> Maybe:
    ct = only(cts)
    return [sum_to(b, ct, x.type.shape) if isinstance(x, Linear) else None for x in ins]


def scalar_not_summed(b: RuleBuilder, prim: p.Add, ins: Ins, cts: Maybe) -> Maybe:
    """A scalar that went with an array gets one element's cotangent."""
    ct = only(cts)
    size = tuple(range(len(ct.type.shape)))
    return [
        None
        if not isinstance(x, Linear)
        else ct
        if x.type.shape == ct.type.shape
        else b(p.Mul(), b(red.ReduceSum(size), ct), lit(0.5, ct.type))
        for x in ins
    ]


def swap_as_addition(b: RuleBuilder, prim: refs.Swap, ins: Ins, cts: Maybe) -> Maybe:
    """Keep the cotangent of an overwritten value."""
    ref, value = ins[:2]
    operands = fixed(prim, ins, 2)
    if not isinstance(ref, Linear) or ref.ref is None:
        return [None] * len(ins)
    new = b(refs.Get(prim.indexer), ref.ref, *operands)
    if cts[0] is not None:
        b.emit(refs.AddUpdate(prim.indexer), [ref.ref, cts[0], *operands])
    return at(1, new if isinstance(value, Linear) else None, ins)


def swap_without_old(b: RuleBuilder, prim: refs.Swap, ins: Ins, cts: Maybe) -> Maybe:
    return right(refs.Swap)(b, prim, ins, [None])


def addition_consumes(b: RuleBuilder, prim: refs.AddUpdate, ins: Ins, cts: Maybe) -> Maybe:
    ref, value = ins[:2]
    if not isinstance(ref, Linear) or ref.ref is None or not isinstance(value, Linear):
        return [None] * len(ins)
    zero = zeros(b, value.type)
    return at(1, b(refs.Swap(prim.indexer), ref.ref, zero, *fixed(prim, ins, 2)), ins)


def read_overwrites(b: RuleBuilder, prim: refs.Get, ins: Ins, cts: Maybe) -> Maybe:
    ref = ins[0]
    if isinstance(ref, Linear) and ref.ref is not None and cts[0] is not None:
        b.emit(refs.Swap(prim.indexer), [ref.ref, cts[0], *fixed(prim, ins, 1)])
    return [None] * len(ins)


def duplicates_overwrite(b: RuleBuilder, prim: ix.Gather, ins: Ins, cts: Maybe) -> Maybe:
    x, operands = ins[0], fixed(prim, ins, 1)
    assert isinstance(x, Linear)
    dx = b(ix.Scatter(prim.indexer), zeros(b, x.type), only(cts), *operands)
    return at(0, dx, ins)


def drops_clipped(b: RuleBuilder, prim: ix.Gather, ins: Ins, cts: Maybe) -> Maybe:
    """Positions outside that were moved inside are dropped on the way back."""
    other = replace(prim, indexer=Indexer(prim.indexer.dims, Mode.DROP))
    return right(ix.Gather)(b, other, ins, cts)


def window_shifted(b: RuleBuilder, prim: p.DynamicSlice, ins: Ins, cts: Maybe) -> Maybe:
    x, starts = ins[0], fixed(prim, ins, 1)
    assert isinstance(x, Linear)
    moved = [b(p.Add(), s, lit(1, s.type)) for s in starts]
    window = Indexer(tuple(Span(None, n) for n in prim.slice_sizes))
    return at(0, b(ix.ScatterAdd(window), zeros(b, x.type), only(cts), *moved), ins)


def window_kept(b: RuleBuilder, prim: p.DynamicUpdateSlice, ins: Ins, cts: Maybe) -> Maybe:
    """Keep the cotangent of an overwritten value."""
    given = list(right(p.DynamicUpdateSlice)(b, prim, ins, cts))
    return [only(cts) if isinstance(ins[0], Linear) else None, *given[1:]]


def one_element(b: RuleBuilder, prim: red.ReduceSum, ins: Ins, cts: Maybe) -> Maybe:
    """Return the cotangent of the mean for that of the sum."""
    (dx,) = right(red.ReduceSum)(b, prim, ins, cts)
    assert dx is not None
    shape = ins[0].type.shape
    count = max(1, sum(shape[a] for a in prim.axes))
    return [b(p.Div(), dx, lit(float(count + 1), dx.type))]


def same_direction(b: RuleBuilder, prim: red.CumSum, ins: Ins, cts: Maybe) -> Maybe:
    return [b(prim, only(cts))]


def interior_ignored(b: RuleBuilder, prim: p.Pad, ins: Ins, cts: Maybe) -> Maybe:
    dx, dvalue = right(p.Pad)(b, prim, ins, cts)
    x = ins[0]
    if dx is None or not any(inner for _, _, inner in prim.padding_config):
        return [dx, dvalue]
    return [b(p.Rev(tuple(range(len(x.type.shape)))), dx), dvalue]


def parts_reversed(b: RuleBuilder, prim: p.Concatenate, ins: Ins, cts: Maybe) -> Maybe:
    given = right(p.Concatenate)(b, prim, ins, cts)
    types = {x.type for x in ins}
    return [*reversed(given)] if len(types) == 1 else given


def same_permutation(b: RuleBuilder, prim: p.Transpose, ins: Ins, cts: Maybe) -> Maybe:
    (x,) = ins
    back = b(p.Transpose(prim.permutation), only(cts))
    return [back if back.type.shape == x.type.shape else b(p.Reshape(x.type.shape), back)]


def _same_way(prim: Primitive) -> Primitive:
    assert isinstance(prim, Scan)
    return replace(prim, reverse=not prim.reverse)


def _rotated(prim: Primitive) -> Primitive:
    assert isinstance(prim, Cond)
    return Cond((*prim.branches[1:], prim.branches[0]))


def _counting_down(prim: Primitive) -> bool:
    """Return whether it is the loop over reversed iterations: while 0 < left."""
    if not isinstance(prim, While):
        return False
    test = prim.cond.eqns[0]
    return isinstance(test.prim, p.Lt) and test.ins[0] == lit(0, COUNTER)


def _one_less(prim: Primitive) -> Primitive:
    """The first iteration is not gone back over."""
    if not _counting_down(prim):
        return prim
    assert isinstance(prim, While)
    test = prim.cond.eqns[0]
    later = test._replace(ins=(lit(1, COUNTER), test.ins[1]))
    return replace(prim, cond=prim.cond.replace(eqns=[later]))


def _not_forward(prim: Primitive) -> Primitive:
    """Take the residuals of an iteration from the previous checkpoint."""
    if not _counting_down(prim):
        return prim
    assert isinstance(prim, While)
    body = prim.body
    eqns = [eqn._replace(prim=_no_way(eqn.prim)) for eqn in body.eqns]
    return replace(prim, body=body.replace(eqns=eqns))


def _no_way(prim: Primitive) -> Primitive:
    """A loop up to a checkpoint, whose fixed values stay what they are."""
    if not isinstance(prim, While) or not any(
        isinstance(e.prim, refs.Swap) for e in prim.body.eqns
    ):
        return prim
    body, n = prim.body, prim.n_consts
    return replace(prim, body=body.replace(outs=[*body.outs[:3], *body.binders[n + 3 :]]))


def not_turned(b: RuleBuilder, prim: LinearSolve, ins: Ins, cts: Maybe) -> Maybe:
    """The same equation is solved backward, not the transposed one."""
    return right(LinearSolve)(b, replace(prim, transpose_solve=prim.solve), ins, cts)


def call_forgotten(b: RuleBuilder, prim: Jit, ins: Ins, cts: Maybe) -> Maybe:
    """A call with an effect is taken for one without."""
    start = len(b.eqns)
    given = right(Jit)(b, prim, ins, cts)
    b.eqns[start:] = [_pure(eqn) for eqn in b.eqns[start:]]
    return given


def _pure(eqn: Eqn) -> Eqn:
    if not isinstance(eqn.prim, Jit) or not eqn.effects:
        return eqn
    inner = eqn.prim.jaxpr
    kept = [e for e in inner.eqns if not isinstance(e.prim, refs.AddUpdate)]
    made = Jaxpr(inner.binders, kept, inner.outs)
    return eqn._replace(prim=Jit(made, eqn.prim.label), effects=made.effects)


def converted_twice(b: RuleBuilder, prim: p.BroadcastInDim, ins: Ins, cts: Maybe) -> Maybe:
    """The cotangent of what was repeated is that of one copy."""
    x = ins[0]
    shape = x.type.shape
    if any(n == 1 for n in shape):
        return right(p.BroadcastInDim)(b, prim, ins, cts)
    ct = only(cts)
    dims = prim.broadcast_dimensions
    axes = tuple(i for i in range(len(prim.shape)) if i not in dims)
    maximum = b(red.ReduceMax(axes), ct)
    return [maximum]


NUMBER = array_type((), as_dtype("float64"))

BUGS: tuple[Bug, ...] = (
    bug("the factor is left out of a product", "arith.mul", p.Mul, without_factor),
    bug("the sign of a difference is left out", "arith.add", p.Sub, without_sign),
    bug("a scalar's cotangent is not the whole sum", "arith.add", p.Add, scalar_not_summed),
    bug("swap is transposed as addupdate", "refs.swap", refs.Swap, swap_as_addition),
    bug("swap forgets the old value's cotangent", "refs.swap", refs.Swap, swap_without_old),
    bug("addupdate consumes the cotangent", "refs.addupdate", refs.AddUpdate, addition_consumes),
    bug("get overwrites the cotangent", "refs.get", refs.Get, read_overwrites),
    bug("positions that come twice overwrite", "index.gather", ix.Gather, duplicates_overwrite),
    bug(
        "the first write to a position has the cotangent of the last",
        "index.scatter",
        ix.Scatter,
        edited(right(ix.Scatter), using(p.Gt, lambda _: p.Lt())),
    ),
    bug("clipped positions are dropped", "index.gather", ix.Gather, drops_clipped),
    bug("a window is off by one", "index.dynamic_slice", p.DynamicSlice, window_shifted),
    bug(
        "what an update overwrites keeps its cotangent",
        "index.dynamic_update_slice",
        p.DynamicUpdateSlice,
        window_kept,
    ),
    bug("a sum is taken for a mean", "reduce.sum_", red.ReduceSum, one_element),
    bug("a running sum runs the same way back", "reduce.cumulative", red.CumSum, same_direction),
    bug("elements spread by padding come back reversed", "shape.pad", p.Pad, interior_ignored),
    bug("joined parts are given back reversed", "shape.concatenate", p.Concatenate, parts_reversed),
    bug("axes are permuted once more, not back", "shape.transpose", p.Transpose, same_permutation),
    bug("copies are not summed", "shape.broadcast", p.BroadcastInDim, converted_twice),
    bug(
        "the backward scan runs forward",
        "scan",
        Scan,
        edited(right(Scan), using(Scan, _same_way)),
    ),
    bug(
        "another branch runs backward",
        "cond",
        Cond,
        edited(right(Cond), using(Cond, _rotated)),
    ),
    bug(
        "going back leaves out the first iteration",
        "while",
        While,
        edited(right(While), using(While, _one_less)),
    ),
    bug(
        "the way from a checkpoint is not gone",
        "while",
        While,
        edited(right(While), using(While, _not_forward)),
    ),
    bug("a system is not turned", "solve", LinearSolve, not_turned),
    bug("a call's effects are dropped", "jit", Jit, call_forgotten),
)
