"""Checks in traced functions, and ``checkify``, which returns their failures as values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, ParamSpec, TypeVar, cast, final

import numpy as np

from effax import tree
from effax.api.debugging.printing import used_fields
from effax.api.derivatives import traced_call
from effax.api.host_functions import array_leaves
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind, run
from effax.arrays.conversion import as_value, from_numpy, is_python_scalar
from effax.arrays.operators import ops
from effax.arrays.ref import Ref
from effax.arrays.ref_view import RefView
from effax.arrays.tracing import like
from effax.ir.dtypes import BOOL, INT32
from effax.ir.errors import (
    BadArgument,
    CheckError,
    FailedCheckError,
    IllTyped,
)
from effax.ir.primitive import Value
from effax.ir.prims import Check, Failure, Failures
from effax.ir.prims.check import Failed, check_error_of, failed
from effax.ir.source import caller
from effax.ir.types import ArrayType
from effax.lazy.dataclasses import dataclass
from effax.transforms.checkify import conditions
from effax.transforms.checkify.engine import checkify as checkify_pass
from effax.transforms.framework.runner import unwrap
from effax.tree import PyTree, PyTreeDef
from effax.tree.registry import register_pytree_node

P = ParamSpec("P")
R = TypeVar("R")

ErrorCategory = type[CheckError]
"""A class of errors; sets of these select the checks of ``checkify``."""

user_checks: Final = conditions.USER
"""The failures of ``check``."""
nan_checks: Final = conditions.NAN
"""The nans that operations compute."""
div_checks: Final = conditions.DIVISION
"""Divisions by zero, of floats and of integers."""
index_checks: Final = conditions.INDEX
"""Indices out of bounds, of arrays and of references."""
float_checks: Final = nan_checks | div_checks
"""``nan_checks`` and ``div_checks``."""
automatic_checks: Final = conditions.AUTOMATIC
"""All of them but ``user_checks``."""
all_checks: Final = conditions.ALL
"""All of them."""


@final
class Error:
    """The first failure of a checked function, if there is one: a tree of arrays.

    ``jit`` returns it, and loops may carry or stack it. With leading axes, as under ``vmap``, it
    is one error for each element.
    """

    def __init__(self, number: ArrayLike, payload: Sequence[ArrayLike], failures: Failures) -> None:
        self._number = number
        self._payload = tuple(payload)
        self._failures = failures

    @property
    def failures(self) -> Failures:
        """The failures that the function has."""
        return self._failures

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The number of the failure, from 1 (0 is none), and the arrays of messages."""
        return tuple([as_value(x, "the error") for x in (self._number, *self._payload)])

    def _failed(self) -> list[Failed]:
        number, *payload = [np.asarray(x) for x in self.arrays]
        return failed(self._failures, number, payload)

    def get(self) -> str | None:
        """Return the message of the failure, or None.

        With leading axes, there is a line for each element that failed.

        Raises:
            ConcretizationError: the error is traced: return it from the function first.
        """
        found = self._failed()
        if found and found[0].position:
            shown = [f"at mapped index {', '.join(map(str, f.position))}: " for f in found]
            return "\n".join([s + f.message for s, f in zip(shown, found, strict=True)])
        return found[0].message if found else None

    def get_exception(self) -> CheckError | None:
        """Return the failure as an exception, or None; with leading axes, the first one."""
        found = self._failed()
        return check_error_of(found[0]) if found else None

    def throw(self) -> None:
        """Raise the failure, if there is one: a ``CheckError``, which is a ``ValueError``."""
        error = self.get_exception()
        if error is not None:
            raise error

    def __repr__(self) -> str:
        try:
            return f"Error({self.get()})"
        except TypeError:
            return f"Error({self._number})"


def _unflatten(failures: PyTree, leaves: PyTree) -> Error:
    number, *payload = leaves
    return Error(number, payload, failures)


register_pytree_node(Error, lambda e: ((e._number, *e._payload), e._failures), _unflatten)

init_error: Final = Error(np.zeros((), np.int32), (), Failures((), (), ()))
"""The error of a function without checks."""


