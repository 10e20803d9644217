"""Discharge of ``while``.

Contents that the condition or the body changes are carried, so that both access one state. A
condition that changes a reference is evaluated before the loop and at the end of the body, and the
predicate is carried: so its writes happen as often as in the original loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.prims import Jit, While
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import DischargeOut, RuleBuilder, RuleSet
from effax.transforms.rules.common.arrays import placed


def while_discharge(
    b: RuleBuilder, prim: While, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    loop = _Loop(b.rules, prim)
    n, changed = loop.n_consts, loop.changed
    args = [ins[i] for i in loop.order]
    if not loop.cond.changed:
        results = b.emit(While(loop.condition(), loop.body(), n), args)
    else:
        first = loop.test(b, dict(zip(loop.order, args, strict=True)))
        carry = [*first, *args[n + len(changed) :]]
        results = b.emit(While(loop.predicate(), loop.body(), n), [*args[:n], *carry])[1:]
    new = results[: len(changed)]
    return DischargeOut(results[len(changed) :], placed(changed, new, len(ins)))


class _Loop:
    """The jaxprs of the loop over ``(consts, [predicate], changed contents, carry)``."""

    def __init__(self, rules: RuleSet, prim: While) -> None:
        self.rules = rules
        self.cond = discharge.cached(prim.cond, rules)
        self.discharged_body = discharge.cached(prim.body, rules)
        self.changed = tuple(sorted({*self.cond.changed, *self.discharged_body.changed}))
        consts = [i for i in range(prim.n_consts) if i not in self.changed]
        self.n_consts = len(consts)
        carry = range(prim.n_consts, len(prim.body.binders))
        self.order = (*consts, *self.changed, *carry)

    def _begin(self) -> tuple[RuleBuilder, Var | None, dict[int, Atom]]:
        """Return a builder with the loop's binders: the predicate, the others by position."""
        types = self.discharged_body.jaxpr.in_types
        b = RuleBuilder(self.rules)
        args: dict[int, Atom] = {i: b.bind(types[i]) for i in self.order[: self.n_consts]}
        predicate = b.bind(self.cond.jaxpr.out_types[0]) if self.cond.changed else None
        args.update((i, b.bind(types[i])) for i in self.order[self.n_consts :])
        return b, predicate, args

    def condition(self) -> Jaxpr:
        """Return a condition that changes no reference, on the contents."""
        b, _, args = self._begin()
        return b.finish(b.inline_jaxpr(self.cond.jaxpr, _in_order(args)))

    def predicate(self) -> Jaxpr:
        """Return the condition of a loop that carries its predicate."""
        b, predicate, _ = self._begin()
        assert predicate is not None
        return b.finish([predicate])

    def body(self) -> Jaxpr:
        b, predicate, args = self._begin()
        n = self.discharged_body.n_outs
        outs = b.inline_jaxpr(self.discharged_body.jaxpr, _in_order(args))
        args.update(zip(self.discharged_body.changed, outs[n:], strict=True))
        args.update(zip(self.order[len(self.order) - n :], outs[:n], strict=True))
        tested = [] if predicate is None else self.test(b, args)[:1]
        return b.finish([*tested, *[args[i] for i in self.order[self.n_consts :]]])

    def test(self, b: RuleBuilder, args: dict[int, Atom]) -> list[Atom]:
        """Evaluate the condition. Returns the predicate and the contents; updates ``args``.

        It is a call, since it occurs twice: inlined, nested conditions would grow exponentially.
        """
        results = b.emit(Jit(self.cond.jaxpr, "cond"), _in_order(args))
        args.update(zip(self.cond.changed, results[1:], strict=True))
        return [results[0], *[args[i] for i in self.changed]]


def _in_order(args: dict[int, Atom]) -> list[Atom]:
    return [args[i] for i in range(len(args))]
