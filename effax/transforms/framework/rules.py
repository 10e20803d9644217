"""Rules of primitives as values, and the immutable rule set in which passes look them up.

A rule takes a builder and the operands of one equation, and builds the small program that replaces
it. A pass runs a rule once for each primitive, operand types and masks, caches the program as a
template, and inlines it everywhere else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, NoReturn, Protocol, TypeVar, cast

from pyrsistent import PMap, pmap

from effax.ir.analysis.variance import Names
from effax.ir.axes import Axes
from effax.ir.build import Builder
from effax.ir.errors import NotApplicable
from effax.ir.families import FamilyTable
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass

P = TypeVar("P", bound=Primitive)
P_contra = TypeVar("P_contra", bound=Primitive, contravariant=True)


class RuleBuilder(Builder):
    """A builder with the rule set of the running pass, for rules that recur into subjaxprs."""

    __slots__ = ("rules",)

    def __init__(self, rules: RuleSet, in_types: Sequence[Type] = ()) -> None:
        super().__init__(in_types)
        self.rules: RuleSet = rules


class BatchBuilder(RuleBuilder):
    """The builder of a batch rule.

    Attributes:
        unbatched_refs: positions of operands that are references without a batch axis, whatever
            is written to them: accumulations are summed over the batch elements, and a write must
            be the same in all of them.
        mask: one boolean a batch element: where it is false, the element is inactive, and its
            effects must not happen. None: all elements are active.
        axis: the name of the batch axis, if the equation uses it in a collective; else None.
    """

    __slots__ = ("axis", "mask", "unbatched_refs")

    def __init__(
        self, rules: RuleSet, unbatched_refs: frozenset[int] = frozenset(), axis: str | None = None
    ) -> None:
        super().__init__(rules)
        self.unbatched_refs: frozenset[int] = unbatched_refs
        self.axis: str | None = axis
        self.mask: Var | None = None

    def mask_operands(self) -> tuple[Var, ...]:
        """Return the mask as leading operands of a program that takes it; none without a mask."""
        return () if self.mask is None else (self.mask,)


class JvpOut(NamedTuple):
    """Results and their tangents; None is a tangent of zero."""

    outs: Sequence[Atom]
    tangents: Sequence[Atom | None]


class JvpRule(Protocol[P_contra]):
    """Return primal and tangent results; at least one tangent operand is not None.

    The tangent of a reference is a reference, or None if its contents are not differentiated.
    """

    def __call__(
        self,
        b: RuleBuilder,
        prim: P_contra,
        primals: Sequence[Atom],
        tangents: Sequence[Atom | None],
        /,
    ) -> JvpOut: ...


class Linear(NamedTuple):
    """A linear operand in a transpose rule.

    Attributes:
        type: its type.
        ref: the reference in which its cotangent accumulates. A wanted operand that is a reference
            has one, and an array where the engine chose so. A rule adds to ``ref`` in place and
            returns None, or returns a value, which the engine adds.
        wanted: whether the cotangent is used; if not, a rule may return None.
    """

    type: Type
    ref: Var | None
    wanted: bool = True


class TransposeRule(Protocol[P_contra]):
    """Return the cotangents of the operands, from those of the results (None: zero).

    One entry an operand: None if it is not ``Linear``, for a zero, and for a cotangent that was
    accumulated in place. The engine removes unused cotangents and dead code.
    """

    def __call__(
        self,
        b: RuleBuilder,
        prim: P_contra,
        ins: Sequence[Atom | Linear],
        cts: Sequence[Atom | None],
        /,
    ) -> Sequence[Atom | None]: ...


class BatchOut(NamedTuple):
    """Results and whether each has a batch axis, which is its leading one."""

    outs: Sequence[Atom]
    batched: Sequence[bool]


class BatchRule(Protocol[P_contra]):
    """Return the results of an equation on operands with a leading batch axis of length ``size``.

    At least one operand is batched, or an unbatched reference is changed, or there is a mask, or
    the axis name is used. A batched reference has the batch axis in its cell.
    """

    def __call__(
        self,
        b: BatchBuilder,
        prim: P_contra,
        ins: Sequence[Atom],
        batched: Sequence[bool],
        size: int,
        /,
    ) -> BatchOut: ...


class PartialEvalOut(NamedTuple):
    """One equation, split by partial evaluation.

    Attributes:
        known: maps the known operands to (known results, residuals).
        unknown: maps the residuals, then the operands at ``unknown_args``, to the other results.
        known_outs: one entry a result: whether ``known`` returns it.
        n_residuals: how many results of ``known`` are residuals.
        unknown_args: positions of the operands that ``unknown`` takes: all unknown ones, and known
            ones that it uses directly, such as references.
    """

    known: Jaxpr
    unknown: Jaxpr
    known_outs: tuple[bool, ...]
    n_residuals: int
    unknown_args: tuple[int, ...]


Policy = Callable[[Eqn], bool]
"""Return whether the results of a known equation may be residuals; if not, the unknown jaxpr
recomputes them. A pure function."""


class PartialEvalRule(Protocol[P_contra]):
    """Split an equation of which some operands are known; None: all of it is unknown.

    The policy applies to the subjaxprs.
    """

    def __call__(
        self,
        rules: RuleSet,
        prim: P_contra,
        in_types: tuple[Type, ...],
        known: tuple[bool, ...],
        policy: Policy | None,
        /,
    ) -> PartialEvalOut | None: ...


class DischargeOut(NamedTuple):
    """Results, and the new contents of each operand that is a reference (None: unchanged)."""

    outs: Sequence[Atom]
    contents: Sequence[Atom | None]


class DischargeRule(Protocol[P_contra]):
    """Return the results of an equation on the contents of its references.

    ``ins[i]`` is the contents of a reference where ``is_ref[i]`` is true; a result that is a
    reference is returned as its contents.
    """

    def __call__(
        self, b: RuleBuilder, prim: P_contra, ins: Sequence[Atom], is_ref: Sequence[bool], /
    ) -> DischargeOut: ...


class DceOut(NamedTuple):
    """A reduced primitive, and which operands and results of the original it keeps."""

    prim: Primitive
    ins: tuple[bool, ...]
    outs: tuple[bool, ...]


class DceRule(Protocol[P_contra]):
    """Remove dead code from a primitive with subjaxprs; keep observed effects.

    ``used`` marks the results that are used, ``observed`` the operands that are references whose
    contents are read afterwards.
    """

    def __call__(
        self,
        rules: RuleSet,
        prim: P_contra,
        used: tuple[bool, ...],
        observed: tuple[bool, ...],
        /,
    ) -> DceOut: ...


class UnrollRule(Protocol):
    """Return the program of all iterations of a loop, on its operands; None if not unrolled.

    The number of iterations may depend on ``ins`` that are literals. ``growth`` is the number of
    equations by which the program may grow.
    """

    def __call__(
        self, rules: RuleSet, eqn: Eqn, ins: Sequence[Atom], growth: int, /
    ) -> Jaxpr | None: ...


class PvaryOut(NamedTuple):
    """A primitive with explicit variance, and the axes along which each of its operands varies."""

    prim: Primitive
    ins: tuple[Names, ...]


class PvaryRule(Protocol[P_contra]):
    """Insert ``pvary`` in the regions and rules of a primitive.

    ``ins`` and ``outs`` are the axes along which operands and results vary, ``axes`` those of the
    mesh, and ``fixed`` the positions of invariant references.
    """

    def __call__(
        self,
        rules: RuleSet,
        prim: P_contra,
        ins: tuple[Names, ...],
        outs: tuple[Names, ...],
        axes: Axes,
        fixed: frozenset[int],
        /,
    ) -> PvaryOut: ...


@dataclass(frozen=True)
class Unsupported:
    """Replaces a rule: the reason why the transformation does not apply to the primitive."""

    reason: str

    def error(self, prim: Primitive, transformation: str) -> NotApplicable:
        """Return the error for a use of the missing rule."""
        return NotApplicable(f"{prim.name} has no {transformation} rule: {self.reason}")


@dataclass(frozen=True)
class Indivisible:
    """Replaces a partial evaluation rule: known if all operands are known, else unknown."""


@dataclass(frozen=True)
class Rules(Generic[P_contra]):
    """The rules of one primitive, one a transformation.

    Attributes:
        sparse: whether transposition touches only a part of the operand's cotangent, so that
            accumulation in place beats the addition of arrays of zeros.
        dce: None: dead code in subjaxprs is removed by the declaration of ``prim.regions()``.
        unroll: for loops; None: the primitive is not unrolled.
        pvary: None: ``pvary`` is inserted in the regions.
        takes_mask: whether the batch rule takes the mask, apart from effects and loops.
        tests_nan: whether the result on two equal operands is True at nan and False at numbers.
    """

    jvp: JvpRule[P_contra] | Unsupported
    transpose: TransposeRule[P_contra] | Unsupported
    batch: BatchRule[P_contra] | Unsupported
    split: PartialEvalRule[P_contra] | Indivisible
    discharge: DischargeRule[P_contra] | Unsupported
    sparse: bool = False
    dce: DceRule[P_contra] | None = None
    unroll: UnrollRule | None = None
    pvary: PvaryRule[P_contra] | None = None
    takes_mask: Callable[[P_contra], bool] | None = None
    tests_nan: bool = False


class HasRules(Primitive):
    """A primitive that declares its own rules; those of a rule set take precedence."""

    __slots__ = ()

    @abstractmethod
    def rules(self) -> Rules[NoReturn]:
        """Return the rules of the primitive: those of its class, or of a base class."""


@dataclass(frozen=True, eq=False)
class RuleSet:
    """The immutable map from classes of primitives to their rules, an argument of every pass."""

    rules: PMap[type[Primitive], Rules[Primitive]] | FamilyTable[Rules[Primitive]]

    def find(self, prim: Primitive) -> Rules[Primitive] | None:
        """Return the rules of a primitive: the set's, else its own; None for neither."""
        found = self.rules.get(type(prim))
        if found is None and isinstance(prim, HasRules):
            return cast("Rules[Primitive]", prim.rules())
        return found

    def of(self, prim: Primitive) -> Rules[Primitive]:
        """Return the rules of a primitive as :meth:`find`. Raises NotApplicable for none."""
        found = self.find(prim)
        if found is None:
            raise NotApplicable(
                f"the rule set has no rules for {prim.name}",
                remedy="extend the set: `rules.extend(Prim, Rules(...))`, or subclass `HasRules`",
            )
        return found

    def extend(self, prim: type[P], rules: Rules[P]) -> RuleSet:
        """Return a rule set with the rules of one more primitive."""
        return RuleSet(self.rules.set(prim, rules))  # type: ignore[arg-type]  # looked up by type(prim)

    def union(self, other: RuleSet) -> RuleSet:
        """Return a rule set with the rules of both; those of ``other`` take precedence."""
        return RuleSet(self.rules.update(other.rules))


NO_RULES = RuleSet(pmap())
