"""Rematerialization: ``remat`` recomputes values in the backward pass instead of saving them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import ClassVar

import numpy as np

from effax.effects import Read, SideEffect
from effax.ir.errors import BadArgument, RefError
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import ByReference, Primitive, Region, Typing, Value
from effax.ir.prims.common.operands import arrays
from effax.ir.prims.common.subjaxpr_checks import check_call, check_no_ref_results
from effax.ir.prims.contract import DotGeneral
from effax.ir.prims.jit import Jit
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.forms import call_region
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefKind, RefType, Type
from effax.ir.work import NO_WORK, Work
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Kept",
    "Name",
    "OptimizationBarrier",
    "Remat",
    "SaveAs",
    "SaveEither",
    "SavePolicy",
    "SaveRule",
]


class Kept(Enum):
    """The kinds of results that may be saved for the backward pass."""

    NOTHING = "nothing"
    EVERYTHING = "everything"
    DOTS = "dots"
    DOTS_WITHOUT_BATCH = "dots without batch axes"
    THESE_NAMES = "these names"
    ANYTHING_BUT_THESE_NAMES = "anything but these names"
    NAMES_BUT_THESE = "names but these"


@dataclass(frozen=True, slots=True)
class SavePolicy:
    """A predicate on equations: whether their results may be saved for the backward pass.

    It is a value, so that programs with a policy compare, print and parse.
    """

    kept: Kept
    names: tuple[str, ...] = ()

    def __call__(self, eqn: Eqn) -> bool:
        """Return whether the results of this equation may be saved."""
        prim = eqn.prim
        match self.kept:
            case Kept.NOTHING:
                return False
            case Kept.EVERYTHING:
                return True
            case Kept.DOTS:
                return isinstance(prim, DotGeneral)
            case Kept.DOTS_WITHOUT_BATCH:
                return isinstance(prim, DotGeneral) and not any(prim.dimension_numbers[1])
            case Kept.THESE_NAMES:
                return isinstance(prim, Name) and prim.label in self.names
            case Kept.ANYTHING_BUT_THESE_NAMES:
                return not isinstance(prim, Name) or prim.label not in self.names
            case Kept.NAMES_BUT_THESE:
                return isinstance(prim, Name) and prim.label not in self.names


NOTHING = SavePolicy(Kept.NOTHING)


@dataclass(frozen=True, slots=True)
class SaveEither:
    """A policy that saves the results that either of two policies saves."""

    first: SaveRule
    second: SaveRule

    def __call__(self, eqn: Eqn) -> bool:
        """Return whether the results of this equation may be saved."""
        return self.first(eqn) or self.second(eqn)


@dataclass(frozen=True)
class SaveAs(ByReference):
    """A policy given as a Python function of the primitive, the types, and the parameters.

    The primitive and the parameters are ``eqn.primitive`` and ``eqn.params``, as interpreters of
    jaxprs read them. It must be pure: it is called once for equal equations.
    """

    fun: Callable[..., object]
    label: str = "policy"

    def __call__(self, eqn: Eqn) -> bool:
        """Return whether the results may be saved. Raises BadArgument unless it is a boolean."""
        found: object = self.fun(eqn.primitive, *[a.type for a in eqn.invars], **eqn.params)
        if not isinstance(found, bool):
            raise BadArgument(
                f"the policy {self.label} of checkpoint must return a boolean",
                expected="True or False",
                found=f"{type(found).__name__}: {found!r:.60}, for {eqn.prim.name}",
            )
        return found


SaveRule = SavePolicy | SaveEither | SaveAs
"""A predicate on equations: whether their results may be saved for the backward pass."""


@dataclass(frozen=True, slots=True)
class Remat(Primitive):
    """A call whose intermediate values are recomputed where its derivative needs them.

    ``policy`` selects results that are saved all the same (None: none). ``differentiated`` is true
    for the call that recomputes; with ``prevent_cse``, barriers keep the compiler from merging it
    with the first computation, which would save its values. Side effects of the program happen
    once, in the first computation, and so do reads of references: their values are saved.
    """

    jaxpr: Jaxpr
    policy: SaveRule | None = None
    prevent_cse: bool = True
    differentiated: bool = False
    name: ClassVar[str] = "remat2"
    by_reference: ClassVar[tuple[str, ...]] = ("policy",)

    def typing(self, *ins: Type) -> Typing:
        check_call(self, "the function", self.jaxpr, ins)
        check_no_ref_results(self, "the function", self.jaxpr)
        if not self.differentiated and not only_reads(self.jaxpr):
            raise impure_error(f"the function given to {self.name}", str(self.jaxpr.effects))
        return Typing(self.jaxpr.out_types, self.jaxpr.effects)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.jaxpr, ins)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.jaxpr, devices, ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Remat:
        return replace(self, jaxpr=jaxprs[0])

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Remat:
        return replace(self, jaxpr=jaxprs[0])

    def as_call(self) -> Jit | None:
        return None if self.differentiated else Jit(self.jaxpr, self.name)

    def restrict(self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]) -> Remat:
        return replace(self, jaxpr=jaxprs[0])

    def regions(self) -> tuple[Region, ...]:
        return (call_region(self.jaxpr),)


def only_reads(jaxpr: Jaxpr) -> bool:
    """Return whether a program changes none of its references but those that take no part."""
    return all(
        isinstance(e, Read | SideEffect) or not _takes_part(jaxpr.in_types[e.ref])
        for e in jaxpr.effects
    )


def _takes_part(type_: Type) -> bool:
    """Return whether a reference takes part in rematerialization."""
    return not isinstance(type_, RefType) or type_.kind is not RefKind.NO_GRAD_NO_REMAT


def impure_error(what: str, found: str) -> RefError:
    """Return the error for a function with effects, which cannot be recomputed."""
    return RefError(
        f"{what} has effects, and computing it again would run them twice",
        expected="a function that only changes references that it makes itself",
        found=found,
        remedy="read what is needed before, and return what is to be written",
        rule="impure-remat",
    )


@dataclass(frozen=True, slots=True)
class Name(Primitive):
    """The identity; names the value for policies of ``remat``."""

    label: str
    name: ClassVar[str] = "name"
    is_view: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        return Typing(tuple(arrays(self, ins, 1)))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(ins[0]),)


@dataclass(frozen=True, slots=True)
class OptimizationBarrier(Primitive):
    """The identity on one array or more, across which the compiler does not optimize."""

    name: ClassVar[str] = "optimization_barrier"
    stays_apart: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        return Typing(tuple(arrays(self, ins, least=1)))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return NO_WORK

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return tuple([np.asarray(x) for x in ins])
