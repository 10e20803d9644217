"""``while``: a loop that runs as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from effax.ir.errors import IllTyped
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import (
    check_call,
    check_counts,
    check_no_ref_results,
    check_results,
)
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.forms import region_effects, while_regions
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, array_type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "While",
]


@dataclass(frozen=True, slots=True)
class While(Primitive):
    """``while(*consts, *carry) -> carry``; both programs take the consts and the carry.

    The condition and the body share one list of consts, so a reference that both use is one
    argument with one state: the condition sees the writes of the body.
    """

    cond: Jaxpr
    body: Jaxpr
    n_consts: int
    name: ClassVar[str] = "while"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        check_counts(self, ins, self.n_consts)
        carry = ins[self.n_consts :]
        if any(isinstance(t, RefType) for t in carry):
            raise IllTyped(
                "while: a reference cannot be carried",
                expected="arrays",
                found=", ".join(map(str, carry)),
                remedy="close over it",
            )
        check_call(self, "the condition", self.cond, ins)
        check_call(self, "the body", self.body, ins)
        check_no_ref_results(self, "the body", self.body)
        check_results(self, "the condition", self.cond, [array_type((), np.bool_)])
        check_results(self, "the body", self.body, self.body.in_types[self.n_consts :])
        return Typing(self.body.in_types[self.n_consts :], region_effects(self))

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        with np.errstate(all="ignore"):
            return self.prepare()(*ins)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        predicate, step = prepare(self.cond), prepare(self.body)

        def loop(*ins: Value) -> Sequence[Value]:
            consts, carry = ins[: self.n_consts], ins[self.n_consts :]
            while predicate(*consts, *carry)[0]:
                carry = tuple(step(*consts, *carry))
            return carry

        return loop

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        if not self.free_axes():
            return [self.evaluate(*own) for own in ins]
        consts = [own[: self.n_consts] for own in ins]
        carries = [own[self.n_consts :] for own in ins]
        here = list(range(len(ins)))
        while here:
            some, args = devices.some(here), [[*consts[i], *carries[i]] for i in here]
            answers = evaluate_spmd(self.cond, some, args)
            here = [i for i, (again,) in zip(here, answers, strict=True) if again]
            args = [[*consts[i], *carries[i]] for i in here]
            if here:
                new = evaluate_spmd(self.body, devices.some(here), args)
                for i, carry in zip(here, new, strict=True):
                    carries[i] = carry
        return carries

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.cond, self.body)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> While:
        return replace(self, cond=jaxprs[0], body=jaxprs[1])

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> While:
        return replace(self, cond=jaxprs[0], body=jaxprs[1], n_consts=self.n_consts + n)

    def restrict(self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]) -> While:
        cond, body = jaxprs
        return While(cond, body, sum(ins[: self.n_consts]))

    def regions(self) -> tuple[Region, ...]:
        return while_regions(self.cond, self.body)
