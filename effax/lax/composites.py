"""Functions that a compiler or a platform may replace by its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar, cast

from effax import tree
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.arrays.axes import static_int
from effax.arrays.binding import bind
from effax.arrays.trace_cache import trace_operands
from effax.ir.errors import BadArgument, LeakedTracer, RefError
from effax.ir.prims import Composite
from effax.lax.carries import call_tree
from effax.lax.leaves import leaves_of
from effax.lowering.mlir_text import attribute
from effax.lowering.xla import devices

__all__ = ["composite", "platform_dependent"]

T = TypeVar("T")

_NAME: Final = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)
"""Names of operations in StableHLO."""


def composite(decomposition: Callable[..., T], name: str, version: int = 0) -> Callable[..., T]:
    """Return a function that a compiler may replace by an operation of its own.

    In programs it is one equation, and in StableHLO a ``composite`` operation, whose meaning is
    ``decomposition``. Its derivatives and its batched form are those of the decomposition.

    Args:
        decomposition: pure function of trees of arrays.
        name: name by which the compiler knows the operation, such as ``"my.square"``.
        version: version of its meaning.

    Returns:
        Function of the same positional arguments. Keyword arguments are attributes, which the
        compiler sees too: numbers, booleans, strings, dtypes, NumPy arrays, lists and dicts of
        these; None is omitted. It raises LeakedTracer for an attribute that is traced, RefError if
        the decomposition has effects.

    Raises:
        BadArgument: ``decomposition`` is not callable, or ``name`` has no namespace.

    >>> square = lax.composite(lambda x: x * x, "my.square")
    >>> square(3.0)
    Array(9., dtype=float32, weak_type=True)
    """
    check_callable(decomposition, "composite")
    if not _NAME.fullmatch(name):
        raise BadArgument("composite takes a name in a namespace", '"my.square"', repr(name))
    number = static_int(version, "the version of composite")

    def call(*args: object, **attributes: object) -> T:
        text = _attributes(name, attributes)
        operands = leaves_of(args, "args")
        of = partial(decomposition, **attributes)
        flat = trace_operands(of, call_tree(*operands.treedef.children()), operands, name)
        if flat.jaxpr.effects:
            raise RefError(
                f"the decomposition of {name} has effects",
                expected="a function of arrays",
                found=str(flat.jaxpr.effects),
            )
        prim = Composite(flat.jaxpr, name, text, number)
        return cast(T, tree.unflatten(flat.out_tree, bind(prim, *flat.consts, *operands.leaves)))

    return call


def _attributes(name: str, given: dict[str, object]) -> str:
    """Return the attributes as text, in the order of their names."""
    leaves = tree.leaves(given)
    if any(isinstance(x, Array) for x in leaves):
        raise LeakedTracer(
            f"an attribute of {name} is an array of the program",
            expected="values that are known when the program is written",
            found=", ".join([k for k, v in given.items() if any(map(_is_array, tree.leaves(v)))]),
            remedy="pass it as a positional argument, or a NumPy array",
        )
    return ", ".join([f"{k} = {attribute(v)}" for k, v in sorted(given.items()) if v is not None])


def _is_array(x: object) -> bool:
    return isinstance(x, Array)


_GPU: Final = ("gpu", "cuda", "rocm")


def platform_dependent(
    *args: object, default: Callable[..., T] | None = None, **per_platform: Callable[..., T]
) -> T:
    """Return the result of the function for the platform of the devices.

    Args:
        args: arguments of the function.
        default: function for all other platforms.
        per_platform: functions by platform, such as ``cpu=`` or ``tpu=``.

    Returns:
        Result of the function.

    Raises:
        BadArgument: there is no function for the platform.

    >>> lax.platform_dependent(jnp.array(2), cpu=lambda x: x + 1, default=lambda x: x)
    Array(3, dtype=int32, weak_type=True)
    """
    platform = devices()[0].platform
    names = _GPU if platform in _GPU else (platform,)
    function = next((per_platform[n] for n in names if n in per_platform), default)
    if function is None:
        raise BadArgument(
            "platform_dependent has no function for the platform of the devices",
            expected=f"{platform}=, or default=",
            found=", ".join(per_platform) or "none",
        )
    return function(*args)
