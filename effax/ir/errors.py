"""The one hierarchy of errors. Instances carry data; ``__str__`` renders it, here only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from effax.effects import Rule


@dataclass(eq=False)
class EffaxError(Exception):
    """The root: what was expected, what was found, where, and what to do about it.

    ``what`` is a sentence without its final stop. ``equation`` is the printed equation and
    ``source`` the user's line, ``step`` the name of the pass in which it happened, where they are
    known.
    """

    what: str
    expected: str | None = None
    found: str | None = None
    remedy: str | None = None
    equation: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    step: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        parts = [self.what]
        if self.expected is not None:
            parts.append(f"  expected: {self.expected}")
        if self.found is not None:
            parts.append(f"  found:    {self.found}")
        if self.equation is not None:
            parts.append(f"  equation: {self.equation}")
        if self.source is not None:
            parts.append(f"  at:       {self.source}")
        if self.step is not None:
            parts.append(f"  in:       the pass {self.step}")
        if self.remedy is not None:
            parts.append(f"  remedy:   {self.remedy}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), dict(self.__dict__)))

    def at(self, equation: str | None, source: str | None) -> EffaxError:
        """The same error, told where it happened; what is known already is kept."""
        if self.equation is None:
            self.equation = equation
        if self.source is None:
            self.source = source
        return self


def _rebuild(cls: type[EffaxError], state: dict[str, object]) -> EffaxError:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    return error


class IllTyped(EffaxError, TypeError):
    """An operation or a program does not type check: shapes, dtypes, counts, scope."""


class BadIndex(EffaxError, IndexError):
    """An index that the indexed value does not have."""


class BadArgument(EffaxError, ValueError):
    """An argument of a public function that it cannot take."""


@dataclass(eq=False)
class RefError(IllTyped):
    """A reference is used against the rules; ``rule`` is the code of the rule broken."""

    rule: str = field(default="", kw_only=True)

    @classmethod
    def against(
        cls, rule: Rule, what: str, expected: str, found: str, remedy: str | None = None
    ) -> Self:
        """The error for a use against ``rule``, whose remedy it offers unless there is a nearer."""
        return cls(what, expected, found, remedy or rule.remedy, rule=rule.code)


class TransformError(EffaxError):
    """A transformation does not apply to this program.

    ``position`` is the argument of the program that is the reason, where there is one.
    """

    position: int | None = None


class NotApplicable(TransformError):
    """A primitive says why a transformation does not apply to it."""


class UnboundAxis(EffaxError, NameError):
    """A collective names an axis that no ``vmap`` or ``shard_map`` around it binds."""


class Divergence(EffaxError, RuntimeError):
    """Devices that must act together part: a collective under a condition on which they differ."""


class BadRule(TransformError, IllTyped):
    """A rule of the user's, asked for by a transformation, does not fit its function."""


class TooDeep(EffaxError, RecursionError):
    """Programs, or calls of traced functions, are inside of each other without end."""


class ConcretizationError(EffaxError, TypeError):
    """Python wants the value of something that is only a symbol here."""


class LeakedTracer(EffaxError, TypeError):
    """A tracer is used after its trace has ended."""


@dataclass(eq=False)
class ParseError(EffaxError, ValueError):
    """Text that is not a program; ``line`` and ``column``, from 1, say where it stops being one.

    ``excerpt`` is that line, with a caret under the column.
    """

    line: int = field(default=0, kw_only=True)
    column: int = field(default=0, kw_only=True)
    excerpt: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        told = EffaxError.__str__(self)
        return told if self.excerpt is None else f"{told}\n{self.excerpt}"


class LoweringError(EffaxError):
    """A program cannot be compiled or run."""
