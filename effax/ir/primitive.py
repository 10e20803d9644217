"""Primitives: frozen dataclasses whose fields are their parameters.

A primitive defines its typing, effects included, and its evaluation on NumPy values. Its
transformation and lowering rules are in rule sets, by family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from effax.effects import NO_EFFECTS, Accum, ArgIndex, Read, Row, Write
from effax.ir.axes import Axes, joined_axes
from effax.ir.errors import IllTyped
from effax.ir.state import cached
from effax.ir.types import Type
from effax.ir.work import NO_WORK, Work, elements, moved

if TYPE_CHECKING:
    from effax.ir.eval.spmd import Devices
    from effax.ir.syntax import Jaxpr

Value = np.ndarray
"""A run-time value: an array (never written to), or a reference's buffer (writable)."""


class Typing(NamedTuple):
    """The types of the results of an application, and its effects over argument positions."""

    outs: tuple[Type, ...]
    effects: Row[ArgIndex] = NO_EFFECTS


class Region(NamedTuple):
    """A subjaxpr of a primitive, and how an application runs it.

    Attributes:
        jaxpr: the jaxpr.
        args: binder ``i`` is bound to argument ``args[i]`` of the primitive (or a part of it).
        results: result ``j`` becomes (a part of) result ``results[j]`` of the primitive.
        carry_to: result ``j`` is bound to argument ``carry_to[j]`` when the jaxpr runs again.
        is_predicate: whether the first result decides if the regions run again; a primitive with
            such a region may not terminate.
        repeats: whether the jaxpr may run more than once in one application. If not, its results
            are those of one run; if so, one that is not a carry is stacked, with a leading axis of
            the trip count, which may be 1.
        parts: binders that are bound to another part of their argument in every run.
        trip_count: how often the jaxpr runs in one application, if it is selected; None if values
            decide it.
        name: the name of the region among those of the primitive, such as ``body``.
        reverse: whether the first run takes the last element of each part, and returns the last
            element of each result that is stacked.
    """

    jaxpr: Jaxpr
    args: tuple[int, ...]
    results: tuple[int | None, ...]
    carry_to: tuple[int | None, ...]
    is_predicate: bool = False
    repeats: bool = True
    parts: frozenset[int] = frozenset()
    trip_count: int | None = None
    name: str = ""
    reverse: bool = False

    @property
    def carries(self) -> frozenset[int]:
        """The arguments that are carries."""
        return frozenset([c for c in self.carry_to if c is not None])

    @property
    def invariant(self) -> frozenset[int]:
        """The binders that have the same value in every run; contents of references may change."""
        carries = self.carries
        return frozenset(
            [i for i, a in enumerate(self.args) if a not in carries and i not in self.parts]
        )

    @property
    def effects(self) -> Row[ArgIndex]:
        """The effects of the jaxpr, over the arguments of the primitive."""
        return _over_arguments(self.jaxpr.effects, self.args)

    @property
    def reads(self) -> frozenset[int]:
        """The arguments that are references which the jaxpr reads."""
        return frozenset([e.ref for e in self.effects if isinstance(e, Read)])

    @property
    def writes(self) -> frozenset[int]:
        """The arguments that are references whose contents the jaxpr changes."""
        return frozenset([e.ref for e in self.effects if isinstance(e, Write | Accum)])


@cached(maxsize=1 << 10)
def _over_arguments(effects: Row[ArgIndex], args: tuple[int, ...]) -> Row[ArgIndex]:
    return effects.rename(lambda i: ArgIndex(args[i]))


class Owner:
    """An object of the user that programs keep alive, and the cached results for these programs.

    The caches of the process keep no program with an owner: its results are kept here, and are
    freed with it.

    Attributes:
        serial: the order in which owners were made.
        results: cached results, by function and arguments.
    """

    __slots__ = ("__weakref__", "results", "serial")

    _count: ClassVar[Iterator[int]] = count()

    def __init__(self) -> None:
        self.serial: int = next(Owner._count)
        self.results: dict[object, object] = {}


class ByReference:
    """A Python object that is a parameter of a primitive and has no text form.

    It is immutable, is compared by Python's ``==``, and prints as a name (``@label``).
    ``references(jaxpr)`` maps the distinct names in a program's text to the objects; ``parse``
    takes this map.

    Attributes:
        label: the name of the object.
    """

    __slots__ = ()

    label: str

    def owner(self) -> Owner | None:
        """Return the owner of the object, or of the ``rule`` that it wraps; None without one."""
        inner: object = getattr(self, "rule", None)
        return inner.owner() if isinstance(inner, ByReference) else None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


