"""Base classes of user-defined primitives: every rule is an abstract method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind, value_of, wrap
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.extend import rules
from effax.extend.guard import check_parameters, results_of, typed
from effax.extend.parameters import Exact, normalised
from effax.extend.rules import Linear
from effax.ir.build import typing_of
from effax.ir.errors import BadRule
from effax.ir.primitive import Primitive
from effax.ir.source import caller, defined_at
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType
from effax.lowering.writer import HasLowering, Val, Writer
from effax.transforms.framework.rules import HasRules, Indivisible, Rules
from effax.transforms.rules.common.generic_rules import no_refs
from effax.transforms.rules.host import SIDE_EFFECT_RULES
from effax.tree import PyTree

Handle: TypeAlias = PyTree
"""An array, or a reference if the primitive takes one."""


class ArrayPrimitive(Exact, HasRules, HasLowering):
    """A primitive on arrays. Subclasses are frozen dataclasses with ``slots=True``.

    ``typing`` and ``evaluate`` are as for every primitive; ``lower`` writes StableHLO, or calls a
    program (:func:`effax.extend.program`). The other methods take traced arrays; they are traced
    once for each primitive, operand types, and set of operands with tangents or a batch axis. A
    rule that does not apply raises ``NotApplicable`` with the reason.
    """

    __slots__ = ()

    @abstractmethod
    def jvp(
        self, primals: Sequence[Handle], tangents: Sequence[Handle | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Return results and their tangents. None is a zero tangent; at least one is not None."""

    @abstractmethod
    def transpose(
        self, ins: Sequence[Handle | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        """Return a cotangent for each operand, from those of the results (None: zero).

        None for an operand that is not :class:`Linear`, for a zero, and for a cotangent that was
        accumulated into its reference.
        """

    @abstractmethod
    def batch(
        self, ins: Sequence[Handle], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        """Return results, and which have a leading batch axis, as the operands do."""

    def rules(self) -> Rules[NoReturn]:
        """Return the rules of the passes: these methods, traced."""
        return _OF_ARRAYS

    def bind(self, *args: object) -> list[Array]:
        """Apply the primitive: evaluate it, or add it to the program that is traced.

        Raises:
            IllTyped: ``typing`` rejects the operands, or one is not an array.
        """
        return _bound(self, args)


P = TypeVar("P", bound=Primitive)


def operands_of(prim: P, args: Sequence[object]) -> tuple[P, list[Operand]]:
    """Return the primitive with normalised fields, and its operands.

    Raises:
        IllTyped: ``typing`` rejects the operands, or one is not an array.
        BadArgument: a field of the primitive is not allowed.
    """
    check_parameters(prim)
    prim = normalised(prim)
    operands: list[Operand] = [
        x if isinstance(x, Array | Ref) else as_value(x, f"argument {i} of {prim.name}")
        for i, x in enumerate(args)
    ]
    typed(prim, [x.type for x in operands])
    return prim, operands


def _bound(prim: Primitive, args: Sequence[object]) -> list[Array]:
    prim, operands = operands_of(prim, args)
    if current_trace() is not None:
        return cast("list[Array]", bind(prim, *operands))
    typing = typing_of(prim, tuple([x.type for x in operands]))
    values = [value_of(x) for x in operands]
    label = f"the evaluation of {prim.name}"
    with np.errstate(all="ignore"):
        found = prim.evaluate(*values)
    try:
        outs = results_of(label, found, typing.outs)
    except BadRule as error:
        raise error.at(None, defined_at(prim.evaluate) or str(caller())) from None
    return [cast(Array, wrap(x, t)) for x, t in zip(outs, typing.outs, strict=True)]


class HostPrimitive(Exact, HasRules, HasLowering):
    """A primitive on arrays with side effects. Subclasses are frozen dataclasses.

    ``typing`` declares its effects, of the library's kinds or user-defined ones, which decide
    whether passes may reorder or remove it. ``evaluate`` performs it, in compiled programs too.
    Without results, it is differentiated by applying it to primal values; with results, it has no
    derivative. Under ``vmap`` it is applied to each batch element, if its effects commute with
    themselves.
    """

    __slots__ = ()

    def rules(self) -> Rules[NoReturn]:
        """Return the rules of the passes."""
        return SIDE_EFFECT_RULES

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        """Write a call of ``evaluate``."""
        types = self.typing(*[x.type for x in ins]).outs
        return w.host_call(self.evaluate, ins, cast("tuple[ArrayType, ...]", types))

    def bind(self, *args: object) -> list[Array]:
        """Apply the primitive: evaluate it, or add it to the program that is traced.

        Raises:
            IllTyped: ``typing`` rejects the operands, or one is not an array.
        """
        return _bound(self, args)


class RefPrimitive(ArrayPrimitive):
    """A primitive that takes references and returns arrays.

    ``typing`` declares its effects, and ``discharge`` how it computes on contents instead of
    references. In ``jvp`` the tangent of a reference is a reference.
    """

    __slots__ = ()

    @abstractmethod
    def discharge(
        self, ins: Sequence[Array], is_ref: Sequence[bool]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Return results, and the new contents of each reference (None: unchanged, or an array).

        ``ins`` has the contents of a reference where ``is_ref`` is true.
        """

    def rules(self) -> Rules[NoReturn]:
        """Return the rules of the passes: these methods, traced."""
        return _OF_REFS


_OF_ARRAYS: Final[Rules[ArrayPrimitive]] = Rules(
    jvp=rules.jvp,
    transpose=rules.transpose,
    batch=rules.batch,
    split=Indivisible(),
    discharge=no_refs,
)
_OF_REFS: Final[Rules[RefPrimitive]] = Rules(
    jvp=rules.jvp,
    transpose=rules.transpose,
    batch=rules.batch,
    split=Indivisible(),
    discharge=rules.discharge,
)
