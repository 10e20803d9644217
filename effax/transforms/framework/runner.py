"""The boundary of a pass: errors inside of it become a ``Failure``, results a ``Success``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from returns.result import Failure, Result, Success

from effax.ir.errors import BadArgument, EffaxError, TransformError
from effax.ir.memo import clear_if_large
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.text.printer import eqn_str

A = ParamSpec("A")
T = TypeVar("T")


def as_result(run: Callable[A, T]) -> Callable[A, Result[T, TransformError]]:
    """Give the pass's result as a ``Result``.

    Inside of a pass a rule that does not apply raises ``TransformError``; that is data for the
    caller. Every other error of the library that a rule meets is wrapped in one.
    """

    @wraps(run)
    def bounded(*args: A.args, **kwargs: A.kwargs) -> Result[T, TransformError]:
        try:
            clear_if_large()
            return Success(run(*args, **kwargs))
        except TransformError as error:
            return Failure(error)
        except EffaxError as error:
            wrapped = TransformError(error.what, error.expected, error.found, error.remedy)
            wrapped.__cause__ = error
            wrapped.at(error.equation, error.source)
            return Failure(wrapped)
        except RecursionError as error:
            deep = TransformError(
                "programs are held in programs too deeply for Python's stack",
                remedy="inline calls first (`inline`), or raise `sys.setrecursionlimit`",
            )
            deep.__cause__ = error
            return Failure(deep)

    return bounded


@contextmanager
def wrap_errors(
    what: str,
    through: tuple[type[Exception], ...] = (EffaxError, RecursionError),
    remedy: str | None = None,
) -> Iterator[None]:
    """Let what a user's function raises be told as a failure of ``what``, with its cause.

    Args:
        what: the function, for people: "the pass mine".
        through: errors that go on as they are.
        remedy: what to do about it.

    Raises:
        TransformError: something else was raised.
    """
    try:
        yield
    except through:
        raise
    except Exception as error:
        raise TransformError(
            f"{what} raises {type(error).__name__}: {error}", remedy=remedy
        ) from error


def located(error: EffaxError, eqn: Eqn) -> EffaxError:
    """The error, told at which equation it happened, unless it knows better."""
    return error.at(eqn_str(eqn), None if eqn.source is None else str(eqn.source))


def unwrap(result: Result[T, EffaxError]) -> T:
    """What a pass gives: its program, or its record. Raises the error where it gives none.

    ``result.unwrap()`` raises an error of ``returns`` that says nothing of the reason.

    Raises:
        EffaxError: the error of a ``Failure``.
        BadArgument: what is given is no ``Result``.
    """
    given: object = result
    if not isinstance(given, Result):
        raise BadArgument(
            "there is nothing to unwrap",
            expected="a `Result`, which a pass or a transformation gives",
            found=f"{given!r:.80}",
            remedy="it is a program already" if isinstance(given, Jaxpr) else None,
        )
    if isinstance(result, Failure):
        raise result.failure()
    return result.unwrap()
