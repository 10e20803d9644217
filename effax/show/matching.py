"""What two programs have in common: which equations are gone, and which are new.

Equations are matched first by what they compute: by primitive, and by what their operands compute,
down to the inputs. What is left is matched by primitive and types, in order, so that one changed
equation does not mark all that come after it. Both are linear in the programs.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var


class Comparison(NamedTuple):
    """Positions of equations, with what is said of them: ``gone`` before, ``new`` after."""

    before: Mapping[int, str]
    after: Mapping[int, str]


def compare_programs(before: Jaxpr, after: Jaxpr) -> Comparison:
    """Match the equations of two programs; an equation that holds programs is one equation."""
    numbers: dict[Hashable, int] = {}
    olds, news = _meanings(before, numbers), _meanings(after, numbers)
    left, right = _unmatched(olds, news)
    old_kinds = {i: _kind(before.eqns[i]) for i in left}
    new_kinds = {i: _kind(after.eqns[i]) for i in right}
    gone, new = _unmatched(old_kinds, new_kinds)
    return Comparison(dict.fromkeys(gone, "gone"), dict.fromkeys(new, "new"))


def _meanings(jaxpr: Jaxpr, numbers: dict[Hashable, int]) -> dict[int, int]:
    """A number for what each equation computes; equal ones have equal numbers.

    What is done to a reference counts what was done to it before.
    """

    def numbered(key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    values = {v.id: numbered(("input", i)) for i, v in enumerate(jaxpr.binders)}

    def operand(a: Atom) -> int:
        return numbered(a) if isinstance(a, Lit) else values[a.id]

    found: dict[int, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        found[i] = numbered((eqn.prim, *map(operand, eqn.ins)))
        for k, v in enumerate(eqn.outs):
            values[v.id] = numbered((found[i], k))
        if eqn.effects.changes_state:
            for ref in eqn.effects.refs:
                a = eqn.ins[ref]
                if isinstance(a, Var):
                    values[a.id] = numbered((found[i], values[a.id], "changed"))
    return found


def _kind(eqn: Eqn) -> Hashable:
    return (type(eqn.prim), *[a.type for a in eqn.ins], *[v.type for v in eqn.outs])


def _unmatched(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> tuple[list[int], list[int]]:
    """The positions on each side that find no partner with an equal value on the other."""
    waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for i, key in first.items():
        waiting[key].append(i)
    extra = []
    for j, key in second.items():
        if waiting[key]:
            waiting[key].popleft()
        else:
            extra.append(j)
    return sorted([i for places in waiting.values() for i in places]), extra


def changes_told(before: Jaxpr, after: Jaxpr) -> str:
    """How many equations of each primitive there are more or less: ``mul +2, sin −1``."""
    counts = Counter(eqn.prim.name for eqn in after.eqns)
    counts.subtract(Counter(eqn.prim.name for eqn in before.eqns))
    told = [f"{name} {'+' if n > 0 else '−'}{abs(n)}" for name, n in sorted(counts.items()) if n]
    return ", ".join(told) or "the same primitives"
