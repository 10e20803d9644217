"""Reorder equations: the uses of a variable before one that ends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from effax.ir.syntax import Eqn, Var


def uses_first(eqns: Sequence[Eqn], ends: Mapping[int, Iterable[Var]]) -> list[int]:
    """Return the positions of equations in an order in which ends of variables come late.

    Each position in ``ends`` comes after the other equations that use one of its variables, except
    those that depend on it. Equations with effects keep their order; others move no further than
    needed.

    Args:
        eqns: the equations, in order.
        ends: the variables that an equation ends, by its position.
    """
    return _Order(eqns, ends).places if ends else list(range(len(eqns)))


class _Order:
    """A depth-first search over dependences, on a stack of its own."""

    def __init__(self, eqns: Sequence[Eqn], ends: Mapping[int, Iterable[Var]]) -> None:
        self.bit = {k: 1 << n for n, k in enumerate(ends)}
        self.needs: list[list[int]] = []
        self.after: list[int] = []
        """The ends on which each equation depends, itself among them, as a set of bits."""
        users = self._scan(eqns, {v.id for found in ends.values() for v in found})
        self.uses = {
            k: [r for v in found for r in users.get(v.id, ()) if r > k and not self._follows(r, k)]
            for k, found in ends.items()
        }
        self.active = 0
        self.done = [False] * len(eqns)
        self.places: list[int] = []
        for k in range(len(eqns)):
            if not self.done[k]:
                self._place(k)

    def _scan(self, eqns: Sequence[Eqn], ended: set[int]) -> dict[int, list[int]]:
        """Find the dependences; return the users of the variables in ``ended``."""
        users: dict[int, list[int]] = {}
        producer: dict[int, int] = {}
        last_effect: list[int] = []
        for k, eqn in enumerate(eqns):
            ids = {a.id for a in eqn.ins if isinstance(a, Var)}
            needs = [producer[i] for i in ids if i in producer]
            if eqn.effects:
                needs += last_effect
                last_effect = [k]
            after = self.bit.get(k, 0)
            for p in needs:
                after |= self.after[p]
            self.needs.append(sorted(needs))
            self.after.append(after)
            for i in ids & ended:
                users.setdefault(i, []).append(k)
            producer.update((v.id, k) for v in eqn.outs)
        return users

    def _follows(self, k: int, end: int) -> bool:
        return bool(self.after[k] & self.bit[end])

    def _place(self, first: int) -> None:
        stack = [first]
        while stack:
            k = stack[-1]
            waits = [p for p in self.needs[k] if not self.done[p]]
            if not waits and k in self.bit and not self.active & self.bit[k]:
                # A use that depends on an end on the stack cannot come before this one.
                uses = self.uses[k]
                waits = [r for r in uses if not (self.done[r] or self.after[r] & self.active)]
                self.active |= self.bit[k]
            if waits:
                stack.extend(reversed(waits))
                continue
            stack.pop()
            if not self.done[k]:
                self.done[k] = True
                self.active &= ~self.bit.get(k, 0)
                self.places.append(k)
