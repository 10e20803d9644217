"""Types, values and programs under the names of ``jax.core`` and ``jax.extend.core``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, cast
from weakref import ReferenceType, ref

from effax.api.interpret import eval_jaxpr as eval_program
from effax.api.operations import applied
from effax.api.staging import typeof
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.traced_array import TracedArray, TraceOf
from effax.drop_in.application import NamedPrimitive as Primitive
from effax.effects import NO_EFFECTS, Row
from effax.ir.analysis.check import checked
from effax.ir.dtypes import DType, as_dtype
from effax.ir.edit.alpha import renumbered
from effax.ir.edit.operations import equation
from effax.ir.errors import BadArgument, IllTyped, InconclusiveDimension
from effax.ir.operation import Operation
from effax.ir.recursion import subjaxprs_of
from effax.ir.source import DebugInfo, SourceInfo
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Lit, Var
from effax.ir.syntax import Jaxpr as Program
from effax.ir.trace import Trace as EffaxTrace
from effax.ir.trace import current_trace, eager
from effax.ir.types import ArrayType, RefType, Type, array_type

__all__ = [
    "AbstractValue",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Trace",
    "TraceTag",
    "Value",
    "Var",
    "check_jaxpr",
    "concrete_or_error",
    "eval_context",
    "find_top_trace",
    "gensym",
    "get_aval",
    "get_opaque_trace_state",
    "is_constant_dim",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "max_dim",
    "min_dim",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "trace_state_clean",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

Literal = Lit
Effects = Row
Value = object
JaxprTypeError = IllTyped
InconclusiveDimensionOperation = InconclusiveDimension

no_effects: Final = NO_EFFECTS


def _not_made(*args: object, **kwargs: object) -> object:
    raise BadArgument(
        "an instance of this class of JAX cannot be made",
        remedy="`jax.make_jaxpr(f)(x)` returns a program, whose equations can be interpreted",
    )


class _Kinds(type):
    """The class of names of JAX whose instances are those of classes of effax."""

    kinds: tuple[type, ...]
    make: Callable[..., object] = staticmethod(_not_made)

    def __instancecheck__(cls, instance: object) -> bool:
        # A subclass, which a program defines, has no instances.
        return isinstance(instance, vars(cls).get("kinds", ()))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, vars(cls).get("kinds", ())) or super().__subclasscheck__(
            subclass
        )

    def __call__(cls, *args: object, **kwargs: object) -> object:
        return cls.make(*args, **kwargs)


class AbstractValue(metaclass=_Kinds):
    """The types of arrays and of references."""

    kinds: tuple[type, ...] = (ArrayType, RefType)


class TraceKind(metaclass=_Kinds):
    """The traces of effax; programs cannot define others."""

    kinds: tuple[type, ...] = (EffaxTrace,)


Trace = TraceKind


class Effect:
    """The base of effects of primitives that a program declares."""


class DropVar:
    """The class of results that no equation uses; effax has variables in their place."""


class TraceTag:
    """An identity of traces."""


def _jaxpr(
    constvars: Sequence[Var],
    invars: Sequence[Var],
    outvars: Sequence[Atom],
    eqns: Sequence[Eqn],
    effects: object = no_effects,
    debug_info: object = None,
    **options: object,
) -> object:
    made = Program([*constvars, *invars], eqns, outvars, len(constvars))
    return renumbered(made)


class JaxprKind(metaclass=_Kinds):
    """``Jaxpr(constvars, invars, outvars, eqns, ...)``; the instances are effax's programs.

    Variables are numbered anew.
    """

    kinds: tuple[type, ...] = (Program,)
    make: Callable[..., object] = staticmethod(_jaxpr)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Operation,
    params: Mapping[str, object],
    effects: object = no_effects,
    source_info: SourceInfo | None = None,
    ctx: object = None,
) -> Eqn:
    """Return an equation of a primitive and its parameters.

    Raises:
        BadArgument: a parameter is missing, or unknown.
        IllTyped: the operands do not fit.
    """
    prim, operands = applied(primitive, cast("Sequence[Operand]", invars), params)
    ins = cast("Sequence[Atom]", operands)
    source = source_info.source if source_info is not None else None
    return equation(prim, ins, outvars, source)


class EqnKind(metaclass=_Kinds):
    """``JaxprEqn(invars, outvars, primitive, params)``; the instances are effax's equations."""

    kinds: tuple[type, ...] = (Eqn,)
    make: Callable[..., object] = staticmethod(new_jaxpr_eqn)


Jaxpr = JaxprKind
JaxprEqn = EqnKind


def gensym(suffix: str = "") -> Callable[[Type], Var]:
    """Return a function that returns a new variable of a type."""
    numbers = count(FIRST)
    return lambda aval: Var(next(numbers), aval)


