"""The cost of a function, or of a program, before it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from effax.api.staging import trace_abstractly
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import as_integer, check_callable
from effax.arrays.tracing import label_of, like
from effax.ir.analysis.cost.count import count_cost
from effax.ir.analysis.cost.record import Cost
from effax.ir.errors import BadArgument
from effax.ir.syntax import ClosedJaxpr, Jaxpr


@overload
def cost(fun: Jaxpr | ClosedJaxpr, *, trips: int | None = ...) -> Cost: ...
@overload
def cost(
    fun: Callable[..., object],
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    trips: int | None = ...,
) -> Callable[..., Cost]: ...
def cost(
    fun: Jaxpr | ClosedJaxpr | Callable[..., object],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    trips: int | None = None,
) -> Cost | Callable[..., Cost]:
    """Return the cost of a program, or a function from arguments of ``fun`` to its cost.

    Operations, bytes and collectives are counted by primitive, by source line and by subjaxpr,
    those of loops as often as these run; of branches the most expensive one counts. Nothing is
    computed or compiled.

    Args:
        fun: a program, or a function of trees of arrays and references; the arguments of the result
            are these, or their types (a ``ShapeDtypeStruct``, an ``ArrayType``, a ``RefType``).
        static_argnums: positions of arguments that are not traced.
        static_argnames: names of such arguments.
        trips: the trip count that is assumed for a loop whose own depends on values; None: none of
            its iterations is counted, and the cost is a lower bound (``is_lower_bound``).

    Raises:
        BadArgument: ``fun`` is neither a program nor callable, ``trips`` is negative, or a size is
            symbolic.

    >>> found = effax.cost(lambda x, y: x @ y)(jnp.ones((2, 3)), jnp.ones((3, 4)))
    >>> found.flops, found.bytes_read, found.bytes_written
    (48, 72, 32)
    """
    assumed = None if trips is None else as_integer(trips, "cost: trips")
    if isinstance(fun, ClosedJaxpr | Jaxpr):
        if static_argnums != () or static_argnames != ():
            raise BadArgument(
                "cost: a program has no static arguments",
                expected="static arguments of a function only",
                found=f"static_argnums={static_argnums!r}, static_argnames={static_argnames!r}",
            )
        return count_cost(fun.jaxpr if isinstance(fun, ClosedJaxpr) else fun, assumed)
    check_callable(fun, "cost", "a jaxpr")
    static = StaticArgs.of(fun, static_argnums, static_argnames)
    label = f"cost of {label_of(fun)}"

    @like(fun)
    def counted(*args: object, **kwargs: object) -> Cost:
        return count_cost(trace_abstractly(fun, args, kwargs, static, label)[0].jaxpr, assumed)

    return counted
