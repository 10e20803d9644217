"""Transposition of ``while``: count the iterations, then transpose the body for each in reverse.

The intermediate values of a loop are not saved. Fixed carries, which do not depend on linear
inputs, are recomputed from checkpoints. To reach iteration ``k``, the loop advances from the last
checkpoint before it, and pushes a new checkpoint at each half of the remaining distance::

    while cond(x): c, x = f(x)·c, g(x)                   c is linear, x fixed

    n = 0;  while cond(y): y = g(y); n += 1              y = x at first
    stack = [(0, x)]
    for k in n - 1, ..., 0:
        j, y = stack.top
        while j < k: y = g(y); j += 1; push (j, y) at half the distance from the last one to k
        ct = f(y)ᵀ·ct
        stack.pop()

There are at most ``1 + log2 n`` checkpoints. Since arrays have fixed sizes, the stack has 32 slots,
enough for any ``int32`` count. The n iterations take about ``n/2·log2 n`` evaluations of ``g`` (as
in Griewank 1992, Achieving logarithmic growth of temporal and spatial complexity in reverse
automatic differentiation). Counting evaluates only the carries that the condition needs, and
only carries that ``f`` needs are recomputed: if it needs none, there are no checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.effects import Accum, SideEffect, Write
from effax.ir.analysis.dataflow import fixpoint
from effax.ir.build import Builder, lit
from effax.ir.errors import NotApplicable
from effax.ir.prims import Lt, Sub, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import COUNTER, ArrayType, Type, tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.optimize.dce import dce
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.cotangents import (
    among,
    carried_cotangents,
    carried_spec,
    fixed_of,
    frozen_sums,
    instantiated,
    present,
    sum_of,
    summed_spec,
    untouched_consts,
)
from effax.transforms.rules.while_.replay import Part, Replay, Stack
from effax.transforms.rules.while_.trip_count import trip_count
from effax.transforms.transpose.cotangent_spec import CotangentSpec, DontWant, GradValue, NonLinear
from effax.transforms.transpose.engine import Transposed, transpose


def while_transpose(
    b: RuleBuilder, prim: While, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    passed = _passed_through(prim, ins, cts)
    if passed is not None:
        return passed
    _check_pure(prim, ins)
    return _Backward(b, prim, ins, cts).run()


def _passed_through(
    prim: While, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> list[Atom | None] | None:
    """Return the cotangents if the loop returns its linear carries unchanged, else None.

    Then the cotangent of a linear carry is that of its result, and no loop is emitted.
    """
    given: list[Atom | None] = [None] * len(ins)
    effects = (prim.cond.effects, prim.body.effects)
    for i, x in enumerate(ins):
        if not isinstance(x, Linear) or not x.wanted:
            continue
        if any(not isinstance(e, SideEffect) and e.ref == i for row in effects for e in row):
            return None
        if i >= prim.n_consts:
            if prim.body.outs[i - prim.n_consts] != prim.body.binders[i]:
                return None
            given[i] = cts[i - prim.n_consts]
        elif prim.body.binders[i] in {a for eqn in prim.body.eqns for a in eqn.ins}:
            return None
    return given


def _check_pure(prim: While, ins: Sequence[Atom | Linear]) -> None:
    """Raise NotApplicable if recomputation would repeat an effect that is not linear.

    A condition that changes a linear reference is part of the body after partial evaluation.
    """
    for row, is_cond in ((prim.cond.effects, True), (prim.body.effects, False)):
        for effect in row:
            if isinstance(effect, Write | Accum):
                if isinstance(ins[effect.ref], Linear) and not is_cond:
                    continue
                found = f"{effect.word} of {prim.body.name_of(effect.ref)}"
            elif effect in row.side_effects:
                found = str(row)
            else:
                continue
            raise NotApplicable(
                "a while loop is transposed by recomputing its iterations, and its effects would "
                "happen twice",
                expected="a body whose effects are on references that are differentiated",
                found=found,
                remedy="split off the equations that do not depend on linear inputs "
                "(`partial_eval`), or pass `max_steps` to `while_loop`, which then saves residuals",
            )


class _Backward:
    """The transposition of one loop. Positions of carries count from the first carry."""

    def __init__(
        self,
        b: RuleBuilder,
        prim: While,
        ins: Sequence[Atom | Linear],
        cts: Sequence[Atom | None],
    ) -> None:
        self.b = b
        self.prim = prim
        n = prim.n_consts
        self.consts, self.carry = ins[:n], ins[n:]
        self.fixed_consts = fixed_of(self.consts)
        self.fixed = [j for j, x in enumerate(self.carry) if not isinstance(x, Linear)]
        self.linear = [j for j, x in enumerate(self.carry) if isinstance(x, Linear)]
        self.cts = cts
        self.const_specs = list(map(summed_spec, self.consts))
        self.carry_specs: list[CotangentSpec] = [
            carried_spec(x) if isinstance(x, Linear) else NonLinear() for x in self.carry
        ]

    def run(self) -> list[Atom | None]:
        carried, inner = self._closed()
        untouched = untouched_consts(inner, self.consts, len(self.fixed_consts) + len(self.fixed))
        if untouched:
            self.const_specs = [
                DontWant() if i in untouched else w for i, w in enumerate(self.const_specs)
            ]
            carried, inner = self._closed()
        given = tuple(among([self.carry_specs[j] for j in self.linear], carried))
        wanted = [j for j in self.linear if isinstance(self.carry_specs[j], GradValue)]
        types = [tangent_type(self.prim.body.in_types[self.prim.n_consts + j]) for j in wanted]
        sums = [sum_of(self.b, x, w) for x, w in zip(self.consts, self.const_specs, strict=True)]
        results = iter(self._emit(instantiated(inner, given, types), carried, present(sums)))
        made: list[Atom | None] = [None] * len(self.carry)
        for j, has in zip(wanted, given, strict=True):
            made[j] = next(results) if has else None
        return [*frozen_sums(self.b, self.consts, sums), *made]

    def _closed(self) -> tuple[Mask, Transposed]:
        ct_specs = (*self.const_specs, *self.carry_specs)
        wanted = [isinstance(self.carry_specs[j], GradValue) for j in self.linear]

        def body(mask: Mask) -> Transposed:
            has = dict(zip(self.linear, mask, strict=True))
            outs = tuple([has.get(j, False) for j in range(len(self.carry))])
            return transpose.cached(self.prim.body, ct_specs, outs, self.b.rules)

        return carried_cotangents([self.cts[j] for j in self.linear], wanted, body)

    def _emit(self, body: Jaxpr, carried: Mask, sums: Sequence[Atom]) -> Sequence[Atom]:
        """Emit the backward loop. Returns the carried cotangents.

        ``body`` takes the fixed operands, then ``sums``, then the carried cotangents.
        """
        b, n_fixed = self.b, len(self.fixed_consts)
        every, some = (True,) * len(body.outs), [True] * len(body.binders)
        some[n_fixed : n_fixed + len(self.fixed)] = [False] * len(self.fixed)
        made = dce.cached(body, every, (True,) * len(some), tuple(some), b.rules)
        used = [u or s for u, s in zip(made.used_ins, some, strict=True)]
        step = Part(made.jaxpr, tuple(used))
        replay = self._replay([j for j, u in zip(self.fixed, used[n_fixed:], strict=False) if u])
        stack = Stack(b, replay) if replay.kept else None
        stacks = [] if stack is None else [*stack.refs, stack.places]
        kept = dict(zip(self.linear, carried, strict=True))
        cts = [
            zeros(b, tangent_type(x.type)) if ct is None else ct
            for j, (x, ct) in enumerate(zip(self.carry, self.cts, strict=True))
            if kept.get(j)
        ]
        consts = [*self.fixed_consts, *stacks, *sums]
        args = [*consts, self._count(), lit(0, COUNTER), *cts]
        types = [*[a.type for a in args[: len(consts) + 2]], *[_carried_type(ct) for ct in cts]]
        loop = While(
            _while_positive(types, len(consts)),
            self._step(types, len(consts), step, replay, stack is not None),
            len(consts),
        )
        return b.emit(loop, args)[2:]

    def _step(
        self, types: Sequence[Type], n_consts: int, step: Part, replay: Replay, again: bool
    ) -> Jaxpr:
        """``(consts, left, top, cts) -> (left - 1, top - 1, cts)``."""
        b = Builder(types)
        consts, (left, top, *cts) = b.binders[:n_consts], b.binders[n_consts:]
        n = len(self.fixed_consts)
        at = b(Sub(), left, lit(1, COUNTER))
        values: dict[int, Atom] = {}
        sums = consts[n:]
        last: Atom = top
        if again:
            stacks = consts[n : n + len(replay.kept) + 1]
            sums = consts[n + len(stacks) :]
            last, found = replay.emit(b, consts[:n], stacks, at, top)
            values.update(zip(replay.kept, found, strict=True))
        # Fixed carries that the step does not use have no value; they are not passed.
        fixed = [values.get(j, at) for j in self.fixed]
        new = step.call(b, [*consts[:n], *fixed, *sums, *cts])
        return b.finish([at, b(Sub(), last, lit(1, COUNTER)), *new])

    def _count(self) -> Atom:
        """Return the number of iterations, computed from the carries that the condition needs."""
        cond = self._fixed_part(self.prim.cond, (True,))
        replay = self._replay([j for j in self.fixed if cond.used[self._fixed_position(j)]])
        n = len(self.fixed_consts)
        types = [*[x.type for x in self.fixed_consts], *replay.types]
        test = Builder(types)
        again = cond.call(test, replay.arguments(test.binders[:n], test.binders[n:]))
        loop = While(test.finish(again), replay.program(types, n), n)
        return trip_count(self.b, loop, [*self.fixed_consts, *replay.first])

    def _init(self, j: int) -> Atom:
        x = self.carry[j]
        assert not isinstance(x, Linear)
        return x

    def _fixed_position(self, j: int) -> int:
        """Return the position of a fixed carry among the fixed operands."""
        return len(self.fixed_consts) + self.fixed.index(j)

    def _fixed_part(self, program: Jaxpr, used_outs: Mask) -> Part:
        """Return the part of the condition or the body that computes these fixed results."""
        none = (False,) * len(program.binders)
        made = dce.cached(program, used_outs, none, none, self.b.rules)
        is_fixed = [not isinstance(x, Linear) for x in (*self.consts, *self.carry)]
        if any(u and not f for u, f in zip(made.used_ins, is_fixed, strict=True)):
            raise NotApplicable("a while loop is not linear in the operands of its condition")
        used = tuple([u for u, f in zip(made.used_ins, is_fixed, strict=True) if f])
        return Part(made.jaxpr, used)

    def _replay(self, wanted: Sequence[int]) -> Replay:
        """Return the recomputation of these fixed carries, closed under their dependencies."""

        def part(needed: frozenset[int]) -> Part:
            outs = tuple([j in needed for j in range(len(self.carry))])
            return self._fixed_part(self.prim.body, outs)

        def grown(needed: frozenset[int]) -> frozenset[int]:
            used = part(needed).used
            return needed | {j for j in self.fixed if used[self._fixed_position(j)]}

        needed = fixpoint(grown, frozenset(wanted))
        kept = sorted(needed)
        types = [self.prim.body.in_types[self.prim.n_consts + j] for j in kept]
        return Replay(kept, types, [self._init(j) for j in kept], part(needed), self.fixed)


def _carried_type(ct: Atom) -> Type:
    assert isinstance(ct.type, ArrayType)
    return ct.type.strong()


def _while_positive(types: Sequence[Type], n_consts: int) -> Jaxpr:
    b = Builder(types)
    return b.finish([b(Lt(), lit(0, COUNTER), b.binders[n_consts])])
