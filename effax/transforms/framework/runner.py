"""The boundary of a pass: errors become a ``Failure``, results a ``Success``."""

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
    """Return the function with its result, or the ``TransformError`` it raises, as a ``Result``.

    Other errors of the library, and ``RecursionError``, are wrapped in a ``TransformError``. What
    the user's code in a custom rule raises is raised unchanged.
    """

    @wraps(run)
    def bounded(*args: A.args, **kwargs: A.kwargs) -> Result[T, TransformError]:
        try:
            clear_if_large()
            return Success(run(*args, **kwargs))
        except TransformError as error:
            return Failure(error)
        except EffaxError as error:
            if error.in_rule:
                raise
            wrapped = TransformError(error.what, error.expected, error.found, error.remedy)
            wrapped.__cause__ = error
            wrapped.at(error.equation, error.source)
            return Failure(wrapped)
        except RecursionError as error:
            deep = TransformError(
                "programs are nested too deeply for Python's stack",
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
    """Report any exception of a user's function as a failure of ``what``, with its cause.

    Args:
        what: the function in the message, such as "the pass mine".
        through: errors that are raised unchanged.
        remedy: the remedy of the error.

    Raises:
        TransformError: another exception was raised.
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
    """Return the error with this equation as its location, unless it has one."""
    return error.at(eqn_str(eqn), None if eqn.source is None else str(eqn.source))


def unwrap(result: Result[T, EffaxError]) -> T:
    """Return the value of a ``Success``; raise the error of a ``Failure``.

    ``result.unwrap()`` raises an error of ``returns`` instead, without the reason.

    Raises:
        EffaxError: the error of a ``Failure``.
        BadArgument: the argument is not a ``Result``.
    """
    given: object = result
    if not isinstance(given, Result):
        raise BadArgument(
            "unwrap takes a `Result`",
            expected="the result of a pass or a transformation",
            found=f"{given!r:.80}",
            remedy="it is a program already" if isinstance(given, Jaxpr) else None,
        )
    if isinstance(result, Failure):
        raise result.failure()
    return result.unwrap()
