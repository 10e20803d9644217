"""Inspect the residuals that a function saves for its derivative."""

from __future__ import annotations

from collections.abc import Callable

from effax.api.staging import trace_abstractly
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.tracing import label_of
from effax.ir.types import is_inexact
from effax.transforms.framework.runner import unwrap
from effax.transforms.partial_eval.saved import SavedResidual, saved


def saved_residuals(
    fun: Callable[..., object], *args: object, **kwargs: object
) -> list[SavedResidual]:
    """Return the residuals of ``grad`` or ``vjp`` of ``fun``, each once, with types and origins.

    The function is traced, not run. The residuals are the values that the derivative uses, subject
    to the policies of ``checkpoint``; arguments that it uses are always saved.

    Args:
        fun: a function of trees of arrays.
        *args: its arguments, or their types.
        **kwargs: arguments by name.

    Returns:
        ``(type, origin)`` for each: an argument by its name, a constant, a value by the name set
        by ``checkpoint_name``, or the output of a primitive, with the line.

    Raises:
        BadArgument: ``fun`` is not callable.
        IllTyped: an argument is not an array.
        TransformError: a primitive has no rule.
    """
    check_callable(fun, "saved_residuals")
    flat, _ = trace_abstractly(fun, args, kwargs, StaticArgs((), ()), label_of(fun))
    jaxpr = flat.jaxpr
    mask = [i >= jaxpr.n_consts and is_inexact(t) for i, t in enumerate(jaxpr.in_types)]
    return list(unwrap(saved(jaxpr, mask)))


def print_saved_residuals(fun: Callable[..., object], *args: object, **kwargs: object) -> None:
    """Print :func:`saved_residuals`, a line each: ``f32[3] named 'h' from model.py:7 (f)``."""
    for residual in saved_residuals(fun, *args, **kwargs):
        print(residual)  # noqa: T201  # this is what it is for
