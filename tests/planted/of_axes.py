"""Bugs in collectives and in `shard_map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from effax.ir.prims import Rev, ShardMap
from effax.ir.prims import collective as c
from effax.ir.syntax import Atom, Var
from effax.transforms.framework.rules import BatchBuilder, BatchOut, Linear, RuleBuilder
from effax.transforms.rules.common.linear_operands import only
from effax.transforms.rules.default import DEFAULT_RULES
from tests.planted.planting import Bug, edited, using, wrong_rule

Ins = Sequence[Atom]
Flags = Sequence[bool]
Rule = Callable[..., Any]


def right(prim: type[c.Collective | ShardMap], which: str) -> Rule:
    found: Rule = getattr(DEFAULT_RULES.rules[prim], which)
    assert callable(found)
    return found


def summed_once(b: BatchBuilder, prim: c.Psum, ins: Ins, batched: Flags, size: int) -> BatchOut:
    """Sum an unbatched operand once, not once an element."""
    if b.axis != prim.axis.name or batched[0]:
        return right(c.Psum, "batch")(b, prim, ins, batched, size)  # type: ignore[no-any-return]  # a rule
    return BatchOut([ins[0]], [False])


def always_in_front(
    b: BatchBuilder, prim: c.AllGather, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    return right(c.AllGather, "batch")(b, replace(prim, dimension=0), ins, batched, size)  # type: ignore[no-any-return]  # a rule


def other_way(b: BatchBuilder, prim: c.PPermute, ins: Ins, batched: Flags, size: int) -> BatchOut:
    back = tuple(sorted((d, s) for s, d in prim.perm))
    return right(c.PPermute, "batch")(b, replace(prim, perm=back), ins, batched, size)  # type: ignore[no-any-return]  # a rule


def counted_down(
    b: BatchBuilder, prim: c.AxisIndex, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    (place,), flags = right(c.AxisIndex, "batch")(b, prim, ins, batched, size)
    return BatchOut([b(Rev((0,)), place)], flags)


def of_one_element(
    b: BatchBuilder, prim: c.ReduceScatter, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """Over another axis the dimension is counted as if there was no batch axis."""
    if b.axis == prim.axis.name or prim.dimension == 0:
        return right(c.ReduceScatter, "batch")(b, prim, ins, batched, size)  # type: ignore[no-any-return]  # a rule
    wrong = replace(prim, dimension=prim.dimension - 1)
    return right(c.ReduceScatter, "batch")(b, wrong, ins, batched, size)  # type: ignore[no-any-return]  # a rule


def handed_on(
    b: RuleBuilder, prim: c.Psum, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """The cotangent of a sum is its terms' cotangent, as if it was one for all."""
    return [only(cts)]


def summed_over_all(
    b: RuleBuilder, prim: c.Psum, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """The cotangents of all groups are summed."""
    return [b(replace(prim, groups=None), only(cts))]


def sent_on(
    b: RuleBuilder, prim: c.PPermute, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(prim, only(cts))]


def not_exchanged(
    b: RuleBuilder, prim: c.AllToAll, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """The cotangents go the way of the values: right only where both places are the same."""
    return [b(prim, only(cts))]


def _unsummed(prim: object) -> ShardMap:
    """Without the sums at the border of a transposed `shard_map`."""
    assert isinstance(prim, ShardMap)
    body = prim.jaxpr
    outs = list(body.outs)
    made = {eqn.outs[0]: eqn for eqn in body.eqns if isinstance(eqn.prim, c.Psum)}
    for i, a in enumerate(outs):
        while isinstance(a, Var) and a in made:
            a = made[a].ins[0]  # noqa: PLW2901  # from sum to term
        outs[i] = a
    return replace(prim, jaxpr=body.replace(outs=outs), check_vma=False)


def batched(name: str, focus: str, prim: type[c.Collective], rule: Rule) -> Bug:
    return wrong_rule(name, "collectives", focus, prim, batch=rule)


def transposed(name: str, focus: str, prim: type[c.Collective | ShardMap], rule: Rule) -> Bug:
    return wrong_rule(name, "cotangents in step", focus, prim, transpose=rule)


BUGS: tuple[Bug, ...] = (
    batched("an unbatched operand is summed once", "collective.psum", c.Psum, summed_once),
    batched("elements are gathered in front", "collective.gather", c.AllGather, always_in_front),
    batched("elements move the other way", "collective.permute", c.PPermute, other_way),
    batched("elements are counted down", "collective.index", c.AxisIndex, counted_down),
    batched(
        "a batched dimension is that of one element",
        "shard_map",
        c.ReduceScatter,
        of_one_element,
    ),
    transposed("a sum hands its cotangent on", "collective.psum", c.Psum, handed_on),
    transposed("groups have one cotangent", "collective.psum", c.Psum, summed_over_all),
    transposed("cotangents move as values do", "collective.permute", c.PPermute, sent_on),
    transposed("parts are not exchanged back", "collective.to_all", c.AllToAll, not_exchanged),
    transposed(
        "cotangents of what devices share are not summed",
        "shard_map",
        ShardMap,
        edited(right(ShardMap, "transpose"), using(ShardMap, _unsummed)),
    ),
)
