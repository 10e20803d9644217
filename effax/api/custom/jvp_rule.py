"""Custom rules for forward derivatives: traced when asked, and checked against the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from effax import tree
from effax.api.custom.results import cast_result, check_pair
from effax.api.custom.zeros import SymbolicZero, symbolic_zero
from effax.arrays.array import Array
from effax.arrays.ref_functions import new_ref
from effax.arrays.rules.call_rules import CallRule, CallRules
from effax.arrays.tangents import checked_cotangents, tangent_for, zero_of
from effax.arrays.tracing import check_same_tree, result_names
from effax.ir.errors import IllTyped
from effax.ir.prims import ForwardRule, SparseJvp
from effax.ir.types import RefType, Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.rules.custom.dense import on_given_tangents


class UserJvpRule(NamedTuple):
    """The user's rule, and whether it takes symbolic zeros."""

    fun: Callable[..., object]
    symbolic_zeros: bool


@dataclass(frozen=True, eq=False, repr=False)
class CallForward(CallRule, ForwardRule):
    """The forward rule of a call."""

    call: CallRules
    user: UserJvpRule
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        return self.call.once((self, given), lambda: self._answer(given))

    def _answer(self, given: tuple[bool, ...]) -> SparseJvp:
        if self.user.symbolic_zeros:
            return self._traced(given)
        # One trace serves for all zeros, which are arrays; a reference has a tangent or has none.
        pairs = zip(self.call.site.types, given, strict=True)
        wanted = tuple([has if isinstance(t, RefType) else is_inexact(t) for t, has in pairs])
        dense = self.call.once((self, "dense", wanted), lambda: self._traced(wanted))
        return on_given_tangents(dense, self.call.site.types, wanted, given)

    def _traced(self, given: tuple[bool, ...]) -> SparseJvp:
        call, site = self.call, self.call.site
        run = _Application(self.user, call)
        types, names = run.inputs(given)
        nonzero: list[bool] = []

        def flat(*leaves: object) -> tuple[list[Array], list[Array]]:
            outs, dots = run(leaves, given)
            nonzero[:] = [d is not None for d in dots]
            return outs, [d for d in dots if d is not None]

        n = len(types) - len(site.types)
        jaxpr = call.traced(flat, types, names, run.what, [*call.known_arguments(), *[None] * n])
        return SparseJvp(jaxpr, tuple(nonzero))


class _Application(NamedTuple):
    """The application of a rule to leaves."""

    user: UserJvpRule
    call: CallRules

    @property
    def what(self) -> str:
        return f"the jvp rule of {self.call.site.label}"

    def inputs(self, given: Sequence[bool]) -> tuple[list[Type], list[str]]:
        """Return the types and the names of the primals and the given tangents."""
        site = self.call.site
        pairs = list(zip(site.types, site.names, given, strict=True))
        dots = [(tangent_type(t), f"the tangent of {name}") for t, name, has in pairs if has]
        types = [*site.types, *[t for t, _ in dots]]
        return types, [*site.names, *[name for _, name in dots]]

    def __call__(
        self, leaves: Sequence[object], given: Sequence[bool]
    ) -> tuple[list[Array], list[Array | None]]:
        """Return the results, and their tangents; None is zero."""
        site = self.call.site
        rest = iter(leaves[len(site.types) :])
        tangents: list[object] = []
        for type_, has in zip(site.types, given, strict=True):
            if not has:
                tangents.append(self._zero(type_))
            elif isinstance(type_, RefType):
                tangents.append(next(rest))
            else:
                tangents.append(tangent_for(type_, cast(Array, next(rest))))
        primals = tree.unflatten(site.args_tree, leaves[: len(site.types)])
        result = self.user.fun(*site.fixed, primals, tree.unflatten(site.args_tree, tangents))
        return self.checked(result)

    def _zero(self, type_: Type) -> object:
        if self.user.symbolic_zeros:
            return symbolic_zero(type_)
        if isinstance(type_, RefType) and is_inexact(type_):
            return new_ref(zero_of(type_))
        return tangent_for(type_, None)

    def checked(self, result: object) -> tuple[list[Array], list[Array | None]]:
        """Check and return both parts of the rule's result. Raises IllTyped."""
        out_tree, out_types = self.call.out_tree, self.call.out_types
        out, tangents = check_pair(result, self.what, "(result, tangent)")
        outs, found = tree.flatten(out)
        check_same_tree(found, out_tree, f"the result of {self.what}")
        names = result_names(f"the result of {self.what}", out_tree)
        made = [cast_result(o, t, name) for o, t, name in zip(outs, out_types, names, strict=True)]
        names = result_names(f"the tangent returned by {self.what}", out_tree)
        leaves, dots_tree = tree.flatten(tangents)
        if any(isinstance(x, SymbolicZero) for x in leaves) and dots_tree == out_tree:
            triples = zip(leaves, out_types, names, strict=True)
            return made, [self._dot(x, t, name) for x, t, name in triples]
        what = f"the tangents returned by {self.what}"
        dots = checked_cotangents(tangents, out_tree, out_types, what, names)
        pairs = zip(dots, out_types, strict=True)
        return made, [d if is_inexact(t) else None for d, t in pairs]

    def _dot(self, x: object, type_: Type, name: str) -> Array | None:
        if not isinstance(x, SymbolicZero):
            (dot,) = checked_cotangents(x, tree.structure(0), [type_], name, [name])
            return dot if is_inexact(type_) else None
        wanted = symbolic_zero(type_)
        if x.type.strong() is not wanted.type:
            raise IllTyped(f"{name} has the wrong type", str(wanted.type), str(x.type))
        return None
