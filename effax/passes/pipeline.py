"""Passes as values, and their compositions: sequences, conditions, fixpoints.

A pass is a name, a pure function from programs to ``Result``s, and its guarantees. Passes
compose::

    tidy = fixpoint(simplify | cse | dce)
    small = inline | when(has_loops, hoist) | tidy
    small(program)  # Success(program), or Failure(TransformError)
    unwrap(small(program))  # the program; raises the TransformError

``as_pass`` makes a pass of a function from programs to programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from returns.result import Failure, Result, Success

from effax.ir.analysis.queries import size
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.lazy.dataclasses import dataclass
from effax.passes.guarantees import (
    Guarantee,
    checked_guarantees,
    with_implied,
    without_weaker,
)
from effax.transforms.framework.rewriter import Transform
from effax.transforms.framework.runner import as_result, wrap_errors


class _Composes:
    """The operators of all passes: ``first | second`` is a pipeline, and a call runs the pass."""

    __slots__ = ()

    def __or__(self, other: AnyPass) -> Pipeline:
        return Pipeline((*_flat(self), *_flat(other)))

    def __ror__(self, other: object) -> Pipeline:
        # Only reached if `other` is not a pass: otherwise its `__or__` is called.
        raise not_a_pass(other)

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        """Return the transformed program, or the error. Raise BadArgument for a non-program."""
        return perform(self, jaxpr, _attempt_at)


@dataclass(frozen=True)
class Pass(_Composes):
    """One pass.

    Attributes:
        name: its name in reports.
        transform: a pure function of the program; it keeps the types of inputs and results.
        laws: its guarantees, which ``check_pass`` tests; by default SAME_MEANING.

    Raises:
        BadArgument: the name is not a line of text, ``transform`` is not a function, or a law is
            not a ``Guarantee``.
    """

    name: str
    transform: Transform
    laws: tuple[Guarantee, ...] = (Guarantee.SAME_MEANING,)

    def __post_init__(self) -> None:
        name: object = self.name
        transform: object = self.transform
        if not isinstance(name, str) or not name or not name.isprintable():
            raise BadArgument("the name of a pass is not valid", "a line of text", f"{name!r:.60}")
        if not callable(transform) or isinstance(transform, AnyPass):
            raise BadArgument(
                f"the transform of the pass {name} is not a function",
                expected="a function from a program to a Result of one",
                found=f"{transform!r:.60}",
            )
        object.__setattr__(self, "laws", checked_guarantees(name, self.laws))

    def renamed(self, name: str) -> Pass:
        """Return the same pass with another name."""
        return replace(self, name=name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pipeline(_Composes):
    """Passes in sequence; the first failure ends it."""

    passes: tuple[AnyPass, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "passes", tuple(map(checked_pass, _several(self.passes))))

    def __str__(self) -> str:
        return " | ".join(map(str, self.passes)) or "identity"


@dataclass(frozen=True)
class When(_Composes):
    """A pass that runs if the program satisfies a condition, and is the identity otherwise."""

    condition: Callable[[Jaxpr], bool]
    pass_: AnyPass

    def __post_init__(self) -> None:
        condition: object = self.condition
        if not callable(condition) or isinstance(condition, AnyPass):
            raise BadArgument(
                "the condition of `when` is not a function",
                expected="a function from a program to a bool",
                found=f"{condition!r:.60}",
            )
        checked_pass(self.pass_)

    def __str__(self) -> str:
        return f"when({name_of(self.condition)}, {self.pass_})"


@dataclass(frozen=True)
class Fixpoint(_Composes):
    """A pass that is repeated until the program does not change, ``limit`` times at most."""

    pass_: AnyPass
    limit: int

    def __post_init__(self) -> None:
        checked_pass(self.pass_)
        limit: object = self.limit
        if not isinstance(limit, int) or limit < 1:
            raise BadArgument(
                "the limit of a fixpoint is not valid", "an integer of at least 1", f"{limit!r:.60}"
            )

    def __str__(self) -> str:
        return f"fixpoint({self.pass_})"


AnyPass = Pass | Pipeline | When | Fixpoint
"""Anything that can be run, composed and watched."""


def when(condition: Callable[[Jaxpr], bool], pass_: AnyPass) -> When:
    """Return a pass that runs ``pass_`` if the program satisfies the condition."""
    return When(condition, pass_)


def fixpoint(pass_: AnyPass, limit: int = 64) -> Fixpoint:
    """Return a pass that repeats ``pass_`` until the program does not change.

    Args:
        pass_: the pass to repeat.
        limit: the maximal number of rounds; without a fixpoint by then, it is a TransformError.

    Raises:
        BadArgument: the limit is not a positive integer, or ``pass_`` is not a pass.
    """
    return Fixpoint(pass_, limit)


def pipeline(*passes: AnyPass) -> Pipeline:
    """Return the passes in sequence; without passes, the identity."""
    return Pipeline(tuple(part for pass_ in passes for part in _flat(pass_)))


def passes_of(given: AnyPass | Sequence[AnyPass]) -> AnyPass:
    """Return a pass, or a pipeline of several. Raise BadArgument for other values."""
    return given if isinstance(given, AnyPass) else pipeline(*_several(given))


def guarantees_of(pass_: AnyPass) -> tuple[Guarantee, ...]:
    """Return the guarantees of a pass; those of a composition follow from its parts.

    A sequence of passes with SAME_MEANING has SAME_MEANING, and likewise for SAME_BITS,
    SAME_WHERE_FINITE (which SAME_MEANING implies) and NEVER_LARGER. IDEMPOTENT is lost in a
    sequence and under a condition; a fixpoint has it.
    """
    match pass_:
        case Pass():
            found = set(pass_.laws)
        case Pipeline():
            parts = [with_implied(guarantees_of(part)) for part in pass_.passes]
            found = set(Guarantee).intersection(*parts)
            if len(parts) > 1:
                found.discard(Guarantee.IDEMPOTENT)
        case When():
            found = {*guarantees_of(pass_.pass_)} - {Guarantee.IDEMPOTENT}
        case _:
            found = {*guarantees_of(pass_.pass_), Guarantee.IDEMPOTENT}
    return without_weaker(found)


def checked_pass(given: object) -> AnyPass:
    """Return the argument if it is a pass. Raise BadArgument otherwise."""
    if not isinstance(given, AnyPass):
        raise not_a_pass(given)
    return given


def _flat(pass_: object) -> tuple[AnyPass, ...]:
    found = checked_pass(pass_)
    return found.passes if isinstance(found, Pipeline) else (found,)


def _several(given: object) -> Sequence[AnyPass]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise not_a_pass(given)
    return given


def not_a_pass(found: object) -> BadArgument:
    """Return the error for an argument that is not a pass."""
    return BadArgument(
        "this is not a pass",
        expected="`Pass`, `Pipeline`, `when(...)`, `fixpoint(...)`, or a list of these",
        found=f"{found!r:.80}",
        remedy=_remedy(found),
    )


def _remedy(found: object) -> str:
    if isinstance(found, str):
        return "use the value, an attribute of `effax.passes`, not its name"
    if found is None:
        return "the identity is `pipeline()`"
    if isinstance(found, type):
        return "use an instance, not the class"
    if callable(found):
        return f"make a pass of the function: `as_pass({name_of(found)})`"
    if isinstance(found, Iterable):
        return "passes are ordered: use a list, with `|` or `pipeline(...)` for nested sequences"
    return "make a pass of a function: `as_pass(function)`"


def name_of(function: object) -> str:
    """Return the name of a function, or of the class of a callable."""
    return getattr(function, "__name__", type(function).__name__)


Path = tuple[str, ...]
Observer = Callable[[Pass, Path, Jaxpr], Result[Jaxpr, TransformError]]
"""A function that runs one pass, at a path of combinators, on a program."""


def attempt(pass_: Pass, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Run one pass. An exception becomes a failure, and a failure names the pass."""
    result = as_result(_run)(pass_, jaxpr).bind(lambda returned: _checked(pass_, returned))
    if isinstance(result, Failure):
        error = result.failure()
        if error.step is None and pass_.name not in error.what:
            error.step = pass_.name
    return result


