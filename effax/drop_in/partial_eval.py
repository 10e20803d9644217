"""Tracing and partial evaluation, under the names of ``jax.interpreters.partial_eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from effax import transforms as passes
from effax.api.interpret import eval_jaxpr
from effax.api.operations import closed
from effax.arrays.binding import atom_in, handle
from effax.arrays.conversion import as_value
from effax.arrays.traced_array import TracedArray
from effax.drop_in.linear_util import WrappedFun
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.trace import Trace, Traced, current_trace, tracing
from effax.ir.types import Type
from effax.transforms.framework.runner import unwrap

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "abstract_eval_fun",
    "close_jaxpr",
    "convert_constvars_jaxpr",
    "dce_jaxpr",
    "dce_jaxpr_consts",
    "prune_closed_jaxpr_outputs",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]


DynamicJaxprTracer = TracedArray
JaxprTracer = TracedArray


class PartialVal(NamedTuple):
    """A value that is unknown, of which the type is given, or a known one."""

    aval: Type | None
    const: object

    @classmethod
    def unknown(cls, aval: Type) -> PartialVal:
        """Return an unknown value of a type."""
        return cls(aval, None)

    @classmethod
    def known(cls, const: object) -> PartialVal:
        """Return a known value."""
        return cls(None, const)

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self.aval is None

    def get_known(self) -> object:
        """Return the value, or None if it is unknown."""
        return self.const if self.aval is None else None

    def get_aval(self) -> Type:
        """Return the type."""
        return as_value(self.const).type if self.aval is None else self.aval


def _traced(fun: WrappedFun, vals: Sequence[PartialVal]) -> Traced:
    trace = Trace(handle, fun.__name__, current_trace())
    with tracing(trace):
        args = [trace.bind(v.aval) if v.aval is not None else v.const for v in vals]
        found = cast("Sequence[object]", fun.call_wrapped(*args))
        return trace.finish([atom_in(trace, as_value(x, "a result")) for x in found])


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Type], **options: object
) -> tuple[Jaxpr, list[Type], list[object]]:
    """Return the program of a function of a list of arrays, its result types and constants."""
    jaxpr, consts = _traced(fun, [PartialVal.unknown(t) for t in in_avals])
    return jaxpr, list(jaxpr.out_types), list(consts)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[object]]:
    """Return the program of the results that depend on unknown values.

    Args:
        fun: a function of a list of arrays.
        pvals: its arguments.
        instantiate: which results the program returns even if they are known.

    Returns:
        The program, a partial value for each result, and the constants of the program.
    """
    jaxpr, consts = _traced(fun, pvals)
    n = len(consts)
    mask = [i < n for i in range(len(jaxpr.binders))]
    parts = unwrap(passes.partial_eval(jaxpr, mask, instantiate=instantiate))
    values: list[object] = list(eval_jaxpr(parts.known, *consts))
    rest, unknown = iter(values), iter(parts.unknown.out_types)
    outs = [
        PartialVal.known(next(rest)) if has else PartialVal.unknown(next(unknown))
        for has in parts.known_outs
    ]
    residuals = [origin.pick(consts, values) for origin in parts.residuals]
    return parts.unknown.replace(n_consts=len(residuals)), outs, residuals


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Return a program without dead code, and which of its inputs it keeps.

    The entries of inputs include those of constants, which come first.

    Args:
        jaxpr: the program.
        used_outputs: which results are used.
        instantiate: which inputs stay even if they are unused.
    """
    n = len(jaxpr.outs)
    used = [used_outputs] * n if isinstance(used_outputs, bool) else list(used_outputs)
    keep = instantiate
    if not isinstance(keep, bool) and len(keep) < len(jaxpr.binders):
        keep = [*[False] * jaxpr.n_consts, *keep]
    found = unwrap(passes.dce(jaxpr, used, keep))
    kept = [keep] * len(jaxpr.binders) if isinstance(keep, bool) else keep
    return found.jaxpr, [a or b for a, b in zip(found.used_ins, kept, strict=True)]


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Return a program without dead code, and which of its constants and inputs it keeps."""
    made, kept = dce_jaxpr(jaxpr, used_outputs, instantiate)
    return made, kept[: jaxpr.n_consts], kept[jaxpr.n_consts :]


def prune_closed_jaxpr_outputs(jaxpr: ClosedJaxpr, used_outputs: Sequence[bool]) -> ClosedJaxpr:
    """Return a program with some of its results only, and all of its inputs."""
    return ClosedJaxpr(dce_jaxpr(jaxpr.jaxpr, used_outputs, True)[0], jaxpr.consts)


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return a program with no constants as a closed one."""
    return closed(jaxpr)


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program whose constants are its first inputs."""
    return jaxpr.replace(n_consts=0)


def abstract_eval_fun(fun: WrappedFun, *avals: Type, **params: object) -> list[Type]:
    """Return the types of the results of a function of arrays of these types."""
    return trace_to_jaxpr_dynamic(fun, avals)[1]
