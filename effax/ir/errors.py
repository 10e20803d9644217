"""The hierarchy of errors. Instances carry data; only ``__str__`` renders it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Self

from effax.lazy.dataclasses import dataclass

if TYPE_CHECKING:
    from effax.effects import Rule


@dataclass(eq=False)
class EffaxError(Exception):
    """The root of all errors, with the expectation, the finding, the place and a remedy.

    ``what`` is a sentence without its final stop. Where they are known, ``equation`` is the printed
    equation, ``source`` the user's line, and ``step`` the name of the pass.
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

    in_rule = False
    """True for an error that the user's code raised in a custom rule."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), dict(self.__dict__)))

    def become(self, kind: type[Self]) -> Self:
        """Return an error of a subclass with the same data."""
        made = kind.__new__(kind)
        made.__dict__.update(self.__dict__)
        return made

    def at(self, equation: str | None, source: str | None) -> EffaxError:
        """Add the place to the error, unless it has one, and return it."""
        if self.equation is None:
            self.equation = equation
        if self.source is None:
            self.source = source
        return self


def _rebuild(cls: type[EffaxError], state: dict[str, object]) -> EffaxError:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    return error


class Refusal(EffaxError, TypeError, ValueError):
    """An input is refused: of the wrong type, with the wrong value, or used the wrong way.

    It is a TypeError and a ValueError: JAX raises one or the other for the same fault, by function.
    """


class IllTyped(Refusal):
    """An operation or a program does not type check: shapes, dtypes, counts, scope."""


class BadIndex(EffaxError, IndexError):
    """An index is out of bounds."""


class BadArgument(Refusal):
    """A public function was called with an argument that it does not accept."""


class BadAxis(BadArgument, IndexError):
    """An axis is not one of the array's."""


class BadFormat(BadArgument, KeyError, IndexError):
    """A format does not fit the values that it formats."""


class BadSlice(IllTyped, IndexError):
    """A slice has bounds that are traced, so that the result has no shape."""


class MissingRule(BadArgument, AttributeError):
    """A function that has rules of its own lacks the one that is needed."""


class NotFitting(BadArgument, OverflowError):
    """An integer does not fit into a dtype."""


class NotSupported(BadArgument, NotImplementedError):
    """An option is known to NumPy or to JAX, and is not supported."""


class BadCallback(IllTyped, RuntimeError):
    """A Python function that a program calls returns something else than was declared."""


@dataclass(eq=False)
class RefError(IllTyped):
    """A reference is used against a rule; ``rule`` is its code (``effax.effects.Rule``)."""

    rule: str = field(default="", kw_only=True)

    @classmethod
    def against(
        cls, rule: Rule, what: str, expected: str, found: str, remedy: str | None = None
    ) -> Self:
        """Return the error for a use against ``rule``, by default with the rule's remedy."""
        return cls(what, expected, found, remedy or rule.remedy, rule=rule.code)


class TransformError(Refusal):
    """A transformation does not apply to a program.

    ``position`` is the argument of the program that causes it, or None.
    """

    position: int | None = None


class NotApplicable(TransformError, NotImplementedError):
    """A transformation does not apply to a primitive, for the reason that its rule names."""


class UnboundAxis(EffaxError, NameError):
    """A collective names an axis that no enclosing ``vmap`` or ``shard_map`` binds."""


class Divergence(EffaxError, RuntimeError):
    """Devices reach different collectives: one is under a condition that differs between them."""


class BadRule(TransformError, IllTyped):
    """A user-defined rule does not match its function."""


class TooDeep(EffaxError, RecursionError):
    """Programs, or calls of traced functions, are nested too deeply."""


class Unfinished(EffaxError, RuntimeError):
    """An evaluation was stopped at a bound of its equations or its time."""


class TracerTypeError(EffaxError, TypeError):
    """A tracer is used where it cannot be."""


class TracerIndexError(EffaxError, IndexError):
    """A tracer is used as an index where it cannot be."""


class ConcretizationError(TracerTypeError):
    """Python code needs the value of a tracer that has none."""


class BoolConversionError(ConcretizationError):
    """A condition of Python code is a tracer without a value."""


class ArrayConversionError(ConcretizationError):
    """NumPy code needs the value of a tracer that has none."""


class IntegerConversionError(ConcretizationError):
    """A tracer without a value is used as an index or a size by Python code."""


class BooleanIndexError(ConcretizationError, TracerIndexError):
    """A mask that is an index is a tracer without a value, so that the result has no shape."""


class InconclusiveDimension(EffaxError, TypeError):
    """A symbolic size is compared or used where only its value would decide."""


class LeakedTracer(TracerTypeError):
    """A tracer is used after its trace has ended."""


class ClosedOver(TransformError, LeakedTracer):
    """A function with custom rules closes over a value that is differentiated."""


@dataclass(eq=False)
class ParseError(EffaxError, ValueError):
    """Text is not a program; ``line`` and ``column``, from 1, locate the first error.

    ``excerpt`` is that line, with a caret under the column.
    """

    line: int = field(default=0, kw_only=True)
    column: int = field(default=0, kw_only=True)
    excerpt: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        text = EffaxError.__str__(self)
        return text if self.excerpt is None else f"{text}\n{self.excerpt}"


class InvalidValue(EffaxError, FloatingPointError):
    """A call or an operation computes a nan or an infinity, while ``debug_nans`` is on."""


class CheckError(EffaxError, ValueError):
    """A check fails while a program runs, or an error value is raised."""


class FailedCheckError(CheckError):
    """A predicate that a program checks is false."""


class NaNError(CheckError):
    """An operation computes a nan."""


class DivisionByZeroError(CheckError):
    """A divisor is zero."""


class OOBError(CheckError):
    """An index is out of bounds."""


class LoweringError(EffaxError, RuntimeError):
    """A program cannot be compiled or run."""


class ProcessError(EffaxError, RuntimeError):
    """A process cannot join the others, or a computation of several processes failed."""


class ProcessLost(ProcessError):
    """Another process ended, or did not answer in time."""


class ProcessesDiffer(ProcessError, AssertionError):
    """The processes do not compute the same."""