def _run(pass_: Pass, jaxpr: Jaxpr) -> object:
    with wrap_errors(f"the pass {pass_.name}"):
        return pass_.transform(jaxpr)


def _checked(pass_: Pass, returned: object) -> Result[Jaxpr, TransformError]:
    match returned:
        case Success(Jaxpr()) | Failure(TransformError()):
            return returned
        case None:
            return Failure(
                TransformError(
                    f"the pass {pass_.name} returns None",
                    expected="a program, or a `Result` of one",
                    found="None",
                    remedy="is a `return` missing?",
                )
            )
        case _:
            return Failure(
                TransformError(
                    f"the pass {pass_.name} does not return a `Result` of a program",
                    expected="`Success(jaxpr)`, or `Failure(TransformError(...))`",
                    found=f"{returned!r:.80}",
                    remedy="wrap the program in `returns.result.Success`, or the function in "
                    "`as_pass`",
                )
            )


def _attempt_at(pass_: Pass, path: Path, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    return attempt(pass_, jaxpr)


def check_program(program: object) -> Jaxpr:
    """Return the program. Raise BadArgument for other values."""
    if isinstance(program, Jaxpr):
        return program
    inside = isinstance(getattr(program, "jaxpr", None), Jaxpr)
    raise BadArgument(
        "a pass takes a program",
        expected="a `Jaxpr`",
        found=f"{program!r:.80}",
        remedy="use its `.jaxpr`"
        if inside
        else "trace a function: `effax.make_jaxpr(f)(*args).jaxpr`",
    )


def perform(
    pass_: object, jaxpr: Jaxpr, run: Observer, path: Path = ()
) -> Result[Jaxpr, TransformError]:
    """Run a pass, with ``run`` for each ``Pass`` in it. Raise BadArgument for a non-program."""
    check_program(jaxpr)
    match pass_:
        case Pass():
            return run(pass_, path, jaxpr)
        case Pipeline():
            result: Result[Jaxpr, TransformError] = Success(jaxpr)
            for i, part in enumerate(pass_.passes):
                if not isinstance(result, Success):
                    break
                result = perform(part, result.unwrap(), run, (*path, str(i)))
            return result
        case When():
            holds = as_result(_decided)(pass_, jaxpr)
            if not isinstance(holds, Success):
                return Failure(holds.failure())
            if not holds.unwrap():
                return Success(jaxpr)
            return perform(pass_.pass_, jaxpr, run, (*path, name_of(pass_.condition)))
        case Fixpoint():
            return _repeat(pass_, jaxpr, run, path)
        case _:
            raise not_a_pass(pass_)


def _decided(pass_: When, jaxpr: Jaxpr) -> bool:
    name = name_of(pass_.condition)
    with wrap_errors(f"the condition {name}"):
        holds: object = pass_.condition(jaxpr)
    if not isinstance(holds, bool | np.bool_):
        raise TransformError(
            f"the condition {name} does not return a boolean",
            expected="True or False",
            found=f"{holds!r:.80}",
            remedy="is a `return` missing?" if holds is None else "convert it: `bool(...)`",
        )
    return bool(holds)


def _repeat(
    pass_: Fixpoint, jaxpr: Jaxpr, run: Observer, path: Path
) -> Result[Jaxpr, TransformError]:
    first, seen = jaxpr, {jaxpr: 0}
    for i in range(pass_.limit):
        result = perform(pass_.pass_, jaxpr, run, (*path, f"round {i}"))
        if not isinstance(result, Success) or result.unwrap() == jaxpr:
            return result
        jaxpr = result.unwrap()
        if jaxpr in seen:
            found = f"the program of round {seen[jaxpr]} recurs after round {i}"
            return Failure(_no_fixpoint(pass_, found))
        seen[jaxpr] = i + 1
    found = f"changes after {pass_.limit} rounds, from {size(first)} to {size(jaxpr)} equations"
    return Failure(_no_fixpoint(pass_, found))


def _no_fixpoint(pass_: Fixpoint, found: str) -> TransformError:
    return TransformError(
        f"{pass_} does not reach a fixpoint",
        expected="a program that it does not change",
        found=found,
        remedy="find the passes that undo each other with `watch`, or increase the limit",
    )
