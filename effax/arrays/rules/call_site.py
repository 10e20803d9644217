"""The call that custom rules belong to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from effax.ir.state import cached
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTreeDef

if TYPE_CHECKING:
    from effax.arrays.rules.call_rules import CallRules


K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class CallSite:
    """A call of a function with custom rules, apart from the values of its arguments.

    Attributes:
        label: the name of the function, for messages.
        fixed: the arguments at ``nondiff_argnums``, which rules take first.
        nondiff: those positions.
        args_tree: the structure of the tuple of the other arguments.
        types: the types of their leaves.
        names: the user's names of their leaves.
    """

    label: str
    fixed: tuple[object, ...]
    nondiff: tuple[int, ...]
    args_tree: PyTreeDef
    types: tuple[Type, ...]
    names: tuple[str, ...]

    def is_same_call(self, other: CallSite) -> bool:
        """Return whether two calls of one function differ in the values of arrays only."""
        return (
            self.types == other.types
            and self.args_tree == other.args_tree
            and len(self.fixed) == len(other.fixed)
            and all(map(is_same, self.fixed, other.fixed))
        )

    def partial(self, fun: Callable[..., object]) -> Callable[..., object]:
        """Return the function of the arguments that are not fixed."""

        def called(*args: object) -> object:
            rest = iter(args)
            total = len(args) + len(self.fixed)
            places = dict(zip(self.nondiff, self.fixed, strict=True))
            return fun(*[places[i] if i in places else next(rest) for i in range(total)])

        return called


class RuledFunction(ABC):
    """A function with rules.

    Attributes:
        fun: the function.
        serial: the order in which such functions were made.
        kept: the rules of calls on different types, kept from trace to trace.
    """

    fun: Callable[..., object]
    serial: int
    kept: list[CallRules]

    @abstractmethod
    def rule_functions(self) -> tuple[object, ...]:
        """Return the rules that are set."""


MOST_KEPT: Final = 64
"""The most functions with rules that are kept, where none closes over anything."""


def with_rules(kind: Callable[..., K], *parts: object) -> K:
    """Return a function with rules made of ``parts``; one object if they close over nothing.

    So two traces of a function that calls it return equal programs.
    """
    return cast(K, _kept(kind, *parts)) if all(map(_closes_over_nothing, parts)) else kind(*parts)


def _closes_over_nothing(part: object) -> bool:
    return isinstance(part, SCALARS) or (
        isinstance(part, FunctionType)
        and not (part.__closure__ or part.__defaults__ or part.__kwdefaults__ or part.__dict__)
    )


@cached(MOST_KEPT)
def _kept(kind: Callable[..., object], *parts: object) -> object:
    return kind(*parts)


SCALARS = (bool, int, float, complex, str, bytes, type(None))


def is_same(a: object, b: object) -> bool:
    """Return whether two Python values are one object, or equal scalars of one type."""
    return a is b or (type(a) is type(b) and isinstance(a, SCALARS) and a == b)
