"""The residuals of a derivative, and their origins.

The derivative of::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = name[label=s] b; d:f32[] = sin c in (d,) }

needs ``cos a`` and ``cos c``, outputs of equations. Under a ``remat`` policy that saves the value
named ``s``, it needs ``c``, which is named, and ``a``, an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from effax.ir.primitive import Primitive
from effax.ir.prims import Concatenate, ConvertElementType, Name, Reshape
from effax.ir.prims.scan import stacked_type
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import as_result
from effax.transforms.linearize import linearize
from effax.transforms.partial_eval.partial_eval import FromInput


@dataclass(frozen=True, slots=True)
class FromArgument:
    """A residual that is an input; ``index`` counts inputs after constants."""

    name: str
    index: int

    def __str__(self) -> str:
        if not self.name:
            return f"from the argument at flattened index {self.index}"
        return f"from the argument {self.name}"


@dataclass(frozen=True, slots=True)
class FromConstant:
    """A residual that the function closes over."""

    def __str__(self) -> str:
        return "from a constant"


@dataclass(frozen=True, slots=True)
class Named:
    """A named residual (``checkpoint_name``)."""

    name: str
    source: Source | SavedSource | None

    def __str__(self) -> str:
        return f"named '{self.name}' from {_place(self.source)}"


@dataclass(frozen=True, slots=True)
class OutputOf:
    """A result of an equation of this primitive."""

    primitive: str
    source: Source | SavedSource | None

    def __str__(self) -> str:
        return f"output of {self.primitive} from {_place(self.source)}"


Origin = FromArgument | FromConstant | Named | OutputOf


def _place(source: Source | SavedSource | None) -> str:
    return "an unknown place" if source is None else str(source)


class SavedResidual(NamedTuple):
    """The type and origin of a residual; ``str`` of the origin is a phrase."""

    type: Type
    origin: Origin

    def __str__(self) -> str:
        return f"{self.type} {self.origin}"


@as_result
def saved(
    jaxpr: Jaxpr, tangents: Sequence[bool], rules: RuleSet | None = None
) -> tuple[SavedResidual, ...]:
    """Return the residuals of ``linearize`` of ``jaxpr``, each value once.

    Residuals that a call packs into one array are listed separately.

    Raises:   TransformError: as for ``linearize``.

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether it has a tangent.
        rules: the rules; the registered ones where it is None.
    """
    done = linearize.uncached(jaxpr, tuple(tangents), False, rules_or_default(rules))
    outer = _Scope(done.primal, None, None)
    found: list[SavedResidual] = []
    for residual in done.residuals:
        if isinstance(residual, FromInput):
            found.append(outer.input(residual.index))
        else:
            found += outer.traced(done.primal.outs[residual.index])
    return tuple(found)


_SAME_VALUE: Final = (Reshape, ConvertElementType)
"""The operations that pack residuals, besides ``Concatenate``; their equations have no source."""


def _made_inside(prim: Primitive, position: int) -> Atom | None:
    """Return the result of the only region that is result ``position``; None if it is a carry."""
    if prim.has_own_rules or len(prim.regions()) != 1:
        return None
    (region,) = prim.regions()
    for a, result, carry in zip(region.jaxpr.outs, region.results, region.carry_to, strict=True):
        if result == position:
            return a if carry is None else None
    return None


class _Scope:
    """A program in which values are traced back: the outermost, or a region of an equation.

    Attributes:
        stack: the lengths of the loops around it, each of which stacks its results.
    """

    def __init__(
        self, jaxpr: Jaxpr, outer: _Scope | None, call: Eqn | None, stack: tuple[int, ...] = ()
    ) -> None:
        self.jaxpr = jaxpr
        self.outer = outer
        self.call = call
        self.stack = stack
        self.made: dict[int, Eqn] = {}
        self.named: dict[int, Eqn] = {}
        for eqn in jaxpr.eqns:
            self.made.update((v.id, eqn) for v in eqn.outs)
            if isinstance(eqn.prim, Name):
                self.named.update((a.id, eqn) for a in eqn.ins if isinstance(a, Var))

    def input(self, index: int) -> SavedResidual:
        """Return an input of the outermost program as a residual."""
        jaxpr = self.jaxpr
        type_ = jaxpr.binders[index].type
        if index < jaxpr.n_consts:
            return SavedResidual(type_, FromConstant())
        name = jaxpr.names[index] if index < len(jaxpr.names) else ""
        return SavedResidual(type_, FromArgument(name, index - jaxpr.n_consts))

    def traced(self, atom: Atom) -> list[SavedResidual]:
        """Return the residuals in a value: itself, or the values packed in it."""
        found: list[SavedResidual] = []
        waiting: list[tuple[_Scope, Atom]] = [(self, atom)]
        while waiting:
            scope, at = waiting.pop()
            if not isinstance(at, Lit):
                residual = scope._step(at, waiting)
                found += [] if residual is None else [residual]
        return found

    def _step(self, v: Var, waiting: list[tuple[_Scope, Atom]]) -> SavedResidual | None:
        """Return the origin of a variable, or None after adding its operands to ``waiting``."""
        eqn = self.made.get(v.id)
        if eqn is None:
            index = [w.id for w in self.jaxpr.binders].index(v.id)
            if self.outer is None or self.call is None:
                return self.input(index)
            (region,) = self.call.prim.regions()
            if region.args[index] in region.carry_to:
                return self._residual(v, OutputOf(self.call.prim.name, self.call.source))
            waiting.append((self.outer, self.call.ins[region.args[index]]))
            return None
        prim = eqn.prim
        position = eqn.outs.index(v)
        made = _made_inside(prim, position)
        if made is not None:
            # A loop stacks what each of its iterations returns.
            stacked = v.type.shape[: len(v.type.shape) - len(made.type.shape)]
            inside = _Scope(prim.regions()[0].jaxpr, self, eqn, (*self.stack, *stacked))
            waiting.append((inside, made))
            return None
        if eqn.source is None and isinstance(prim, (*_SAME_VALUE, Concatenate)):
            waiting += [(self, a) for a in reversed(eqn.ins)]
            return None
        named = eqn if isinstance(prim, Name) else self.named.get(v.id)
        if named is not None and isinstance(named.prim, Name):
            return self._residual(v, Named(named.prim.label, named.source))
        return self._residual(v, OutputOf(prim.name, eqn.source))

    def _residual(self, v: Var, origin: Origin) -> SavedResidual:
        type_ = v.type
        for length in reversed(self.stack):
            type_ = stacked_type(type_, length)
        return SavedResidual(type_, origin)
