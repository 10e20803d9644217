"""Unrolling of ``while``: the trip count is found by evaluating the operands of the predicate."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.analysis.dataflow import fixpoint
from effax.ir.analysis.queries import size
from effax.ir.build import Builder
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.prims import While
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import RefType
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.licm import terminates


def while_unroll(rules: RuleSet, eqn: Eqn, ins: Sequence[Atom], growth: int) -> Jaxpr | None:
    loop = eqn.prim
    assert isinstance(loop, While)
    trips = _trips(loop, ins, growth, rules)
    if trips is None:
        return None
    b = Builder([a.type for a in ins])
    consts, carry = b.binders[: loop.n_consts], list[Atom](b.binders[loop.n_consts :])
    for _ in range(trips):
        carry = b.inline_jaxpr(loop.body, [*consts, *carry])
    return b.finish(carry)


def _trips(loop: While, ins: Sequence[Atom], growth: int, rules: RuleSet) -> int | None:
    """Return the trip count of a loop; None if it is unknown, or too large to unroll."""
    cond, body, n = loop.cond, loop.body, loop.n_consts
    if cond.effects.changes_state or tuple([a.type for a in ins]) != body.in_types:
        return None
    if body.out_types != body.in_types[n:]:
        return None
    most = (1 + size(cond) + size(body) + growth) // max(size(body), 1)
    used = _deciding(loop, rules)
    if used is None or not all(isinstance(ins[i], Lit) for i in used):
        return None
    keep = tuple(i in used for i in range(len(ins)))
    carried = tuple(i + n in used for i in range(len(ins) - n))
    observed = (False,) * len(ins)
    test = dce.uncached(cond, (True,), observed, keep, rules).jaxpr
    step = dce.uncached(body, carried, observed, keep, rules).jaxpr
    if test.free_axes or step.free_axes:
        return None
    if (
        test.effects
        or step.effects
        or not all(terminates(e.prim) for e in (*test.eqns, *step.eqns))
    ):
        return None
    values = [literal_value(a) for i, a in enumerate(ins) if i in used and isinstance(a, Lit)]
    fixed = values[: sum(keep[:n])]
    rest = values[len(fixed) :]
    for count in range(most + 1):
        if not bool(evaluate(test, [*fixed, *rest])[0]):
            return count
        rest = evaluate(step, [*fixed, *rest])
    return None


def _deciding(loop: While, rules: RuleSet) -> frozenset[int] | None:
    """Return the operands that determine the condition; None where a reference is among them."""
    n, total = loop.n_consts, len(loop.body.binders)

    def needed(program: Jaxpr, outs: Mask) -> frozenset[int]:
        nothing = (False,) * total
        used = dce.uncached(program, outs, nothing, nothing, rules).used_ins
        return frozenset([i for i, u in enumerate(used) if u])

    def grown(used: frozenset[int]) -> frozenset[int]:
        return used | needed(loop.body, tuple([i + n in used for i in range(total - n)]))

    used = fixpoint(grown, needed(loop.cond, (True,)))
    types = loop.body.in_types
    return None if any(isinstance(types[i], RefType) for i in used) else used
