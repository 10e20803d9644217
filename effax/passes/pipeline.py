"""Passes as values, and their compositions: sequences, conditions, fixpoints.

A pass is a name, a pure function from programs to ``Result``s, and the laws that it claims. Steps
compose into steps::

    tidy = fixpoint(simplify | cse | dce)
    small = inline | when(has_loops, hoist) | tidy
    small(program)  # Success(program), or Failure(TransformError)
    unwrap(small(program))  # the program; raises the TransformError

A function from programs to programs is no pass; ``as_pass`` makes one of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

import numpy as np
from returns.result import Failure, Result, Success

from effax.ir.analysis.queries import size
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee, checked_guarantees
from effax.transforms.framework.rewriter import Transform
from effax.transforms.framework.runner import as_result, wrap_errors

LIBRARY: Final = (
    "dce",
    "cse",
    "fold",
    "inline",
    "simplify",
    "hoist",
    "loop_carries",
    "forward_stores",
    "dead_stores",
    "accumulate",
    "fuse_accumulations",
    "unroll",
    "optimize",
)
"""The names of the passes of ``effax.passes.library``, which is built on this module."""


class _Composes:
    """What all steps share: ``first | second`` is a pipeline, and a call runs the step."""

    __slots__ = ()

    def __or__(self, other: Step) -> Pipeline:
        return Pipeline((*_flat(self), *_flat(other)))

    def __ror__(self, other: object) -> Pipeline:
        # A step's own ``|`` comes first: this is none.
        raise no_step(other)

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        """The transformed program, or why there is none. Raises BadArgument for no program."""
        return perform(self, jaxpr, _unseen)


@dataclass(frozen=True)
class Pass(_Composes):
    """One pass.

    Attributes:
        name: what it is called in reports.
        transform: a pure function of the program; it keeps the types of inputs and results.
        laws: what it claims, and ``check_pass`` tries: that it means the same, if nothing is said.

    Raises:
        BadArgument: the name is none, ``transform`` is no function, or what it claims is no
            ``Guarantee``.
    """

    name: str
    transform: Transform
    laws: tuple[Guarantee, ...] = (Guarantee.SAME_MEANING,)

    def __post_init__(self) -> None:
        name: object = self.name
        transform: object = self.transform
        if not isinstance(name, str) or not name or not name.isprintable():
            raise BadArgument("a pass has a name", "a line of text", f"{name!r:.60}")
        if not callable(transform) or isinstance(transform, Step):
            raise BadArgument(
                f"the pass {name} is made of no function",
                expected="a function from a program to a Result of one",
                found=f"{transform!r:.60}",
            )
        object.__setattr__(self, "laws", checked_guarantees(name, self.laws))

    def renamed(self, name: str) -> Pass:
        """The same pass under another name."""
        return replace(self, name=name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pipeline(_Composes):
    """Steps one after the other; the first failure ends it."""

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(map(as_step, _several(self.steps))))

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps)) or "nothing"


@dataclass(frozen=True)
class When(_Composes):
    """A step that is taken where the program fulfils a condition."""

    condition: Callable[[Jaxpr], bool]
    step: Step

    def __post_init__(self) -> None:
        condition: object = self.condition
        if not callable(condition) or isinstance(condition, Step):
            raise BadArgument(
                "what decides whether a step is taken is no condition",
                expected="a function from a program to a bool",
                found=f"{condition!r:.60}",
            )
        as_step(self.step)

    def __str__(self) -> str:
        return f"when({called(self.condition)}, {self.step})"


@dataclass(frozen=True)
class Fixpoint(_Composes):
    """A step that is taken again until it changes nothing, ``limit`` times at most."""

    step: Step
    limit: int

    def __post_init__(self) -> None:
        as_step(self.step)
        limit: object = self.limit
        if not isinstance(limit, int) or limit < 1:
            raise BadArgument(
                "a fixpoint runs at least once", "a limit of at least 1", f"{limit!r:.60}"
            )

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
        BadArgument: the limit is no positive integer, or ``step`` is no step.
    """
    return Fixpoint(step, limit)


def pipeline(*steps: Step) -> Pipeline:
    """The steps one after the other; none is the identity."""
    return Pipeline(tuple(part for step in steps for part in _flat(step)))


def passes_of(given: Step | Sequence[Step]) -> Step:
    """A step, from what users give: a step or several. Raises BadArgument for anything else."""
    return given if isinstance(given, Step) else pipeline(*_several(given))


def guarantees_of(step: Step) -> tuple[Guarantee, ...]:
    """What a step claims: a pass what it says; a composition what follows from its parts.

    Steps that each mean the same do so one after the other; those that are idempotent need not be,
    but a fixpoint is.
    """
    match step:
        case Pass():
            held = set(step.laws)
        case Pipeline():
            parts = [{*guarantees_of(part)} for part in step.steps]
            held = set(Guarantee).intersection(*parts) if len(parts) != 1 else parts[0]
            if len(parts) > 1:
                held.discard(Guarantee.IDEMPOTENT)
        case When():
            held = {*guarantees_of(step.step)} - {Guarantee.IDEMPOTENT}
        case _:
            held = {*guarantees_of(step.step), Guarantee.IDEMPOTENT}
    return tuple(claim for claim in Guarantee if claim in held)


def as_step(given: object) -> Step:
    """What is given, if it is a step. Raises BadArgument."""
    if not isinstance(given, Step):
        raise no_step(given)
    return given


