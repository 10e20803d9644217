"""Implicitly differentiated solutions of equations: roots and linear systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import NamedTuple, TypeVar

from effax import tree
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import Operand, annotate_errors, bind, handle, run
from effax.arrays.rules.call_rules import CallRule, CallRules, call_rules, rule_of
from effax.arrays.rules.call_site import CallSite, RuledFunction, with_rules
from effax.arrays.tangents import checked_cotangents, tangent_for
from effax.arrays.tracing import (
    FlatFunction,
    check_same_tree,
    result_names,
    shown_tree,
    trace_flat,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Owner
from effax.ir.prims import LinearSolve, Root, SolveRule
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.ir.syntax import Jaxpr
from effax.ir.trace import Trace, current_trace
from effax.ir.types import Type, is_inexact, tangent_type
from effax.lax.carries import call_tree, no_refs
from effax.lax.leaves import Leaves, leaves_of, promotes, with_results
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.runner import unwrap
from effax.transforms.linearize import linearize
from effax.transforms.rules.common.cotangents import instantiated
from effax.transforms.transpose.cotangent_spec import CotangentSpec, GradValue, NonLinear
from effax.transforms.transpose.engine import transpose
from effax.tree import PyTreeDef

__all__ = ["custom_linear_solve", "custom_root"]

X = TypeVar("X")
R = TypeVar("R")


def custom_linear_solve(
    matvec: Callable[[X], X],
    b: X,
    solve: Callable[[Callable[[X], X], X], R],
    transpose_solve: Callable[[Callable[[X], X], X], R] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> R:
    """Solve ``matvec(x) = b``, differentiated implicitly as a linear equation.

    Derivatives solve equations with the same ``matvec``, or its transpose, and other right-hand
    sides; ``solve`` itself is not differentiated. ``matvec`` may close over differentiated values.

    Args:
        matvec: linear function of a tree like ``b`` to a tree like ``b``.
        b: right-hand side, a tree of inexact arrays.
        solve: function ``solve(matvec, b)`` that returns the solution.
        transpose_solve: function ``transpose_solve(vecmat, b)`` for the transpose, which reverse
            mode needs.
        symmetric: whether the transpose is ``matvec`` itself; ``solve`` then serves for both.
        has_aux: whether ``solve`` and ``transpose_solve`` return a pair of the solution and
            auxiliary data that is not differentiated.

    Returns:
        Solution, or the pair.

    Raises:
        IllTyped: ``matvec`` or ``solve`` returns another structure or types than ``b``.
        TransformError: ``matvec`` is not linear.
        RefError: a function uses outer references.

    >>> lax.custom_linear_solve(lambda x: 2 * x, jnp.array([4.0]), lambda mv, b: b / 2)
    Array([2.], dtype=float32)
    """
    for f, name in ((matvec, "matvec"), (solve, "solve")):
        check_callable(f, f"custom_linear_solve: {name}")
    if transpose_solve is not None:
        check_callable(transpose_solve, "custom_linear_solve: transpose_solve")
    given = _Unknown.of(b, "b", "custom_linear_solve")
    solver = with_rules(_Solver, matvec, transpose_solve, solve, has_aux)

    def traced() -> list[FlatFunction]:
        flat_matvec = given.traced(matvec, "matvec")
        return [given.traced(lambda x: solve(matvec, x), "solve", has_aux), flat_matvec]

    call = given.call(solver, traced)
    solved, made = call.programs
    n = len(call.consts)
    if symmetric:
        prim = LinearSolve(made, solved, made, solved, n)
    elif transpose_solve is None:
        prim = LinearSolve(made, solved, None, None, n)
    else:
        rule = rule_of(_TransposedSolve, call, given.types_only(), transpose_solve, has_aux)
        rule.vecmat()  # an iterative solver may not end where ``matvec`` is not linear
        prim = LinearSolve(made, solved, None, None, n, rule)
    outs = bind(prim, *call.consts, *given.leaves)
    solution: R = tree.unflatten(call.out_tree, outs)
    return solution


@dataclass(frozen=True, eq=False)
class _Solver(RuledFunction):
    """A function and the one that its derivatives use."""

    fun: Callable[..., object]
    rule: Callable[..., object] | None
    solve: Callable[..., object]
    has_aux: bool
    serial: int = field(default_factory=lambda: Owner().serial)
    kept: list[CallRules] = field(default_factory=list)

    def __reduce__(self) -> tuple[object, ...]:
        return (with_rules, (_Solver, self.fun, self.rule, self.solve, self.has_aux))

    def rule_functions(self) -> tuple[object, ...]:
        return (self.rule,)


@dataclass(frozen=True, eq=False, repr=False)
class _TransposedSolve(CallRule, SolveRule):
    """The transpose of the linear function of a call, and the program that solves for it."""

    call: CallRules
    given: _Unknown
    solve: Callable[..., object]
    has_aux: bool
    label: str = "transpose_solve"

    def __call__(self) -> tuple[Jaxpr, ...]:
        return self.call.once("transpose_solve", self._programs)

    def vecmat(self) -> Jaxpr:
        """Return the transpose of the linear function. Raises TransformError."""
        call = self.call
        return call.once("vecmat", lambda: _transposed(call.programs[1], len(call.consts)))

    def _programs(self) -> tuple[Jaxpr, ...]:
        call, given, vecmat = self.call, self.given, self.vecmat()

        def applied(x: object) -> object:
            leaves = given.leaves_like(x, "the argument of vecmat")
            return tree.unflatten(given.treedef, run(vecmat, [*call.consts, *leaves]))

        def solution(*leaves: object) -> object:
            return self.solve(applied, tree.unflatten(given.treedef, leaves))

        return vecmat, given.rule(call, solution, "transpose_solve", self.has_aux)


def _transposed(jaxpr: Jaxpr, n: int) -> Jaxpr:
    """Return the transpose of a linear function of ``n`` constants. Raises TransformError."""
    types = jaxpr.in_types[n:]
    ct_specs: tuple[CotangentSpec, ...] = (*[NonLinear()] * n, *[GradValue()] * len(types))
    made = unwrap(transpose(jaxpr, ct_specs, (True,) * len(types)))
    program = instantiated(made, (True,) * len(types), [tangent_type(t) for t in types])
    return program.replace(n_consts=n)


def custom_root(
    f: Callable[[X], X],
    initial_guess: X,
    solve: Callable[[Callable[[X], X], X], R],
    tangent_solve: Callable[[Callable[[X], X], X], X],
    has_aux: bool = False,
) -> R:
    """Return a root of ``f``, differentiated by the implicit function theorem.

    ``f`` may close over differentiated values, on which the root depends. The derivative with
    respect to the initial guess is zero.

    Args:
        f: function of a tree like ``initial_guess`` to a tree like it.
        initial_guess: tree of inexact arrays.
        solve: function ``solve(f, initial_guess)`` that returns the root.
        tangent_solve: function ``tangent_solve(g, y)`` that solves ``g(x) = y`` for a linear g;
            reverse mode transposes it. ``lambda g, y: y / g(1.0)`` for scalars,
            ``custom_linear_solve`` for systems.
        has_aux: whether ``solve`` returns a pair of the root and auxiliary data that is not
            differentiated.

    Returns:
        Root, or the pair.

    Raises:
        IllTyped: a function returns another structure or types than the guess, or the guess is not
            inexact.
        RefError: a function uses outer references.

    >>> f = lambda x: x - 2.0
    >>> lax.custom_root(f, jnp.float32(1.0), lambda f, x: x - f(x), lambda g, y: y / g(1.0))
    Array(2., dtype=float32)
    """
    for function, name in ((f, "f"), (solve, "solve"), (tangent_solve, "tangent_solve")):
        check_callable(function, f"custom_root: {name}")
    guess = _Unknown.of(initial_guess, "initial_guess", "custom_root")

    def traced() -> list[FlatFunction]:
        flat_f = guess.traced(f, "f")
        return [guess.traced(lambda x: solve(f, x), "solve", has_aux), flat_f]

    call = guess.call(with_rules(_Solver, f, tangent_solve, solve, has_aux), traced)
    solved, made = call.programs
    rule = rule_of(_TangentSolve, call, guess.types_only(), tangent_solve)
    outs = bind(Root(made, solved, rule, len(call.consts)), *call.consts, *guess.leaves)
    root: R = tree.unflatten(call.out_tree, outs)
    return root


@dataclass(frozen=True, eq=False, repr=False)
class _TangentSolve(CallRule, SolveRule):
    """The program that solves for the derivative of the function of a call."""

    call: CallRules
    guess: _Unknown
    solve: Callable[..., object]
    label: str = "tangent_solve"

    def __call__(self) -> tuple[Jaxpr, ...]:
        return self.call.once("tangent_solve", self._program)

    def _program(self) -> tuple[Jaxpr]:
        guess, n = self.guess, len(self.guess.types)

        def solution(*leaves: object) -> object:
            x, y = (tree.unflatten(guess.treedef, part) for part in (leaves[:n], leaves[n:]))
            return self.solve(guess.derivative(self.call.custom.fun, x), y)

        return (guess.rule(self.call, solution, "tangent_solve", more=1),)


class _Unknown(NamedTuple):
    """Unknown of an equation: its leaves, structure and types."""

    leaves: Sequence[Operand]
    types: Sequence[Type]
    treedef: PyTreeDef
    names: Sequence[str]
    what: str

    @staticmethod
    def of(value: object, name: str, what: str) -> _Unknown:
        """Return the unknown of the user's tree. Raises IllTyped, RefError."""
        found: Leaves = leaves_of(value, name)
        no_refs(found, what)
        for type_, of in zip(found.types, found.names, strict=True):
            if not is_inexact(type_):
                raise IllTyped(
                    f"{what}: {of} has no derivative",
                    expected="floats or complex numbers",
                    found=str(type_),
                    remedy="convert it: `.astype('float32')`",
                )
        return _Unknown(found.leaves, found.types, found.treedef, found.names, what)

    def types_only(self) -> _Unknown:
        """Return the unknown without its leaves, which belong to a trace."""
        return self._replace(leaves=())

    def traced(
        self, function: Callable[..., object], name: str, has_aux: bool = False
    ) -> FlatFunction:
        """Return the program of a function of such a tree to such a tree."""
        label = f"{name} of {self.what}"
        flat = trace_flat(function, call_tree(self.treedef), self.types, self.names, label)
        return self._checked(flat, label, has_aux)

    def call(self, solver: _Solver, traced: Callable[[], Sequence[FlatFunction]]) -> CallRules:
        """Return the rules of a call with this unknown."""
        args_tree = tree.structure((tree.unflatten(self.treedef, [0] * len(self.types)),))
        types, names = tuple(self.types), tuple(self.names)
        site = CallSite(self.what, (), (), args_tree, types, names)
        trace = current_trace() or Trace(handle, self.what, None)
        return call_rules(solver, site, self.leaves, trace, traced)

    def rule(
        self,
        call: CallRules,
        function: Callable[..., object],
        name: str,
        has_aux: bool = False,
        more: int = 0,
    ) -> Jaxpr:
        """Return the program of a function of the leaves of ``1 + more`` such trees."""
        label, n = f"{name} of {self.what}", 1 + more
        types, names = [*self.types] * n, [*self.names] * n
        flat = call.flat(function, types, names, label, [None] * len(types))
        checked = self._checked(flat, label, has_aux)
        return call.over_consts(checked, label)

    def _checked(self, flat: FlatFunction, label: str, has_aux: bool) -> FlatFunction:
        """Return the program with results like the unknown. Raises IllTyped, BadArgument."""
        found = flat.out_tree
        if has_aux:
            if found.type not in (tuple, list) or found.num_children != 2:
                raise BadArgument(
                    f"{label} must return a pair (solution, aux), since has_aux is set",
                    expected="(solution, aux)",
                    found=shown_tree(found),
                )
            found = found.children()[0]
        check_same_tree(found, self.treedef, f"the result of {label}")
        names = result_names(f"the result of {label}", self.treedef)
        return flat._replace(jaxpr=self._fitted(flat.jaxpr, names))

    def derivative(self, function: Callable[..., object], at: object) -> Callable[[object], object]:
        """Return the derivative of ``function`` at a point, a linear function of tangents."""
        flat = self.traced(function, "f")
        operands = [*flat.consts, *self.leaves_like(at, "the argument of tangent_solve")]
        tangents = (*(False,) * len(flat.consts), *(True,) * len(self.types))
        with annotate_errors(operands):
            split = unwrap(linearize(flat.jaxpr, tangents, True))
        results = run(split.primal, operands)
        residuals = [r.pick(operands, results) for r in split.residuals]

        def linear(dots: object) -> object:
            given = checked_cotangents(dots, self.treedef, self.types, "the tangents of f")
            outs = run(split.linear, [*residuals, *given])
            return tree.unflatten(self.treedef, map(tangent_for, self.types, outs))

        return linear

    def _fitted(self, jaxpr: Jaxpr, names: Sequence[str]) -> Jaxpr:
        """Return the program with its first results converted to these types. Raises IllTyped."""
        for out, ct_spec, name in zip(jaxpr.outs, self.types, names, strict=False):
            have = out.type
            if not (fits(have, ct_spec) or promotes(out, ct_spec)):
                raise IllTyped(
                    f"{self.what}: {name} has a different type than {self.names[0]}",
                    expected=str(ct_spec),
                    found=str(have),
                )
        return with_results(jaxpr, self.types)

    def leaves_like(self, value: object, name: str) -> list[Operand]:
        """Return the leaves of a tree of this structure. Raises IllTyped."""
        found = leaves_of(value, name)
        check_same_tree(found.treedef, self.treedef, name)
        return found.leaves
