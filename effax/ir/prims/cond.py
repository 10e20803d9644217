"""``cond``: one of several branches, chosen by an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from effax.ir.errors import IllTyped
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.common.operands import check_least
from effax.ir.prims.common.subjaxpr_checks import check_call, check_no_ref_results, check_results
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.forms import branch_regions, region_effects
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, Type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Cond",
]


def joined_types(branches: Sequence[tuple[Type, ...]]) -> tuple[Type, ...]:
    """Return the types of results of one of several programs: weak if all of them are."""
    joined: list[Type] = []
    for first, *rest in zip(*branches, strict=True):
        same = all(t is first for t in rest)
        joined.append(first if same or not isinstance(first, ArrayType) else first.strong())
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Cond(Primitive):
    """``cond(index, *operands)``: the branch of that number, clamped; false is 0, true is 1."""

    branches: tuple[Jaxpr, ...]
    name: ClassVar[str] = "cond"

    def typing(self, *ins: Type) -> Typing:
        check_least(self, ins, 1)
        index, *operands = ins
        scalar = isinstance(index, ArrayType) and index.shape == ()
        if not scalar or index.dtype.name not in ("bool", "int32"):
            raise IllTyped(
                "cond takes a scalar index", expected="bool[] or i32[]", found=str(index)
            )
        if not self.branches or (index.dtype.name == "bool" and len(self.branches) != 2):
            raise IllTyped("cond has the wrong number of branches", found=str(len(self.branches)))
        for i, branch in enumerate(self.branches):
            check_call(self, f"branch {i}", branch, operands)
            check_no_ref_results(self, f"branch {i}", branch)
            check_results(self, f"branch {i}", branch, self.branches[0].out_types)
        types = joined_types([branch.out_types for branch in self.branches])
        return Typing(types, region_effects(self))

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.branches[self._taken(ins)], ins[1:])

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        branches = [prepare(branch) for branch in self.branches]
        return lambda *ins: branches[self._taken(ins)](*ins[1:])

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        if not self.free_axes():
            return [self.evaluate(*own) for own in ins]
        taken = [self._taken(own) for own in ins]
        outs: dict[int, Sequence[Value]] = {}
        for k in sorted(set(taken)):
            here = [i for i, index in enumerate(taken) if index == k]
            args = [ins[i][1:] for i in here]
            outs.update(
                zip(here, evaluate_spmd(self.branches[k], devices.some(here), args), strict=True)
            )
        return [outs[i] for i in range(len(ins))]

    def _taken(self, ins: Sequence[Value]) -> int:
        return min(max(int(ins[0]), 0), len(self.branches) - 1)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return self.branches

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Cond:
        return replace(self, branches=tuple(jaxprs))

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Cond:
        return replace(self, branches=tuple(jaxprs))

    def restrict(self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]) -> Cond:
        return replace(self, branches=tuple(jaxprs))

    def regions(self) -> tuple[Region, ...]:
        return branch_regions(self.branches)

    def selector(self) -> int | None:
        return 0
