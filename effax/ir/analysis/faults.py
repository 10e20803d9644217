"""The faults that the checker reports, as data, by kind; they can be raised as errors."""

from __future__ import annotations

from enum import Enum
from typing import Final

from effax.effects import Rule
from effax.ir.dtypes import family, int_bounds, is_key_dtype
from effax.ir.errors import EffaxError, IllTyped, RefError
from effax.ir.syntax import Lit
from effax.lazy.dataclasses import dataclass


class FaultKind(Enum):
    """The kinds of faults of a program; one against a rule for references has the rule's code."""

    SCOPE = "scope"
    BINDING = "binding"
    NUMBERING = "numbering"
    LITERAL = "literal"
    TYPE = "type"
    EFFECT = "effect"
    AXIS = "axis"
    ALIAS = Rule.ALIAS.code
    ESCAPE = Rule.ESCAPE.code
    USE_AFTER_FREE = Rule.USE_AFTER_FREE.code
    FOREIGN_FREE = Rule.FOREIGN_FREE.code
    REF_TO_REF = Rule.REF_TO_REF.code
    REF_AS_ARRAY = Rule.REF_AS_ARRAY.code
    SHARED_WRITE = Rule.SHARED_WRITE.code

    @property
    def rule(self) -> Rule | None:
        """The violated rule for references, or None."""
        return _RULES.get(self.value)


_RULES: Final = {rule.code: rule for rule in Rule}


def kind_of(error: EffaxError) -> FaultKind:
    """Return the kind of fault of an error that a typing rule raises."""
    if not isinstance(error, RefError):
        return FaultKind.TYPE
    # A primitive may have its own restriction, beyond the rules of the checker.
    return FaultKind(error.rule) if error.rule in _RULES else FaultKind.EFFECT


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a program, with its place and a remedy.

    Attributes:
        path: the subjaxprs that lead to the equation, outermost first.
        equation: the printed equation; None if the fault is not in an equation.
        source: the user's line.
    """

    kind: FaultKind
    message: str
    expected: str | None = None
    found: str | None = None
    remedy: str | None = None
    path: tuple[str, ...] = ()
    equation: str | None = None
    source: str | None = None

    def error(self) -> IllTyped:
        """Return the fault as an error that can be raised."""
        what = f"{self.message} (in {' / '.join(self.path)})" if self.path else self.message
        error = IllTyped(what, self.expected, self.found, self.remedy)
        if self.kind.rule is not None:
            rule = self.kind.value
            error = RefError(what, self.expected, self.found, self.remedy, rule=rule)
        error.at(self.equation, self.source)
        return error

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.error()}"


_PYTHON: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": int,
    "float": float,
    "complex": complex,
    "key": int,
}


def literal_fault(lit: Lit) -> str | None:
    """Return the expectation that a literal of its type violates, or None."""
    wanted = _PYTHON.get(family(lit.type.dtype))
    if lit.type.shape:
        return "a scalar type"
    if wanted is None or type(lit.value) is not wanted:
        return f"a Python {'scalar' if wanted is None else wanted.__name__}"
    if type(lit.value) is int:
        is_key = is_key_dtype(lit.type.dtype)
        low, high = (0, 2**32 - 1) if is_key else int_bounds(lit.type.dtype)
        if not low <= lit.value <= high:
            return f"an integer from {low} to {high}"
    return None
