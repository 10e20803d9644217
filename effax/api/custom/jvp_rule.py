"""Custom rules for forward derivatives: traced, and checked against the function's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from effax import tree
from effax.api.custom.call_site import CallSite, DeferredRule, cast_result, check_pair
from effax.api.custom.rule_tracing import outside_rules
from effax.api.custom.zeros import SymbolicZero, symbolic_zero
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.tangents import checked_cotangents, tangent_for
from effax.arrays.tracing import (
    FlatFunction,
    TraceOptions,
    check_same_tree,
    result_names,
    trace_flat,
)
from effax.ir.errors import IllTyped
from effax.ir.prims import SparseJvp, ZerosJvp
from effax.ir.types import Type, is_inexact, tangent_type
from effax.tree import PyTreeDef


class UserJvpRule(NamedTuple):
    """The user's rule, and whether it takes symbolic zeros."""

    fun: Callable[..., object]
    symbolic_zeros: bool

    def traced(
        self,
        site: CallSite,
        flat: FlatFunction,
        leaves: Sequence[Operand],
        set_primals: Callable[[Sequence[object]], None],
    ) -> FlatFunction:
        """Trace the rule: from primals and the tangents that exist, to results and tangents.

        Python may read the values of primals where those of ``leaves`` are known. ``set_primals``
        is called with the primals that the rule gets.
        """
        run = _JvpApplication(self.fun, site, flat.out_tree, flat.jaxpr.out_types)
        given = tuple(map(is_inexact, site.types))
        types, names = run.inputs(given)
        in_tree = tree.structure(((0,) * len(types), {}))

        outers = [*leaves, *[None] * (len(types) - len(leaves))]

        def full(*inputs: object) -> tuple[list[Array], list[Array]]:
            set_primals(inputs[: len(site.types)])
            outs, dots = run(inputs, given, False)
            pairs = zip(dots, flat.jaxpr.out_types, strict=True)
            return outs, [tangent_for(t.strong(), d) for d, t in pairs if is_inexact(t)]  # type: ignore[union-attr]  # results are arrays

        options = TraceOptions(outers, on_values=True)
        return trace_flat(full, in_tree, types, names, run.what, options)


class _JvpApplication(NamedTuple):
    """The application of a rule to leaves."""

    fun: Callable[..., object]
    site: CallSite
    out_tree: PyTreeDef
    out_types: tuple[Type, ...]

    @property
    def what(self) -> str:
        return f"the jvp rule of {self.site.label}"

    def inputs(self, given: Sequence[bool]) -> tuple[list[Type], list[str]]:
        """Return the types and the names of the primals and the given tangents."""
        site = self.site
        pairs = list(zip(site.types, site.names, given, strict=True))
        dots = [(tangent_type(t), f"the tangent of {name}") for t, name, has in pairs if has]
        types = [*site.types, *[t for t, _ in dots]]
        return types, [*site.names, *[name for _, name in dots]]

    def __call__(
        self, leaves: Sequence[object], given: Sequence[bool], symbolic: bool
    ) -> tuple[list[Array], list[Array | None]]:
        """Return the results, and their tangents; None is zero."""
        site = self.site
        rest = cast("Iterator[Array]", iter(leaves[len(site.types) :]))
        tangents: list[object] = []
        for type_, has in zip(site.types, given, strict=True):
            if has:
                tangents.append(tangent_for(type_, next(rest)))
            else:
                tangents.append(symbolic_zero(type_) if symbolic else tangent_for(type_, None))
        primals = tree.unflatten(site.args_tree, leaves[: len(site.types)])
        result = self.fun(*site.fixed, primals, tree.unflatten(site.args_tree, tangents))
        return self.checked(result)

    def checked(self, result: object) -> tuple[list[Array], list[Array | None]]:
        """Check and return both parts of the rule's result. Raises IllTyped."""
        out, tangents = check_pair(result, self.what, "(result, tangent)")
        outs, out_tree = tree.flatten(out)
        check_same_tree(out_tree, self.out_tree, f"the result of {self.what}")
        names = result_names(f"the result of {self.what}", self.out_tree)
        made = [
            cast_result(o, t, name) for o, t, name in zip(outs, self.out_types, names, strict=True)
        ]
        names = result_names(f"the tangent returned by {self.what}", self.out_tree)
        leaves, dots_tree = tree.flatten(tangents)
        if any(isinstance(x, SymbolicZero) for x in leaves) and dots_tree == self.out_tree:
            triples = zip(leaves, self.out_types, names, strict=True)
            return made, [self._dot(x, t, name) for x, t, name in triples]
        what = f"the tangents returned by {self.what}"
        dots = checked_cotangents(tangents, self.out_tree, self.out_types, what, names)
        pairs = zip(dots, self.out_types, strict=True)
        return made, [d if is_inexact(t) else None for d, t in pairs]

    def _dot(self, x: object, type_: Type, name: str) -> Array | None:
        if not isinstance(x, SymbolicZero):
            (dot,) = checked_cotangents(x, tree.structure(0), [type_], name, [name])
            return dot if is_inexact(type_) else None
        wanted = symbolic_zero(type_)
        if x.type.strong() is not wanted.type:
            raise IllTyped(f"{name} has the wrong type", str(wanted.type), str(x.type))
        return None


@dataclass(frozen=True, eq=False, repr=False)
class SymbolicZerosJvp(DeferredRule, ZerosJvp):
    """A forward rule with symbolic zeros."""

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        run = _JvpApplication(self.fun, self.site, self.out_tree, self.out_types)
        types, names = run.inputs(given)
        nonzero: list[bool] = []

        def sparse(*leaves: object) -> tuple[list[Array], list[Array]]:
            outs, dots = run(leaves, given, True)
            nonzero[:] = [d is not None for d in dots]
            return outs, [d for d in dots if d is not None]

        with outside_rules():
            jaxpr = self.traced(sparse, types, names, run.what)
        return SparseJvp(jaxpr, tuple(nonzero))