def checkify(
    f: Callable[P, R], errors: Collection[ErrorCategory] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """Return a function that returns the first failure of ``f`` besides its result.

    The checked function is pure, so that ``jit``, ``vmap`` and ``grad`` apply to it. A failure does
    not end it: values after it are computed, and operations keep their meaning.

    Args:
        f: a function of trees of arrays and references. Leaves of other types are not traced.
        errors: which checks are enabled: ``user_checks``, the calls of ``check``; ``nan_checks``;
            ``div_checks``; ``index_checks``; or a union of these.

    Returns:
        A function of the same arguments, which returns an ``Error`` and the result of ``f``.

    Raises:
        BadArgument: ``f`` is not callable, or ``errors`` has something that is no category.
        TransformError: called, where a check is in the function of a linear solve.

    >>> from effax.experimental import checkify
    >>> checked = checkify.checkify(jnp.log, errors=checkify.float_checks)
    >>> err, y = jax.jit(checked)(-1.0)
    >>> err.get()
    'nan generated by primitive: log.'
    """
    enabled = _categories(errors)

    @like(f)
    def checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        leaves = tree.leaves((args, dict(kwargs)))
        fixed = [not _is_traced(x) for x in leaves]
        call = traced_call(f, args, kwargs, "checkify", untouched=lambda _: fixed)
        done = unwrap(checkify_pass(call.flat.jaxpr, enabled))
        outs = run(done.jaxpr, call.operands)
        n = len(call.flat.jaxpr.outs)
        number, *payload = outs[n:]
        result = cast(R, tree.unflatten(call.flat.out_tree, outs[:n]))
        return Error(number, payload, done.failures), result

    return checked


def _is_traced(x: object) -> bool:
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind not in "OUSMm"
    known = isinstance(x, Array | Ref | RefView) or is_python_scalar(x)
    return known or hasattr(x, "__jax_array__")


def _categories(errors: Collection[ErrorCategory]) -> conditions.Errors:
    for category in errors:
        if category not in all_checks:
            raise BadArgument(
                "checkify: unknown category of errors",
                expected="a set such as `checkify.user_checks | checkify.float_checks`",
                found=repr(category),
            )
    return frozenset(errors)


def check(
    pred: ArrayLike, msg: str, *fmt_args: object, debug: bool = False, **fmt_kwargs: object
) -> None:
    """Check that ``pred`` is true.

    A failure is an error value under ``checkify``. Elsewhere it raises, at once or when the
    program runs; a compiled program calls Python for it.

    Args:
        pred: boolean scalar. Under ``vmap``, one for each batch element.
        msg: the message, a format as of ``str.format``.
        *fmt_args: trees of arrays in the message.
        debug: whether the check is dropped unless it is under ``checkify``.
        **fmt_kwargs: the same, by name.

    Raises:
        FailedCheckError: ``pred`` is false.
        IllTyped: ``pred`` is not a boolean scalar, or an argument of the message is not an array.
        BadArgument: ``msg`` does not fit the arguments.

    >>> from effax.experimental import checkify
    >>> checkify.check(jnp.array(True), "not shown: {}", jnp.ones(3))
    """
    _check(pred, msg, fmt_args, fmt_kwargs, debug, "debug_check" if debug else "check")


def debug_check(pred: ArrayLike, msg: str, *fmt_args: object, **fmt_kwargs: object) -> None:
    """Check that ``pred`` is true under ``checkify``; elsewhere, do nothing.

    Arguments and errors are those of ``check``.
    """
    _check(pred, msg, fmt_args, fmt_kwargs, True, "debug_check")


def _check(
    pred: ArrayLike,
    msg: str,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    debug: bool,
    what: str,
) -> None:
    holds = as_value(pred, f"the predicate of {what}")
    if holds.dtype != BOOL or holds.shape:
        raise IllTyped(
            f"{what} takes a scalar predicate",
            expected="a boolean scalar",
            found=str(holds.type),
            remedy="`jnp.all(pred)`",
        )
    for x in tree.leaves((args, kwargs)):
        if not _is_traced(x) or isinstance(x, Ref | RefView):
            raise IllTyped(
                f"{what}: formatting arguments must be trees of arrays",
                expected="an array",
                found=f"{type(x).__name__}: {x!r:.60}",
                remedy="format other values into the message before",
            )
    used_fields(what, msg, args, kwargs)
    operands, treedef, _ = array_leaves(args, kwargs, what)
    payload = tuple([x.type.strong() for x in operands if isinstance(x.type, ArrayType)])
    place = caller()
    failure = UserFailure(msg, treedef, payload, None if place is None else str(place))
    places = tuple(range(len(payload)))
    table = Failures((failure,), payload, (places,), what)
    bind(Check(table, debug), ops.astype(ops.invert(holds), INT32), *operands)


@dataclass(frozen=True)
class UserFailure(Failure):
    """The failure of ``check``: a format, the structure of its arguments, and the user's line."""

    fmt: str
    treedef: PyTreeDef
    payload: tuple[ArrayType, ...]
    place: str | None
    error: type[CheckError] = FailedCheckError
    label: str = "check"

    def message(self, *payload: Value) -> str:
        args, kwargs = tree.unflatten(self.treedef, [from_numpy(np.array(x)) for x in payload])
        return self.fmt.format(*args, **kwargs)


def check_error(error: Error) -> None:
    """Raise the failure of an error value, as a check: ``checkify`` makes it a value again.

    Args:
        error: the error of a checked function; with leading axes, the first failure counts.

    Raises:
        CheckError: there is a failure.
        BadArgument: ``error`` is not an ``Error``.

    >>> from effax.experimental import checkify
    >>> err, _ = jax.jit(checkify.checkify(jnp.sin))(0.0)
    >>> checkify.check_error(err)
    """
    given: object = error
    if not isinstance(given, Error):
        raise BadArgument(
            "check_error takes an error value",
            expected="the `Error` that a checked function returns",
            found=f"{type(error).__name__}: {error!r:.60}",
        )
    if given.failures.failures:
        bind(Check(given.failures), *given.arrays)
