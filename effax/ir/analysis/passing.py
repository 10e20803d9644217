"""Results that are an operand unchanged: what branches, loops and calls only pass through.

If both branches of a ``cond`` return its operand ``x``, the result is ``x``, whatever the predicate
is. So is a carry of a loop whose body returns it as it is. No predicate decides such results.
"""

from __future__ import annotations

from collections.abc import Iterator

from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit

Passed = int | Lit | None
"""The position of an operand, or a constant; None for a value that is computed."""


@memoize(maxsize=1 << 13)
def passed_results(prim: Primitive) -> tuple[Passed, ...]:
    """Return for each result that a region returns the operand that it always equals."""
    if prim.has_own_rules or prim.bound_axes():
        return ()
    found: dict[int, set[Passed]] = {}
    for region in prim.regions():
        sources = passed_inputs(region.jaxpr)
        for source, result, carry in zip(sources, region.results, region.carry_to, strict=True):
            if result is None:
                continue
            operand = region.args[source] if isinstance(source, int) else source
            if isinstance(source, int) and source in region.parts:
                operand = None
            if (region.repeats or carry is not None) and operand != carry:
                operand = None
            found.setdefault(result, set()).add(operand)
    n = 1 + max(found, default=-1)
    return tuple([next(iter(found[r])) if len(found.get(r, ())) == 1 else None for r in range(n)])


@memoize(maxsize=1 << 13)
def passed_inputs(jaxpr: Jaxpr) -> tuple[Passed, ...]:
    """Return for each result of a program the input, or the constant, that it is."""
    inputs = {v.id: i for i, v in enumerate(jaxpr.binders)}
    calls = {v.id: (eqn, j) for eqn in _calls(jaxpr) for j, v in enumerate(eqn.outs)}

    def source(atom: Atom) -> Passed:
        while not isinstance(atom, Lit):
            if atom.id in inputs:
                return inputs[atom.id]
            if atom.id not in calls:
                return None
            eqn, j = calls[atom.id]
            passed = passed_results(eqn.prim)
            operand = passed[j] if j < len(passed) else None
            if not isinstance(operand, int):
                return operand
            if eqn.ins[operand].type is not eqn.outs[j].type:
                return None
            atom = eqn.ins[operand]
        return atom

    return tuple(map(source, jaxpr.outs))


def _calls(jaxpr: Jaxpr) -> Iterator[Eqn]:
    return (eqn for eqn in jaxpr.eqns if eqn.prim.subjaxprs())
