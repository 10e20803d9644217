"""Rules of primitives as values, and the immutable book in which passes find them.

A rule gets a builder and the arguments of one application, and builds the small program that
takes its place. A pass runs a rule once for a primitive and the types and masks of its arguments,
keeps the program as a template, and inlines it everywhere else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, NoReturn, Protocol, TypeVar, cast

from pyrsistent import PMap, pmap

from effax.ir.build import Builder
from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import Type

P = TypeVar("P", bound=Primitive)
P_contra = TypeVar("P_contra", bound=Primitive, contravariant=True)


class RuleBuilder(Builder):
    """A builder that knows the book of the pass that runs, for rules that recur into programs."""

    __slots__ = ("rules",)

    def __init__(self, rules: RuleSet, in_types: Sequence[Type] = ()) -> None:
        super().__init__(in_types)
        self.rules: RuleSet = rules


class BatchBuilder(RuleBuilder):
    """The builder of a batch rule: it knows what lanes share, and which of them run.

    Attributes:
        shared: positions of arguments that are references of the whole batch. They have no batch
            axis, whatever is done to them: what lanes add is summed, and none may write alone.
        active: one boolean a lane. Where it is false the lane is not here, and its effects must
            not happen. None: all lanes are here.
        axis: the name that the lanes have, where the application uses it: collectives along it
            are done between the lanes. None: it does not.
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
        """The mask of lanes as leading arguments of a program that takes one."""
        return () if self.mask is None else (self.mask,)


class JvpOut(NamedTuple):
    """Results and their tangents; None is a tangent of zero."""

    outs: Sequence[Atom]
    tangents: Sequence[Atom | None]


class JvpRule(Protocol[P_contra]):
    """Primal and tangent results, for at least one tangent that is not None.

    A reference's tangent is a reference, or None where nothing differentiated is in it.
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
    """An argument in which the application is linear, while it is transposed.

    ``ref`` is where its cotangent accumulates, if that is a reference: always for a wanted
    argument that is a reference itself; for an array, where the engine chose so. A rule may add
    to ``ref`` in place and give None, or give a value, which the engine adds. Where ``wanted`` is
    false nobody looks at the cotangent, and a rule may leave it out.
    """

    type: Type
    ref: Var | None
    wanted: bool = True


class TransposeRule(Protocol[P_contra]):
    """Cotangents of the arguments, from those of the results (None: zero).

    Gives one entry an argument: None for those that are not ``Linear``, for a zero, and for what
    was accumulated in place. The engine drops what nobody wants and removes the dead code.
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
    """The application on arguments of which some have a leading batch axis of length ``size``.

    At least one is batched, or a reference of the whole batch is changed, or lanes are masked, or
    the lanes' name is used. A batched reference has the axis in its cell.
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
    """An application split in a known and an unknown half.

    ``known`` maps the known arguments to (known results, residuals); ``unknown`` maps the
    residuals, then the arguments at ``unknown_args``, to the unknown results.

    Attributes:
        known_outs: one entry a result: whether the known half gives it.
        n_residuals: how many results of the known half are residuals.
        unknown_args: positions of the arguments that the unknown half takes: all unknown ones,
            and known ones that it needs as they are (references among them).
    """

    known: Jaxpr
    unknown: Jaxpr
    known_outs: tuple[bool, ...]
    n_residuals: int
    unknown_args: tuple[int, ...]


Policy = Callable[[Eqn], bool]
"""Says of an equation on known values whether partial evaluation may keep its results for the
unknown half; what may not is computed again there. A pure function."""


class PartialEvalRule(Protocol[P_contra]):
    """Splits an application of which some arguments are known and some are not.

    None: the application is unknown as a whole. The policy is for the programs that it holds.
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
    """Results, and the new contents of each argument that is a reference (None: unchanged)."""

    outs: Sequence[Atom]
    contents: Sequence[Atom | None]


class DischargeRule(Protocol[P_contra]):
    """The application on contents in the place of references.

    ``ins`` holds the contents of a reference where ``is_ref`` is true. ``outs`` holds the
    contents where a result is a reference.
    """

    def __call__(
        self, b: RuleBuilder, prim: P_contra, ins: Sequence[Atom], is_ref: Sequence[bool], /
    ) -> DischargeOut: ...


class DceOut(NamedTuple):
    """A primitive with less inside, and which arguments and results of the old one it has."""

    prim: Primitive
    ins: tuple[bool, ...]
    outs: tuple[bool, ...]


class DceRule(Protocol[P_contra]):
    """Removes dead code from a primitive that holds jaxprs.

    ``used`` marks the results that are used, ``observed`` the arguments that are references whose
    contents are read afterwards. Effects that are observed stay.
    """

    def __call__(
        self,
        rules: RuleSet,
        prim: P_contra,
        used: tuple[bool, ...],
        observed: tuple[bool, ...],
        /,
    ) -> DceOut: ...


@dataclass(frozen=True)
class Unsupported:
    """In the place of a rule: why the transformation does not apply to the primitive."""

    reason: str

    def error(self, prim: Primitive, transformation: str) -> NotApplicable:
        """The error for a use of the missing rule."""
        return NotApplicable(f"{prim.name} has no {transformation} rule: {self.reason}")


@dataclass(frozen=True)
class Indivisible:
    """In the place of a split rule: known when all arguments are, else unknown."""


@dataclass(frozen=True)
class Rules(Generic[P_contra]):
    """Every transformation of one primitive. Those without a default are required.

    ``sparse`` says that transposing the primitive touches a part of its argument's cotangent
    only, so that adding in place beats adding arrays of zeros. Where ``dce`` is None, dead code in
    the jaxprs of the primitive is removed by what ``prim.regions()`` declares.
    """

    jvp: JvpRule[P_contra] | Unsupported
    transpose: TransposeRule[P_contra] | Unsupported
    batch: BatchRule[P_contra] | Unsupported
    split: PartialEvalRule[P_contra] | Indivisible
    discharge: DischargeRule[P_contra] | Unsupported
    sparse: bool = False
    dce: DceRule[P_contra] | None = None


class HasRules(Primitive):
    """A primitive that brings its own rules, wherever it is declared; a book may have others."""

    __slots__ = ()

    @abstractmethod
    def rules(self) -> Rules[NoReturn]:
        """How every transformation treats the primitive: rules of its class, or of a base of it."""


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules by primitive; a value that passes take as an argument."""

    rules: PMap[type[Primitive], Rules[Primitive]]

    def find(self, prim: Primitive) -> Rules[Primitive] | None:
        """Return the rules of a primitive: the set's, else its own; None where it has neither."""
        found = self.rules.get(type(prim))
        if found is None and isinstance(prim, HasRules):
            return cast("Rules[Primitive]", prim.rules())
        return found

    def of(self, prim: Primitive) -> Rules[Primitive]:
        """Return the rules of a primitive as :meth:`find`. Raises NotApplicable for none."""
        found = self.find(prim)
        if found is None:
            raise NotApplicable(
                f"the rule book has no rules for {prim.name}",
                remedy="extend the book: `book.extend(Prim, Rules(...))`, or make it a `HasRules`",
            )
        return found

    def extend(self, prim: type[P], rules: Rules[P]) -> RuleSet:
        """A book with the rules of one more primitive."""
        return RuleSet(self.rules.set(prim, rules))  # type: ignore[arg-type]  # looked up by type(prim)

    def union(self, other: RuleSet) -> RuleSet:
        """A book with the rules of both; those of ``other`` win."""
        return RuleSet(self.rules.update(other.rules))


NO_RULES = RuleSet(pmap())