class Primitive(ABC):
    """The base of all primitives; subclasses are frozen dataclasses with ``slots=True``.

    Attributes:
        name: the printed name.
        has_own_rules: whether the primitive carries rules, as custom derivatives do, so that
            transformations do not look into its subjaxpr.
        commutes: whether it takes two arguments and returns the same bits when they are swapped (up
            to the payload of nan); rewrite rules then match both orders.
        by_reference: the parameters that are Python objects (``ByReference``).
        is_call: whether it only calls its one subjaxpr, so that any jaxpr may take its place, with
            other arguments and results.
        defers_effects: whether subjaxprs in no region run in transformed programs only, so that
            their effects are none of the application.
        is_view: whether its one result may share the buffer of its first operand.
        is_elementwise: whether each element of its result depends on the same element of each
            operand, or on a scalar.
        updates_first: whether its result is the first operand with a part replaced, which takes
            place in the buffer of an operand that is not used again.
        stays_apart: whether equal applications are not merged.
        may_compile: whether it runs compiled outside of ``jit`` where that is faster: a product of
            many operations, or a loop of many steps.
        flops_per_element: its arithmetic operations for each element of its results.
    """

    __slots__ = ()

    name: ClassVar[str]
    has_own_rules: ClassVar[bool] = False
    commutes: ClassVar[bool] = False
    by_reference: ClassVar[tuple[str, ...]] = ()
    is_call: ClassVar[bool] = False
    defers_effects: ClassVar[bool] = False
    is_view: ClassVar[bool] = False
    is_elementwise: ClassVar[bool] = False
    updates_first: ClassVar[bool] = False
    stays_apart: ClassVar[bool] = False
    may_compile: ClassVar[bool] = False
    flops_per_element: ClassVar[int] = 1

    @abstractmethod
    def typing(self, *ins: Type) -> Typing:
        """Return the types of the results and the effects, for arguments of these types.

        It must be a pure function of the primitive and the types, since results are cached.

        Raises:
            IllTyped: the arguments do not match.
        """

    @abstractmethod
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Return the results on NumPy values; a reference is its buffer, written in place."""

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        """Return the work of one application, apart from that of its regions.

        By default ``flops_per_element`` operations for each element of its results, on operands
        that are read once; nothing for a view, or for a primitive with subjaxprs.

        Args:
            ins: the types of the operands.
            outs: the types of the results.
        """
        if self.is_view or self.subjaxprs():
            return NO_WORK
        return moved(ins, outs, flops=elements(outs) * self.flops_per_element)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        """Return a function that evaluates it repeatedly; work common to all calls is done once."""
        return self.evaluate

    def evaluate_spmd(
        self, devices: Devices, ins: Sequence[Sequence[Value]]
    ) -> Sequence[Sequence[Value]]:
        """Return the results of every device, for the arguments of every device.

        Devices exchange values only in collectives, and in primitives whose subjaxprs have some.
        """
        return [self.evaluate(*args) for args in ins]

    def free_axes(self) -> Axes:
        """Return the named axes that must be in scope around an application."""
        inner = self.subjaxprs()
        return joined_axes([j.free_axes for j in inner]) if inner else ()

    def bound_axes(self) -> Axes:
        """Return the named axes that the primitive binds in its jaxprs."""
        return ()

    if not TYPE_CHECKING:  # type checkers report by themselves that a primitive is not callable

        def __call__(self, *args: object, **kwargs: object) -> object:
            """Raise IllTyped: a primitive is applied, not called."""
            bound = hasattr(self, "bind")
            raise IllTyped(
                f"{self.name} is a primitive, which is applied and not called",
                expected="`prim.bind(x)`, which returns a list" if bound else "`builder(prim, x)`",
                found="`prim(x)`",
                remedy="only `Elementwise` primitives are callable, with promotion and broadcasting"
                if bound
                else "functions of arrays are in `effax.numpy` and `effax.lax`",
            )

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        """Return the jaxprs among the parameters."""
        return ()

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Primitive:
        """Return the primitive with its :meth:`subjaxprs` replaced, in order."""
        if jaxprs:
            raise ValueError(f"{self.name} has no subjaxprs")
        return self

    def regions(self) -> tuple[Region, ...]:
        """Return how each subjaxpr is run, in the order of :meth:`subjaxprs`."""
        return ()

    def runs(self) -> tuple[Jaxpr, ...]:
        """Return the subjaxprs that an application runs once each, where it has no regions."""
        return ()

    def restrict(
        self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]
    ) -> Primitive | None:
        """Return the primitive with fewer arguments and results, or None if it must have all.

        Args:
            jaxprs: the new :meth:`subjaxprs`, on the binders and results that are kept.
            ins: whether each argument is kept; true for those that no region binds.
            outs: whether each result is kept.
        """
        return None

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Primitive | None:
        """Return the primitive with ``n`` more arguments, or None if it cannot have more.

        The new arguments come first, or behind the selector. Every run of every region takes them
        whole, and none is carried; they may be references. ``jaxprs`` are the new
        :meth:`subjaxprs`; each takes the new arguments as its first inputs.
        """
        return None

    def first_linear(self) -> int | None:
        """Return the position of the first of the operands in which the primitive is linear.

        For primitives that are linear by declaration in all operands from some position on,
        whatever their subjaxprs compute; None for all others.
        """
        return None

    def definition(self, *ins: Type) -> Jaxpr | None:
        """Return a program of the same meaning, on operands of these types; None if there is none.

        Rules, lowering and evaluation may follow from it.
        """
        return None

    def selector(self) -> int | None:
        """Return the position of the argument that selects which region runs, if there is one.

        Its value is the number of the region, clamped to the valid ones; false is 0, true is 1.
        """
        return None

    def has_predicate(self) -> bool:
        """Return whether a region decides about another run; an application may not terminate."""
        return any(region.is_predicate for region in self.regions())

    def may_repeat(self) -> bool:
        """Return whether a region may run more than once in an application."""
        return any(region.repeats for region in self.regions())

    def as_call(self) -> Primitive | None:
        """Return the primitive as a plain call (``is_call``), of the same arguments and results.

        A call with its own rules becomes a plain one when no later transformation uses the rules.
        None if the primitive is not a call.
        """
        return self if self.is_call else None

    def answered(self) -> Primitive:
        """Return the primitive with programs in place of rules that have one program each."""
        return self
