"""The bases of primitives that users declare: every rule is an abstract method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, NoReturn, TypeAlias, cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind, value_of, wrap
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.extend import rules
from effax.extend.guard import check_parameters, results_of, typed
from effax.extend.parameters import Exact, normalised
from effax.extend.rules import Linear
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
"""An array, or a reference where the primitive takes one: its author knows which it is."""


class ArrayPrimitive(Exact, HasRules, HasLowering):
    """A primitive on arrays. Subclasses are frozen dataclasses with ``slots=True``.

    ``typing`` and ``evaluate`` are those of every primitive; ``lower`` writes StableHLO, or calls
    a program (:func:`effax.extend.program`). The others get traced arrays, and are traced once for
    a primitive, the types of its arguments, and which of these have tangents or a batch axis. A
    rule that does not apply raises ``NotApplicable`` with the reason.
    """

    __slots__ = ()

    @abstractmethod
    def jvp(
        self, primals: Sequence[Handle], tangents: Sequence[Handle | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Results and their tangents. A tangent that is None is zero; one at least is not."""

    @abstractmethod
    def transpose(
        self, ins: Sequence[Handle | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        """A cotangent for each argument, from those of the results (None: zero).

        None for an argument that is not :class:`Linear`, for a zero, and for what was added to
        its reference.
        """

    @abstractmethod
    def batch(
        self, ins: Sequence[Handle], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        """Results, and which have a batch axis, for arguments that may lead with one."""

    def rules(self) -> Rules[NoReturn]:
        """The rules that passes run: these methods, traced."""
        return _OF_ARRAYS

    def bind(self, *args: object) -> list[Array]:
        """Apply the primitive: evaluated now, or into the program that is traced.

        Raises:
            IllTyped: the arguments do not fit, by ``typing``; or one is no array.
        """
        return _bound(self, args)


def _bound(prim: Primitive, args: Sequence[object]) -> list[Array]:
    check_parameters(prim)
    prim = normalised(prim)
    operands: list[Operand] = [
        x if isinstance(x, Array | Ref) else as_value(x, f"argument {i} of {prim.name}")
        for i, x in enumerate(args)
    ]
    typing = typed(prim, [x.type for x in operands])
    if current_trace() is not None:
        return cast("list[Array]", bind(prim, *operands))
    values = [value_of(x) for x in operands]
    label = f"the evaluation of {prim.name}"
    with np.errstate(all="ignore"):
        given = prim.evaluate(*values)
    try:
        outs = results_of(label, given, typing.outs)
    except BadRule as error:
        raise error.at(None, defined_at(prim.evaluate) or str(caller())) from None
    return [cast(Array, wrap(x, t)) for x, t in zip(outs, typing.outs, strict=True)]


class HostPrimitive(Exact, HasRules, HasLowering):
    """A primitive on arrays that acts on the world outside. Subclasses are frozen dataclasses.

    ``typing`` says by its effects, of kinds of your own or the library's, what it does; what may
    change places, or go, follows from the kinds. ``evaluate`` does it, in compiled programs too.
    Arguments are primal values where it gives no results; where it does, it has no derivative.
    Each lane of a batch does it, if the effects commute with themselves.
    """

    __slots__ = ()

    def rules(self) -> Rules[NoReturn]:
        """The rules that passes run."""
        return SIDE_EFFECT_RULES

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        """The compiled program calls ``evaluate``."""
        types = self.typing(*[x.type for x in ins]).outs
        return w.host_call(self.evaluate, ins, cast("tuple[ArrayType, ...]", types))

    def bind(self, *args: object) -> list[Array]:
        """Apply the primitive: now, or when the program that is traced runs.

        Raises:
            IllTyped: the arguments do not fit, by ``typing``; or one is no array.
        """
        return _bound(self, args)


class RefPrimitive(ArrayPrimitive):
    """A primitive that takes references too, and makes none.

    It says how it runs on contents in the place of references.
    Its effects are what ``typing`` says. In ``jvp`` the tangent of a reference is a reference.
    """

    __slots__ = ()

    @abstractmethod
    def discharge(
        self, ins: Sequence[Array], is_ref: Sequence[bool]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Results, and the new contents of each argument that is a reference (None: unchanged).

        ``ins`` has the contents of a reference where ``is_ref`` is true.
        """

    def rules(self) -> Rules[NoReturn]:
        """The rules that passes run: these methods, traced."""
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
