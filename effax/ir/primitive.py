"""What a primitive is: a frozen dataclass whose fields are its parameters.

A primitive states its typing (which gives its effects too) and what it means on NumPy values.
How it is transformed and lowered is told in rule books, by family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from effax.effects import NO_EFFECTS, ArgIndex, Row
from effax.ir.axes import Axes, joined_axes
from effax.ir.errors import IllTyped
from effax.ir.types import Type

if TYPE_CHECKING:
    from effax.ir.eval.spmd import Devices
    from effax.ir.syntax import Jaxpr

Value = np.ndarray
"""A run-time value: an array (never written to), or a reference's buffer (writable)."""


class Typing(NamedTuple):
    """What an application yields: types of the results, effects over argument positions."""

    outs: tuple[Type, ...]
    effects: Row[ArgIndex] = NO_EFFECTS


class Region(NamedTuple):
    """How a primitive runs one of its jaxprs.

    Attributes:
        jaxpr: the jaxpr.
        args: binder ``i`` is bound to argument ``args[i]`` of the primitive (or a part of it).
        results: result ``j`` becomes (a part of) result ``results[j]`` of the primitive.
        carry_to: result ``j`` is bound to argument ``carry_to[j]`` when the jaxpr runs again.
        is_predicate: whether the first result decides if the regions run again; a primitive with
            such a region may not terminate.
        repeats: whether the jaxpr may run more than once in one application.
        parts: binders that are bound to another part of their argument in every run.
    """

    jaxpr: Jaxpr
    args: tuple[int, ...]
    results: tuple[int | None, ...]
    carry_to: tuple[int | None, ...]
    is_predicate: bool = False
    repeats: bool = True
    parts: frozenset[int] = frozenset()


class ByReference:
    """An object of Python that a primitive has as a parameter, and that has no text of its own.

    It is compared as Python compares it, and prints as a name (``@label``); a program's names are
    told apart by ``references``, with which ``parse`` finds the objects again.

    Attributes:
        label: what the object is called.
    """

    __slots__ = ()

    label: str


class Primitive(ABC):
    """The base of all primitives; subclasses are frozen dataclasses with ``slots=True``.

    ``name`` is what prints. ``typing`` raises ``IllTyped`` on ill-typed arguments, and is a pure
    function of the primitive and the types, so that its result may be kept. ``evaluate`` gets
    NumPy arrays; a reference is its buffer, which it writes in place. ``by_reference`` names the
    parameters that are objects of Python (``ByReference``). ``has_own_rules`` says that rules which
    the primitive holds decide what becomes of its results, whatever its program does. ``is_call``
    says that it is a call of its one subjaxpr and nothing else: any jaxpr may take its place, with
    its own arguments and results. ``commutes``
    says that it takes two arguments and gives the same, bit by bit, when they change places (which
    nan it gives does not count): rewrite rules then match them in both orders.
    """

    __slots__ = ()

    name: ClassVar[str]
    has_own_rules: ClassVar[bool] = False
    commutes: ClassVar[bool] = False
    by_reference: ClassVar[tuple[str, ...]] = ()
    is_call: ClassVar[bool] = False

    @abstractmethod
    def typing(self, *ins: Type) -> Typing:
        """Return the types of the results and the effects, for arguments of these types."""

    @abstractmethod
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """What the primitive means, on NumPy."""

    def prepare(self) -> Callable[..., Sequence[Value]]:
        """What evaluates it many times: :meth:`evaluate`, with what can be prepared done."""
        return self.evaluate

    def evaluate_spmd(
        self, devices: Devices, ins: Sequence[Sequence[Value]]
    ) -> Sequence[Sequence[Value]]:
        """What it means on all devices at once: from each one's arguments to each one's results.

        Devices exchange nothing here but in collectives and in programs that hold some.
        """
        return [self.evaluate(*args) for args in ins]

    def free_axes(self) -> Axes:
        """Return the named axes that something around an application must bind."""
        held = self.subjaxprs()
        return joined_axes([j.free_axes for j in held]) if held else ()

    def bound_axes(self) -> Axes:
        """Return the named axes that the primitive binds in its jaxprs."""
        return ()

    if not TYPE_CHECKING:  # type checkers say by themselves that a primitive is not callable

        def __call__(self, *args: object, **kwargs: object) -> object:
            """Return a primitive is applied, not called. Raises IllTyped."""
            bound = hasattr(self, "bind")
            raise IllTyped(
                f"{self.name} is a primitive, which is applied and not called",
                expected="`prim.bind(x)`, which gives a list" if bound else "`builder(prim, x)`",
                found="`prim(x)`",
                remedy="a call promotes and broadcasts, which is for `Elementwise` ones alone"
                if bound
                else "functions of arrays are in `effax.numpy` and `effax.lax`",
            )

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        """Return the programs among the parameters."""
        return ()

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Primitive:
        """Return the same primitive with other programs in the place of :meth:`subjaxprs`."""
        if jaxprs:
            raise ValueError(f"{self.name} holds no programs")
        return self

    def regions(self) -> tuple[Region, ...]:
        """How the programs among the parameters are run, in the order of :meth:`subjaxprs`."""
        return ()

    def restrict(
        self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]
    ) -> Primitive | None:
        """Return the primitive with fewer arguments and results; None where it cannot have fewer.

        Args:
            jaxprs: what takes the place of :meth:`subjaxprs`, on what is left of their binders
                and results.
            ins: for each argument, whether it is left; every argument is that no region binds.
            outs: for each result, whether it is left.
        """
        return None

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Primitive | None:
        """Return the primitive with ``n`` more arguments, or None where it cannot have more.

        The new arguments come first, or behind the selector. Every run of every region is given
        them, whole, and none is carried; they may be references. ``jaxprs`` take the place of
        :meth:`subjaxprs`, and each takes the new arguments as its first inputs.
        """
        return None

    def selector(self) -> int | None:
        """Return the position of the argument that selects which region runs, if there is one.

        Its value is the region's number, clamped to those that there are; false is 0, true 1.
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

        That is what is left of a call with rules of its own once no transformation asks for them
        any more. None where the primitive is no call.
        """
        return self if self.is_call else None
