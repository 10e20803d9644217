"""The program and the values of a call, for its evaluation outside of the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from effax import tree
from effax.api.captures import capture_names
from effax.api.jit import JitFunction
from effax.api.staging import is_abstract, trace_abstractly
from effax.api.static import StaticArgs
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import EagerRef
from effax.arrays.tracing import FlatFunction, label_of
from effax.arrays.view_arguments import open_views
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Value
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.types import Type
from effax.tree import PyTreeDef

NO_STATIC: Final = StaticArgs((), ())
"""No static arguments."""

Function = Callable[..., object] | Jaxpr | ClosedJaxpr
"""A function of trees, or a program of one argument for each input."""


class EvaluatedCall(NamedTuple):
    """A call: its program, and the values of its inputs.

    Attributes:
        jaxpr: the program.
        args: the values of its inputs; copies of the contents of references.
        out_tree: the structure of the result; None for a program, which returns a list.
        label: the name of the function.
    """

    jaxpr: Jaxpr
    args: tuple[Value, ...]
    out_tree: PyTreeDef | None
    label: str


def call_of(
    fun: Function,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    static: StaticArgs = NO_STATIC,
    what: str = "explore",
) -> EvaluatedCall:
    """Trace a function for arguments, and return the program and the values.

    A jitted function is traced with its passes. Nothing is compiled.

    Raises:
        BadArgument: ``fun`` is neither callable nor a program, or an argument has no value.
        IllTyped: the number of arguments of a program is wrong, or the type of one.
    """
    if isinstance(fun, Jaxpr | ClosedJaxpr):
        return _call_of_program(fun, args, kwargs, what)
    for x in tree.leaves((args, dict(kwargs))):
        if is_abstract(x):
            raise BadArgument(
                f"debug.{what} evaluates the function, and needs values",
                expected="arrays, numbers and references",
                found=str(x),
            )
    flat, leaves = _traced(fun, args, kwargs, static, what)
    values = [_value(x) for x in (*flat.consts, *leaves)]
    given = flat.jaxpr.names[len(flat.consts) :]
    names = [*capture_names(fun, flat.consts, given), *given]
    return EvaluatedCall(
        flat.jaxpr.replace(names=names), tuple(values), flat.out_tree, label_of(fun)
    )


def check_function(fun: object, what: str) -> None:
    """Raise BadArgument for what is neither a function nor a program."""
    if not callable(fun) and not isinstance(fun, Jaxpr | ClosedJaxpr):
        raise BadArgument(
            f"debug.{what} takes a function or a program",
            expected="a callable, a Jaxpr or a ClosedJaxpr",
            found=f"{type(fun).__name__}: {fun!r:.60}",
        )


def static_of(fun: Function, static_argnums: int | Sequence[int]) -> StaticArgs:
    """Return the static arguments of a function. Raises BadArgument."""
    return StaticArgs.of(fun, static_argnums, ()) if callable(fun) else NO_STATIC


def _traced(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    static: StaticArgs,
    what: str,
) -> tuple[FlatFunction, Sequence[object]]:
    if isinstance(fun, JitFunction):
        return fun.traced_call(args, kwargs)
    flat, _ = trace_abstractly(fun, args, kwargs, static, f"{what} of {label_of(fun)}")
    _, dynamic, named = static.split(fun, *open_views((tuple(args), dict(kwargs))))
    return flat, tree.leaves((tuple(dynamic), dict(named)))


def _call_of_program(
    fun: Jaxpr | ClosedJaxpr, args: Sequence[object], kwargs: Mapping[str, object], what: str
) -> EvaluatedCall:
    jaxpr, consts = (fun, ()) if isinstance(fun, Jaxpr) else (fun.jaxpr, fun.consts)
    values = [_value(x) for x in (*consts, *args)]
    if kwargs or len(values) != len(jaxpr.binders):
        raise IllTyped(
            f"debug.{what}: a program takes one argument for each input",
            expected=f"{len(jaxpr.binders) - len(consts)}: "
            f"({', '.join(map(str, jaxpr.in_types[len(consts) :]))})",
            found=f"{len(args)} by position, {len(kwargs)} by name",
        )
    of_types = zip(values, jaxpr.in_types, strict=True)
    typed = [_typed(x, t, jaxpr.name_of(i)) for i, (x, t) in enumerate(of_types)]
    return EvaluatedCall(jaxpr, tuple(typed), None, "program")


def _typed(value: Value, type_: Type, name: str) -> Value:
    """Return the value as the type of an input. Raises IllTyped."""
    if value.shape == type_.shape and (value.dtype == type_.dtype or not value.shape):
        return value.astype(type_.dtype)
    raise IllTyped(
        f"{name} of the program has another type",
        expected=str(type_),
        found=f"{value.dtype}{list(value.shape)}",
    )


def _value(x: object) -> Value:
    """Return the value of a leaf; of a reference, a copy of its contents."""
    if isinstance(x, EagerRef):
        return x.read_now()
    array = as_value(x)
    if not isinstance(array, DeviceArray):
        raise BadArgument(
            "an argument is a tracer, which has no value",
            expected="a call outside of traced functions",
            found=str(array),
        )
    return np.asarray(array.numpy())
