"""Functions whose equations carry a name in their name stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from effax.arrays.argument_checks import check_callable
from effax.arrays.tracing import label_of, like
from effax.ir.trace import named_scope

P = ParamSpec("P")
R = TypeVar("R")


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Return ``fun`` under ``named_scope``.

    Args:
        fun: a function of any arguments.
        name: the name; None is that of ``fun``.

    Raises:
        BadArgument: ``fun`` is not callable.

    >>> jaxpr = effax.make_jaxpr(effax.named_call(jnp.sin, name="wave"))(1.0).jaxpr
    >>> jaxpr.eqns[0].source.scopes
    ('wave',)
    """
    check_callable(fun, "named_call")
    scope = label_of(fun) if name is None else name

    @like(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return call
