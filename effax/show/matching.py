"""Match the equations of two programs, to find removed and new ones.

Equations are matched first by value number: primitive, and value numbers of operands, down to the
inputs. The rest are matched by primitive and types, in order, so that one changed equation does not
mark all that depend on it. Both are linear in the programs.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var


class Comparison(NamedTuple):
    """Marks by position of the equation: ``gone`` before, ``new`` after."""

    before: Mapping[int, str]
    after: Mapping[int, str]


def compare_programs(before: Jaxpr, after: Jaxpr) -> Comparison:
    """Match the equations of two programs; an equation with subjaxprs is one equation."""
    numbers: dict[Hashable, int] = {}
    olds, news = _meanings(before, numbers), _meanings(after, numbers)
    left, right = _unmatched(olds, news)
    old_kinds = {i: _kind(before.eqns[i]) for i in left}
    new_kinds = {i: _kind(after.eqns[i]) for i in right}
    gone, new = _unmatched(old_kinds, new_kinds)
    return Comparison(dict.fromkeys(gone, "gone"), dict.fromkeys(new, "new"))


def _meanings(jaxpr: Jaxpr, numbers: dict[Hashable, int]) -> dict[int, int]:
    """Return the value number of each equation; equal computations have equal numbers.

    An access to a reference depends on the earlier accesses.
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
    """Return the positions on each side without a partner of equal value on the other."""
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


def changed_counts(before: Jaxpr, after: Jaxpr) -> str:
    """Return the difference of the counts of each primitive: ``mul +2, sin −1``."""
    counts = Counter(eqn.prim.name for eqn in after.eqns)
    counts.subtract(Counter(eqn.prim.name for eqn in before.eqns))
    parts = [f"{name} {'+' if n > 0 else '−'}{abs(n)}" for name, n in sorted(counts.items()) if n]
    return ", ".join(parts) or "the same primitives"
