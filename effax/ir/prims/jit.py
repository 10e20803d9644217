"""``jit``: a call of a jaxpr that is compiled as one; ``composite``: a named call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import check_call, check_no_ref_results
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.forms import call_region
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Composite",
    "Jit",
]


@dataclass(frozen=True, slots=True)
class Jit(Primitive):
    """A call of a program that is compiled as one."""

    jaxpr: Jaxpr
    label: str = "f"
    name: ClassVar[str] = "jit"
    is_call: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        check_call(self, "the function", self.jaxpr, ins)
        check_no_ref_results(self, "the function", self.jaxpr)
        return Typing(self.jaxpr.out_types, self.jaxpr.effects)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.jaxpr, ins)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        return prepare(self.jaxpr)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.jaxpr, devices, ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Jit:
        return replace(self, jaxpr=jaxprs[0])

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Jit | None:
        return replace(self, jaxpr=jaxprs[0])

    def restrict(
        self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]
    ) -> Jit | None:
        return replace(self, jaxpr=jaxprs[0])

    def regions(self) -> tuple[Region, ...]:
        return (call_region(self.jaxpr),)


@dataclass(frozen=True, slots=True)
class Composite(Jit):
    """A call of a program that a compiler may replace by an operation of the same meaning.

    A program with effects, such as prints that a pass added, is called as it is.

    Attributes:
        attributes: text of the attributes, as StableHLO writes them.
        version: version of the operation's meaning.
    """

    attributes: str = ""
    version: int = 0
    name: ClassVar[str] = "composite"
    is_call: ClassVar[bool] = False

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> None:
        return None

    def restrict(self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]) -> None:
        return None

    def plain(self) -> Jit:
        """Return the call without its meaning to a compiler."""
        return Jit(self.jaxpr, self.label)
