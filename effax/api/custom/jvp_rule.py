"""Rules for forward derivatives: traced, and checked against the function's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from effax import tree
from effax.api.custom.rule_tracing import without_frames
from effax.api.custom.site import Deferred, Site, check_pair, fitted
from effax.api.custom.zeros import SymbolicZero, symbolic_zero
from effax.api.derivatives import checked_cotangents, tangent_for
from effax.arrays.binding import Operand
from effax.arrays.device_array import Array
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
from effax.tree import PyTree, PyTreeDef


class JvpRule(NamedTuple):
    """The user's rule, and whether it looks at zeros."""

    fun: Callable[..., object]
    symbolic_zeros: bool

    def traced(
        self,
        site: Site,
        flat: FlatFunction,
        leaves: Sequence[Operand],
        begin: Callable[[Sequence[object]], None],
    ) -> FlatFunction:
        """The rule over primals, then tangents of what has some, to results and tangents.

        Python may ask for the values of primals where those of ``leaves`` are known. ``begin`` is
        told what the primals are in the rule.
        """
        run = _Run(self.fun, site, flat.out_tree, flat.jaxpr.out_types)
        given = tuple(map(is_inexact, site.types))
        types, names = run.inputs(given)
        in_tree = tree.structure(((0,) * len(types), {}))

        outers = [*leaves, *[None] * (len(types) - len(leaves))]

        def full(*held: PyTree) -> tuple[list[Array], list[Array]]:
            begin(held[: len(site.types)])
            outs, dots = run(held, given, False)
            pairs = zip(dots, flat.jaxpr.out_types, strict=True)
            return outs, [tangent_for(t.strong(), d) for d, t in pairs if is_inexact(t)]  # type: ignore[union-attr]  # results are arrays

        options = TraceOptions(outers, on_values=True)
        return trace_flat(full, in_tree, types, names, run.what, options)


class _Run(NamedTuple):
    """One application of a rule to leaves."""

    fun: Callable[..., object]
    site: Site
    out_tree: PyTreeDef
    out_types: tuple[Type, ...]

    @property
    def what(self) -> str:
        return f"the jvp rule of {self.site.label}"

    def inputs(self, given: Sequence[bool]) -> tuple[list[Type], list[str]]:
        """The types of primals and given tangents, and what they are called."""
        site = self.site
        pairs = list(zip(site.types, site.names, given, strict=True))
        dots = [(tangent_type(t), f"the tangent of {name}") for t, name, has in pairs if has]
        types = [*site.types, *[t for t, _ in dots]]
        return types, [*site.names, *[name for _, name in dots]]

    def __call__(
        self, leaves: Sequence[PyTree], given: Sequence[bool], symbolic: bool
    ) -> tuple[list[Array], list[Array | None]]:
        """The results, and their tangents; None is zero."""
        site = self.site
        rest = iter(leaves[len(site.types) :])
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
        """Both parts of what the rule gives. Raises IllTyped where they do not fit."""
        out, tangents = check_pair(result, self.what, "(result, tangent)")
        outs, out_tree = tree.flatten(out)
        check_same_tree(out_tree, self.out_tree, f"the result of {self.what}")
        names = result_names(f"the result of {self.what}", self.out_tree)
        made = [fitted(o, t, name) for o, t, name in zip(outs, self.out_types, names, strict=True)]
        names = result_names(f"the tangent given by {self.what}", self.out_tree)
        leaves, dots_tree = tree.flatten(tangents)
        if any(isinstance(x, SymbolicZero) for x in leaves) and dots_tree == self.out_tree:
            triples = zip(leaves, self.out_types, names, strict=True)
            return made, [self._dot(x, t, name) for x, t, name in triples]
        what = f"the tangents given by {self.what}"
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
class JvpOfZeros(Deferred, ZerosJvp):
    """A forward rule that looks at zeros."""

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        run = _Run(self.fun, self.site, self.out_tree, self.out_types)
        types, names = run.inputs(given)
        nonzero: list[bool] = []

        def sparse(*leaves: PyTree) -> tuple[list[Array], list[Array]]:
            outs, dots = run(leaves, given, True)
            nonzero[:] = [d is not None for d in dots]
            return outs, [d for d in dots if d is not None]

        with without_frames():
            jaxpr = self.traced(sparse, types, names, run.what)
        return SparseJvp(jaxpr, tuple(nonzero))
