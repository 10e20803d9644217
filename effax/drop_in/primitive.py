"""Primitives as JAX declares them: a name, whose rules are registered one by one.

Each application is an effax primitive of a class of its own; its transformations run the rules
that are registered when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import wrap
from effax.arrays.conversion import as_value
from effax.effects import NO_EFFECTS, Io, Row
from effax.ir.errors import BadArgument, IllTyped, LoweringError, NotApplicable
from effax.ir.operation import HasOperation, Operation
from effax.ir.primitive import ByReference, Owner, Typing, Value
from effax.ir.state import clear_caches
from effax.ir.trace import eager
from effax.ir.types import ArrayType, RefType, Type, type_of_value
from effax.tree import PyTree

Rule = Callable[..., object]
"""A function of a user, of any signature."""


class NotRegistered(NotApplicable, NotImplementedError):
    """A primitive has no rule for a transformation, or no evaluation."""


class LoweringNotRegistered(LoweringError, NotImplementedError):
    """A primitive has no lowering."""


def not_registered(what: str, name: str, how: str) -> NotRegistered:
    """Return the error for a rule that a primitive lacks."""
    return NotRegistered(f"{what} for '{name}' not implemented", remedy=how)


class Declared(Operation):
    """A primitive with a name, as ``jax.extend.core.Primitive``.

    Attributes:
        multiple_results: whether the rules take and return lists of results.
    """

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.multiple_results: bool = False
        self.is_used: bool = False
        self._abstract_eval: Rule | None = None

    def def_impl(self, impl: Rule) -> Rule:
        """Set the function that evaluates it on arrays, and return it."""
        vars(self)["impl"] = impl
        self.changed()
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Set the function from types of operands to types of results, and return it."""

        def typed(*avals: object, **params: object) -> object:
            return abstract_eval(*avals, **params), ()

        self._abstract_eval = typed
        self.changed()
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Set the function that returns the types of results and a set of effects."""
        self._abstract_eval = abstract_eval
        self.changed()
        return abstract_eval

    def def_custom_bind(self, function: Rule) -> Rule:
        """Set the function that ``bind`` calls, and return it."""
        vars(self)["bind"] = function
        return function

    def impl(self, *args: object, **params: object) -> object:
        """Evaluate it. Raise NotRegistered: ``def_impl`` replaces this method."""
        raise not_registered("Evaluation rule", self.name, "`prim.def_impl(function)`")

    def abstract_eval(self, *avals: Type, **params: object) -> tuple[object, object]:
        """Return the types of its results, and its effects."""
        if self._abstract_eval is None:
            how = "`prim.def_abstract_eval(function)`"
            raise not_registered("Abstract evaluation", self.name, how)
        return cast("tuple[object, object]", self._abstract_eval(*avals, **params))

    def bind_with_trace(
        self, trace: object, args: Sequence[object], avals: object, params: Mapping[str, object]
    ) -> PyTree:
        """Apply the primitive as :meth:`bind`."""
        return self.bind(*args, **params)

    def changed(self) -> None:
        """Drop the cached results of all programs, if the primitive was used before."""
        if self.is_used:
            clear_caches()


class Parameters(ByReference):
    """The parameters of an application: Python objects by name, compared by value if hashable."""

    __slots__ = ("_key", "_owner", "label", "values")

    def __init__(self, label: str, values: Mapping[str, object]) -> None:
        self.label: str = label
        self.values: Mapping[str, object] = values
        self._key: frozenset[object] = frozenset([(n, _key(x)) for n, x in values.items()])
        self._owner: Owner | None = None if all(map(_is_plain, values.values())) else Owner()

    def owner(self) -> Owner | None:
        """Return the owner, unless the parameters are plain values."""
        return self._owner

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Parameters) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)


class _Identity:
    """A key that is equal for one object only, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value: object = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key(value: object) -> object:
    """Return a key that is equal for equal values of one type; for an array, for one object."""
    if type(value) is tuple:
        return tuple, tuple(map(_key, value))
    if isinstance(value, Array | np.ndarray):
        return _Identity(value)
    try:
        hash(value)
    except TypeError:
        return _Identity(value)
    return type(value), value


_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), np.dtype, ArrayType)


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


@dataclass(frozen=True, slots=True)
class AppliedByName(HasOperation):
    """An application of a primitive, without rules."""

    arguments: Parameters
    declared: ClassVar[Declared]
    by_reference: ClassVar[tuple[str, ...]] = ("arguments",)

    def operation(self) -> Operation:
        """Return the primitive."""
        return self.declared

    def params(self) -> dict[str, object]:
        """Return the parameters."""
        return dict(self.arguments.values)

    def typing(self, *ins: Type) -> Typing:
        """Return the types that the abstract evaluation returns."""
        found, effects = self.declared.abstract_eval(*ins, **self.arguments.values)
        outs = results_of(self.declared, found, "types of results")
        for t in outs:
            if not isinstance(t, ArrayType | RefType):
                raise IllTyped(
                    f"the abstract evaluation of {self.name} returns a value that is no type",
                    expected="a `jax.core.ShapedArray` for each result",
                    found=f"{type(t).__name__}: {t!r:.60}",
                )
        row = Row([Io(self.name)]) if effects else NO_EFFECTS
        return Typing(tuple([cast(Type, t) for t in outs]), row)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Evaluate the implementation on arrays."""
        with eager():
            args = [wrap(x.view(), type_of_value(x)) for x in ins]
            found = self.declared.impl(*args, **self.arguments.values)
        return [
            as_value(x, f"a result of {self.name}").numpy()
            for x in results_of(self.declared, found, "results")
        ]


def results_of(prim: Operation, found: object, what: str) -> list[object]:
    """Return what a rule returned for the results as a list. Raise BadArgument for another."""
    if not prim.multiple_results:
        return [found]
    if not isinstance(found, list | tuple):
        raise BadArgument(
            f"a rule of {prim.name}, which has multiple results, returns no list of {what}",
            expected=f"a list of {what}",
            found=type(found).__name__,
        )
    return list(found)
