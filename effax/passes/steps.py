"""Passes as values, and their compositions: sequences, conditions, fixpoints.

A pass is a name, a pure function from programs to ``Result``s, and the laws that it claims. Steps
compose into steps::

    tidy = fixpoint(simplify | cse | dce)
    small = inline | when(has_loops, hoist) | tidy
    small(program)  # Success(program), or Failure(TransformError)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from returns.result import Failure, Result, Success

from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.transforms.run import as_result

Transform = Callable[[Jaxpr], Result[Jaxpr, TransformError]]


class Claim(Enum):
    """A law that a pass says it keeps; ``effax.testing.laws.pass_keeps_its_claims`` tries it."""

    SAME_MEANING = "p(f) = f in all that is observed"
    IDEMPOTENT = "p(p(f)) = p(f)"
    NEVER_LARGER = "|p(f)| <= |f|"


SIMPLIFIES = tuple(Claim)
"""What a pass claims that makes programs smaller and keeps what they mean."""


class _Composes:
    """What all steps share: ``first | second`` is a pipeline, and a call runs the step."""

    __slots__ = ()

    def __or__(self, other: Step) -> Pipeline:
        return Pipeline((*_flat(self), *_flat(other)))

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        """The transformed program, or why there is none."""
        return perform(self, jaxpr, _unseen)


@dataclass(frozen=True)
class Pass(_Composes):
    """One pass.

    Attributes:
        name: what it is called in reports.
        transform: a pure function of the program; it keeps the types of inputs and results.
        laws: what it claims.

    Raises:
        BadArgument: what it claims is no ``Claim``.
    """

    name: str
    transform: Transform
    laws: tuple[Claim, ...] = (Claim.SAME_MEANING,)

    def __post_init__(self) -> None:
        # What is not known here would never be tried, and nobody would notice.
        claims: Sequence[object] = self.laws
        others = [claim for claim in claims if not isinstance(claim, Claim)]
        if others:
            raise BadArgument(
                f"{self.name} claims what is no claim",
                expected=", ".join(map(str, Claim)),
                found=f"{others[0]!r:.80}",
                remedy="a law of your own is a test: run it on `self(jaxpr)`",
            )

    def renamed(self, name: str) -> Pass:
        """The same pass under another name."""
        return replace(self, name=name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pipeline(_Composes):
    """Steps one after the other; the first failure ends it."""

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps)) or "nothing"


@dataclass(frozen=True)
class When(_Composes):
    """A step that is taken where the program fulfils a condition."""

    condition: Callable[[Jaxpr], bool]
    step: Step

    def __str__(self) -> str:
        return f"when({_called(self.condition)}, {self.step})"


@dataclass(frozen=True)
class Fixpoint(_Composes):
    """A step that is taken again until it changes nothing, ``limit`` times at most."""

    step: Step
    limit: int

    def __str__(self) -> str:
        return f"fixpoint({self.step})"


Step = Pass | Pipeline | When | Fixpoint
"""Anything that can be run, composed and watched."""


def when(condition: Callable[[Jaxpr], bool], step: Step) -> When:
    """Take the step where the program fulfils the condition; else leave the program as it is."""
    return When(condition, step)


def fixpoint(step: Step, limit: int = 64) -> Fixpoint:
    """Take the step until it changes nothing.

    Args:
        step: the step.
        limit: how many times at most; more are a TransformError.

    Raises:
        BadArgument: the limit is no positive integer.
    """
    if limit < 1:
        raise BadArgument("a fixpoint runs at least once", "a limit of at least 1", str(limit))
    return Fixpoint(step, limit)


def pipeline(*steps: Step) -> Pipeline:
    """The steps one after the other; none is the identity."""
    return Pipeline(tuple(part for step in steps for part in _flat(step)))


def passes_of(given: Step | Sequence[Step]) -> Step:
    """A step, from what users give: a step or several. Raises BadArgument for anything else."""
    if isinstance(given, Step):
        return given
    if not isinstance(given, Sequence):
        raise no_step(given)
    return pipeline(*given)


def _flat(step: object) -> tuple[Step, ...]:
    if isinstance(step, Pipeline):
        return step.steps
    if not isinstance(step, Step):
        raise no_step(step)
    return (step,)


def no_step(found: object) -> BadArgument:
    """The error for something that is no step where one belongs."""
    return BadArgument(
        "this is no pass",
        expected="`Pass`, `Pipeline`, `when(...)`, `fixpoint(...)`, or a list of these",
        found=f"{found!r:.80}",
        remedy="make one of a function: `Pass('name', function)`",
    )


def _called(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


Path = tuple[str, ...]
Observer = Callable[[Pass, Path, Jaxpr], Result[Jaxpr, TransformError]]
"""Runs one pass, at a path of combinators, on a program."""


def attempt(step: Pass, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Run one pass; an error of the library that it raises is its failure.

    Raises BadArgument where it gives something else than a ``Result`` of a program.
    """
    return as_result(step.transform)(jaxpr).bind(lambda result: _checked(step, result))


def _checked(step: Pass, given: object) -> Result[Jaxpr, TransformError]:
    match given:
        case Success(Jaxpr()) | Failure(TransformError()):
            return given
        case _:
            raise BadArgument(
                f"the pass {step.name} gives something else than a program",
                expected="`Success(jaxpr)`, or `Failure(TransformError(...))`",
                found=f"{given!r:.80}",
                remedy="wrap what it gives in `returns.result.Success`",
            )


def _unseen(step: Pass, path: Path, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    return attempt(step, jaxpr)


def perform(
    step: object, jaxpr: Jaxpr, run: Observer, path: Path = ()
) -> Result[Jaxpr, TransformError]:
    """Take a step, with ``run`` for each single pass in it."""
    match step:
        case Pass():
            return run(step, path, jaxpr)
        case Pipeline():
            result: Result[Jaxpr, TransformError] = Success(jaxpr)
            for i, part in enumerate(step.steps):
                if not isinstance(result, Success):
                    break
                result = perform(part, result.unwrap(), run, (*path, str(i)))
            return result
        case When():
            if not step.condition(jaxpr):
                return Success(jaxpr)
            return perform(step.step, jaxpr, run, (*path, _called(step.condition)))
        case Fixpoint():
            return _repeated(step, jaxpr, run, path)
        case _:
            raise no_step(step)


def _repeated(
    step: Fixpoint, jaxpr: Jaxpr, run: Observer, path: Path
) -> Result[Jaxpr, TransformError]:
    for i in range(step.limit):
        result = perform(step.step, jaxpr, run, (*path, f"round {i}"))
        if not isinstance(result, Success) or result.unwrap() == jaxpr:
            return result
        jaxpr = result.unwrap()
    return Failure(
        TransformError(
            f"{step} changes the program again and again",
            expected=f"no change after {step.limit} rounds",
            remedy="one of its passes undoes another: watch it, or raise the limit",
        )
    )