def _flat(step: object) -> tuple[Step, ...]:
    found = as_step(step)
    return found.steps if isinstance(found, Pipeline) else (found,)


def _several(given: object) -> Sequence[Step]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise no_step(given)
    return given


def no_step(found: object) -> BadArgument:
    """The error for something that is no step where one belongs."""
    return BadArgument(
        "this is no pass",
        expected="`Pass`, `Pipeline`, `when(...)`, `fixpoint(...)`, or a list of these",
        found=f"{found!r:.80}",
        remedy=_remedy(found),
    )


def _remedy(found: object) -> str:
    if isinstance(found, str):
        close = get_close_matches(found, LIBRARY, 1)
        return (
            f"did you mean `effax.passes.{close[0]}`?" if close else "give the pass, not its name"
        )
    if found is None:
        return "`pipeline()` is the step that does nothing"
    if isinstance(found, type):
        return "give a pass, not its class"
    if callable(found):
        return f"make one of the function: `as_pass({called(found)})`"
    if isinstance(found, Iterable):
        return "steps are in an order: give a list, with `|` or `pipeline(...)` for steps in it"
    return "make one of a function: `as_pass(function)`"


def called(function: object) -> str:
    """What a function is called."""
    return getattr(function, "__name__", type(function).__name__)


Path = tuple[str, ...]
Observer = Callable[[Pass, Path, Jaxpr], Result[Jaxpr, TransformError]]
"""Runs one pass, at a path of combinators, on a program."""


def attempt(step: Pass, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Run one pass; what it raises is its failure, and a failure tells which pass it was."""
    result = as_result(_run)(step, jaxpr).bind(lambda given: _checked(step, given))
    if isinstance(result, Failure):
        error = result.failure()
        if error.step is None and step.name not in error.what:
            error.step = step.name
    return result


def _run(step: Pass, jaxpr: Jaxpr) -> object:
    with wrap_errors(f"the pass {step.name}"):
        return step.transform(jaxpr)


def _checked(step: Pass, given: object) -> Result[Jaxpr, TransformError]:
    match given:
        case Success(Jaxpr()) | Failure(TransformError()):
            return given
        case None:
            return Failure(
                TransformError(
                    f"the pass {step.name} gives nothing",
                    expected="a program, or a `Result` of one",
                    found="None",
                    remedy="is a `return` missing?",
                )
            )
        case _:
            return Failure(
                TransformError(
                    f"the pass {step.name} gives something else than a `Result` of a program",
                    expected="`Success(jaxpr)`, or `Failure(TransformError(...))`",
                    found=f"{given!r:.80}",
                    remedy="wrap the program in `returns.result.Success`, or make the pass of the "
                    "function with `as_pass`",
                )
            )


def _unseen(step: Pass, path: Path, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    return attempt(step, jaxpr)


def check_program(given: object) -> Jaxpr:
    """The program itself. Raises BadArgument for anything else."""
    if isinstance(given, Jaxpr):
        return given
    inside = isinstance(getattr(given, "jaxpr", None), Jaxpr)
    raise BadArgument(
        "a pass takes a program",
        expected="a `Jaxpr`",
        found=f"{given!r:.80}",
        remedy="its program is `.jaxpr`"
        if inside
        else "trace a function: `effax.make_jaxpr(f)(*args).jaxpr`",
    )


def perform(
    step: object, jaxpr: Jaxpr, run: Observer, path: Path = ()
) -> Result[Jaxpr, TransformError]:
    """Take a step, with ``run`` for each single pass in it. Raises BadArgument for no program."""
    check_program(jaxpr)
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
            holds = as_result(_decided)(step, jaxpr)
            if not isinstance(holds, Success):
                return Failure(holds.failure())
            if not holds.unwrap():
                return Success(jaxpr)
            return perform(step.step, jaxpr, run, (*path, called(step.condition)))
        case Fixpoint():
            return _repeated(step, jaxpr, run, path)
        case _:
            raise no_step(step)


def _decided(step: When, jaxpr: Jaxpr) -> bool:
    name = called(step.condition)
    with wrap_errors(f"the condition {name}"):
        given: object = step.condition(jaxpr)
    if not isinstance(given, bool | np.bool_):
        raise TransformError(
            f"the condition {name} says neither yes nor no",
            expected="True or False",
            found=f"{given!r:.80}",
            remedy="is a `return` missing?" if given is None else "`bool(...)` of it",
        )
    return bool(given)


def _repeated(
    step: Fixpoint, jaxpr: Jaxpr, run: Observer, path: Path
) -> Result[Jaxpr, TransformError]:
    given, seen = jaxpr, {jaxpr: 0}
    for i in range(step.limit):
        result = perform(step.step, jaxpr, run, (*path, f"round {i}"))
        if not isinstance(result, Success) or result.unwrap() == jaxpr:
            return result
        jaxpr = result.unwrap()
        if jaxpr in seen:
            found = f"the program of round {seen[jaxpr]} comes back after round {i}"
            return Failure(_endless(step, found))
        seen[jaxpr] = i + 1
    found = f"changes after {step.limit} rounds, from {size(given)} to {size(jaxpr)} equations"
    return Failure(_endless(step, found))


def _endless(step: Fixpoint, found: str) -> TransformError:
    return TransformError(
        f"{step} changes the program again and again",
        expected="a program that it leaves as it is",
        found=found,
        remedy="one of its passes undoes another: `watch` it, or raise the limit",
    )
