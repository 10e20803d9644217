"""Solvers, differentiated implicitly by their equations and not step by step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from effax.ir.errors import RefError
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import ByReference, Primitive, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import check_call, check_results
from effax.ir.recursion import with_fresh_stack
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "LinearSolve",
    "Root",
    "SolveRule",
]


class SolveRule(ByReference):
    """Programs that derivatives need, on the operands of the primitive that holds them."""

    __slots__ = ()

    @abstractmethod
    def __call__(self) -> tuple[Jaxpr, ...]:
        """Return the programs."""


def _check_pure(prim: Primitive, what: str, jaxpr: Jaxpr) -> None:
    if jaxpr.effects:
        raise RefError(
            f"{prim.name}: {what} has effects, and derivatives call it more than once",
            expected="a function that only uses references that it makes itself",
            found=str(jaxpr.effects),
            remedy="read what is needed before, and pass it in",
            rule="impure-solve",
        )


@dataclass(frozen=True, slots=True)
class LinearSolve(Primitive):
    """``custom_linear_solve(*consts, *b) -> (*x, *aux)``, where ``A·x = b``.

    All programs take the constants first. ``matvec`` maps x to A·x, and ``solve`` maps b to x and
    auxiliary results; ``vecmat`` and ``transpose_solve`` are these two for the transpose of A. If
    they are None, ``rule`` returns them when they are needed; without it there is no reverse
    derivative.
    """

    matvec: Jaxpr
    solve: Jaxpr
    vecmat: Jaxpr | None
    transpose_solve: Jaxpr | None
    n_consts: int
    rule: SolveRule | None = None
    name: ClassVar[str] = "custom_linear_solve"
    by_reference: ClassVar[tuple[str, ...]] = ("rule",)

    def typing(self, *ins: Type) -> Typing:
        b = ins[self.n_consts :]
        for what, jaxpr in zip(self._names(), self.subjaxprs(), strict=True):
            check_call(self, what, jaxpr, ins)
            _check_pure(self, what, jaxpr)
            solves = what.endswith("solve")
            found = jaxpr.replace(outs=jaxpr.outs[: len(b)]) if solves else jaxpr
            check_results(self, what, found, b)
        return Typing(self.solve.out_types)

    def first_linear(self) -> int:
        return self.n_consts

    def _names(self) -> tuple[str, ...]:
        names = ("matvec", "solve")
        return names if self.vecmat is None else (*names, "vecmat", "transpose_solve")

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.solve, ins)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.solve, devices, ins)

    def runs(self) -> tuple[Jaxpr, ...]:
        return (self.solve,)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        if self.vecmat is None or self.transpose_solve is None:
            return (self.matvec, self.solve)
        return (self.matvec, self.solve, self.vecmat, self.transpose_solve)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> LinearSolve:
        matvec, solve, *transposed = jaxprs
        vecmat, transpose_solve = transposed or (None, None)
        return LinearSolve(matvec, solve, vecmat, transpose_solve, self.n_consts, self.rule)

    def answered(self) -> LinearSolve:
        if self.rule is None:
            return self
        vecmat, transpose_solve = self.rule()
        return LinearSolve(self.matvec, self.solve, vecmat, transpose_solve, self.n_consts)

    @property
    def transposed(self) -> LinearSolve | None:
        """The solve for the transpose of A, or None."""
        vecmat, transpose_solve = self.vecmat, self.transpose_solve
        if self.rule is not None:
            vecmat, transpose_solve = self.rule()
        if vecmat is None or transpose_solve is None:
            return None
        return LinearSolve(vecmat, transpose_solve, self.matvec, self.solve, self.n_consts)


@dataclass(frozen=True, slots=True)
class Root(Primitive):
    """``custom_root(*consts, *guess) -> (*x, *aux)``, where ``f(x) = 0``.

    All programs take the constants first. ``f`` maps x to values of the same types, ``solve`` maps
    the guess to x and auxiliary results, and ``tangent_solve`` maps x and b to the y for which
    ``df/dx(x)·y = b``, or is a rule that returns this program alone.
    """

    f: Jaxpr
    solve: Jaxpr
    tangent_solve: Jaxpr | SolveRule
    n_consts: int
    name: ClassVar[str] = "custom_root"
    by_reference: ClassVar[tuple[str, ...]] = ("tangent_solve",)

    def typing(self, *ins: Type) -> Typing:
        guess = ins[self.n_consts :]
        solved = self.solve.replace(outs=self.solve.outs[: len(guess)])
        parts = [("f", self.f, ins), ("solve", solved, ins)]
        if isinstance(self.tangent_solve, Jaxpr):
            parts.append(("tangent_solve", self.tangent_solve, (*ins, *guess)))
        for what, jaxpr, args in parts:
            check_call(self, what, jaxpr, args)
            _check_pure(self, what, jaxpr)
            check_results(self, what, jaxpr, guess)
        return Typing(self.solve.out_types)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.solve, ins)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.solve, devices, ins)

    def runs(self) -> tuple[Jaxpr, ...]:
        return (self.solve,)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        both = (self.f, self.solve)
        return (*both, self.tangent_solve) if isinstance(self.tangent_solve, Jaxpr) else both

    def answered(self) -> Root:
        if isinstance(self.tangent_solve, Jaxpr):
            return self
        (tangent_solve,) = self.tangent_solve()
        return replace(self, tangent_solve=tangent_solve)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Root:
        f, solve, *rest = jaxprs
        return replace(
            self, f=f, solve=solve, tangent_solve=rest[0] if rest else self.tangent_solve
        )