FIRST: Final = 1 << 20
"""The number of the first variable of ``gensym``; larger than those of most programs."""


def jaxpr_as_fun(jaxpr: ClosedJaxpr) -> Callable[..., list[Array]]:
    """Return the function that runs a program."""

    def run(*args: object) -> list[Array]:
        return eval_program(jaxpr, *args)

    return run


def jaxprs_in_params(params: Mapping[str, object]) -> Iterator[Program]:
    """Return the programs among parameters."""
    for value in params.values():
        for x in value if isinstance(value, tuple | list) else (value,):
            if isinstance(x, Program):
                yield x
            elif isinstance(x, ClosedJaxpr):
                yield x.jaxpr


def subjaxprs(jaxpr: Program | ClosedJaxpr) -> Iterator[Program]:
    """Return the programs in the equations of a program."""
    return iter(subjaxprs_of(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr))


def check_jaxpr(jaxpr: Program) -> None:
    """Raise IllTyped unless a program is well typed."""
    checked(jaxpr)


def get_aval(x: object) -> Type:
    """Return the type of a value."""
    return typeof(x)


def valid_jaxtype(x: object) -> bool:
    """Return whether a value is an array or a number."""
    try:
        typeof(x)
    except (TypeError, ValueError):
        return False
    return not isinstance(x, ArrayType | RefType)


def mapped_aval(size: int, axis: int | None, aval: ArrayType) -> ArrayType:
    """Return the type of one element along an axis; the type itself for None."""
    if axis is None:
        return aval
    shape = list(aval.shape)
    if shape.pop(axis) != size:
        raise BadArgument("an axis has another size", expected=str(size), found=str(aval))
    return aval.update(shape=tuple(shape))


def unmapped_aval(
    size: int, axis: int | None, aval: ArrayType, explicit_mesh_axis: object = None
) -> ArrayType:
    """Return the type with one more axis; the type itself for None."""
    if axis is None:
        return aval
    shape = list(aval.shape)
    shape.insert(axis, size)
    return aval.update(shape=tuple(shape))


def primal_dtype_to_tangent_dtype(dtype: object) -> DType:
    """Return the dtype of tangents of values of a dtype."""
    return array_type((), as_dtype(dtype)).to_tangent_aval().dtype


def concrete_or_error(
    force: Callable[[object], object] | None, value: object, context: str = ""
) -> object:
    """Return ``force(value)``. Raise ConcretizationError for a tracer without a value."""
    if isinstance(value, TracedArray):
        value.numpy()
    return value if force is None else force(value)


def is_constant_dim(dim: object) -> bool:
    """Return whether a size is a number."""
    return not is_symbolic_dim(dim)


def max_dim(a: int, b: int) -> int:
    """Return the larger of two sizes."""
    return max(a, b)


def min_dim(a: int, b: int) -> int:
    """Return the smaller of two sizes."""
    return min(a, b)


class OpaqueTraceState:
    """The trace that is built at some time; equal for the same trace."""

    def __init__(self, trace: EffaxTrace | None) -> None:
        self._trace: ReferenceType[EffaxTrace] | None = None if trace is None else ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace == other._trace

    def __hash__(self) -> int:
        return hash(self._trace)


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return the identity of the current trace."""
    return OpaqueTraceState(current_trace())


def find_top_trace(xs: object) -> TraceOf | None:
    """Return the current trace; None outside of programs that are traced."""
    trace = current_trace()
    return None if trace is None else TraceOf(trace)


def trace_state_clean() -> bool:
    """Return whether no program is being traced."""
    return current_trace() is None


@contextmanager
def take_current_trace() -> Iterator[EffaxTrace | None]:
    """Leave the current trace in the block, and return it."""
    trace = current_trace()
    with eager():
        yield trace


@contextmanager
def set_current_trace(trace: EffaxTrace | None) -> Iterator[None]:
    """Leave the current trace in the block. Raise BadArgument for another trace than None."""
    if trace is not None:
        raise BadArgument("a trace cannot be entered again", "None", type(trace).__name__)
    with eager():
        yield


eval_context = eager


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:  # noqa: N802  # JAX's name
    """Return whether a program without known values is traced."""
    trace = current_trace()
    return trace is not None and not trace.on_values


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:  # noqa: N802  # JAX's name
    """Return whether a named axis is bound."""
    return nonempty_axis_env_DO_NOT_USE()


def unsafe_get_axis_names_DO_NOT_USE() -> list[str]:  # noqa: N802  # JAX's name
    """Return the named axes in scope."""
    trace = current_trace()
    return [] if trace is None else list(trace.axes)


def nonempty_axis_env_DO_NOT_USE() -> bool:  # noqa: N802  # JAX's name
    """Return whether a named axis is in scope."""
    return bool(unsafe_get_axis_names_DO_NOT_USE())
