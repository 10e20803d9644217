"""The common part of the differentiating functions: trace a call, linearize it, run its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from effax.api.auxiliary import WithAux
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.arrays.binding import Operand, atom_in, run
from effax.arrays.collector import paused_collector
from effax.arrays.config import allowed
from effax.arrays.ref import Ref
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import (
    FlatArgs,
    FlatFunction,
    TraceOptions,
    flat_args,
    label_of,
    trace_flat,
)
from effax.arrays.transformed import transformed
from effax.ir.dtypes import is_complex, is_inexact_dtype
from effax.ir.errors import IllTyped, RefError
from effax.ir.scope import checked_axes
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.trace import current_trace, differs_along, is_shared, shown_ref
from effax.ir.types import RefType, Type
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.runner import as_result, unwrap
from effax.transforms.linearize import Linearized, linearize
from effax.transforms.partial_eval.partial_eval import FromInput, Residual
from effax.transforms.reverse.engine import Reverse, fuse, run_backward, run_forward
from effax.transforms.reverse.plan import Composed, Fused, plan_reverse
from effax.transforms.spmd.pvary_insertion import insert_pvary
from effax.transforms.transpose.engine import CotangentSpec, GradValue, NonLinear, transpose
from effax.transforms.transpose.logs import Harvest, harvested, logging
from effax.tree import PyTreeDef


class TracedCall(NamedTuple):
    """A call traced on values.

    Attributes:
        flat: the program and the structure of its results.
        args: the arguments of the call.
        aux: the auxiliary part of the result, which is not differentiated; or None.
    """

    flat: FlatFunction
    args: FlatArgs
    aux: WithAux | None

    @property
    def main(self) -> PyTreeDef:
        """Return the structure of the differentiated part of the result; its leaves come first."""
        return self.flat.out_tree if self.aux is None else self.flat.out_tree.children()[0]

    def unflatten_aux(self, outs: Sequence[object]) -> object:
        """Return the auxiliary part, from the program's results."""
        assert self.aux is not None
        return self.aux.joined(outs[self.main.num_leaves :])

    @property
    def n_consts(self) -> int:
        """Return the number of the program's binders that are captured constants."""
        return len(self.flat.consts)

    @property
    def operands(self) -> list[Operand]:
        """Return the operands of the program: constants, then arguments."""
        return [*self.flat.consts, *self.args.leaves]


def traced_call(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    what: str,
    has_aux: bool = False,
    untouched: Callable[[PyTreeDef], Sequence[bool]] | None = None,
) -> TracedCall:
    """Trace a call; Python may read the values of its arguments.

    ``untouched`` marks leaves that need not be arrays: those are passed unchanged.
    """
    check_callable(fun, what)
    aux = WithAux(fun, what) if has_aux else None
    flat_in = flat_args(fun, args, kwargs, untouched)
    types = [x.type for x in flat_in.leaves]
    options = TraceOptions(flat_in.leaves, on_values=True, fixed=flat_in.fixed)
    label = f"{what}({label_of(fun)})"
    flat = trace_flat(aux or fun, flat_in.treedef, types, flat_in.names, label, options)
    return TracedCall(_with_variance(flat, flat_in.leaves), flat_in, aux)


def _with_variance(flat: FlatFunction, leaves: Sequence[Operand]) -> FlatFunction:
    """Convert a call in a checked ``shard_map`` to a program with explicit ``pvary``."""
    axes = checked_axes()
    if not axes:
        return flat
    operands = [*flat.consts, *leaves]
    differs = tuple([differs_along(x) for x in operands])
    shared = frozenset([i for i, x in enumerate(operands) if isinstance(x, Ref) and is_shared(x)])
    return flat._replace(jaxpr=insert_pvary(flat.jaxpr, differs, axes, shared))


class Residuals(NamedTuple):
    """A linearised call: its results, and the linear program with its residuals.

    ``linear`` maps residuals, then tangents, to the tangents that ``out_tangents`` marks.
    ``sources`` has the number of the leaf of the arguments that a residual is, or None.
    """

    outs: list[Array]
    values: list[Operand]
    linear: Jaxpr
    in_tangents: tuple[bool, ...]
    out_tangents: tuple[bool, ...]
    sources: tuple[int | None, ...] = ()


def linearized(call: TracedCall, mask: Sequence[bool]) -> Residuals:
    """Run a call and keep what its linear part needs.

    Args:
        call: the traced call.
        mask: which leaves of the arguments are differentiated.
    """
    full = (*[False] * call.n_consts, *mask)
    operands = call.operands
    jaxpr = call.flat.jaxpr
    done: Linearized = transformed(
        jaxpr, (linearize, full), operands, lambda: unwrap(linearize(jaxpr, full))
    )
    results = run(done.primal, operands)
    n = len(jaxpr.outs)
    values = [r.pick(operands, results) for r in done.residuals]
    sources = tuple([_leaf_of(r, call) for r in done.residuals])
    return Residuals(
        list(results[:n]), values, done.linear, tuple(mask), done.out_tangents, sources
    )


def _leaf_of(residual: Residual, call: TracedCall) -> int | None:
    """Return the number of the leaf of the arguments that a residual is; None for others."""
    at = residual.index - call.n_consts if isinstance(residual, FromInput) else -1
    return at if at >= 0 and not isinstance(call.args.leaves[at], Ref) else None


class Pulled(NamedTuple):
    """A call's results, and the cotangents of its differentiated leaves; None is zero."""

    outs: list[Array]
    cts: list[Array | None]


def reversed_call(
    call: TracedCall, mask: Sequence[bool], cotangent: Callable[[], Array]
) -> Pulled | None:
    """Run a call forward and backward at once; return None where the plan is ``Composed``.

    Args:
        call: the traced call.
        mask: which leaves of the arguments are differentiated.
        cotangent: returns that of the first result; the others have none.
    """
    jaxpr = call.flat.jaxpr
    full = (*[False] * call.n_consts, *mask)
    wanted = [i == 0 for i in range(len(jaxpr.outs))]

    def plan_of_call() -> Fused | Composed:
        return unwrap(_plan(jaxpr, full, wanted, rules_or_default(None)))

    trace = current_trace()
    if trace is None:
        operands = call.operands
        made = transformed(jaxpr, (fuse, full), operands, lambda: _fused(plan_of_call()))
        return None if made is None else _run_now(made, len(jaxpr.outs), operands, cotangent)
    with paused_collector():
        plan = plan_of_call()
        if isinstance(plan, Composed):
            return None
        tape = run_forward(plan, trace.builder, [atom_in(trace, x) for x in call.operands])
        outs: list[Array] = [TracedArray(trace, a) for a in tape.outs]
        cts: list[Atom | None] = [None] * len(outs)
        if plan.reached[0]:
            cts[0] = atom_in(trace, cotangent())
        found = run_backward(plan, trace.builder, tape, cts)
    return Pulled(outs, [None if a is None else TracedArray(trace, a) for a in found])


_plan: Final = as_result(plan_reverse)


def _fused(plan: Fused | Composed) -> Reverse | None:
    return None if isinstance(plan, Composed) else fuse(plan)


def _run_now(
    made: Reverse, n: int, operands: Sequence[Operand], cotangent: Callable[[], Array]
) -> Pulled:
    """Run both sweeps of a program of ``n`` results."""
    results = run(made.jaxpr, [*operands, cotangent()])
    rest = iter(results[n:])
    return Pulled(list(results[:n]), [next(rest) if has else None for has in made.nonzero])


def pulled_back(
    res: Residuals,
    ct_specs: Sequence[CotangentSpec],
    refs: Sequence[Operand],
    cts: Sequence[Array | None],
) -> list[Array | None]:
    """Return cotangents of the differentiated leaves from those of the results with tangents.

    Args:
        res: the linearised call.
        ct_specs: one entry a differentiated leaf.
        refs: the references of the entries that are ``GradRef``, in order.
        cts: one cotangent a result with a tangent; None is zero.

    Returns:
        One entry a leaf that is ``GradValue``, in order: its cotangent, or None for zero.
    """
    return pulled_back_with_logs(res, ct_specs, refs, cts, None)


def pulled_back_with_logs(
    res: Residuals,
    ct_specs: Sequence[CotangentSpec],
    refs: Sequence[Operand],
    cts: Sequence[Array | None],
    logs: dict[str, Array] | None,
) -> list[Array | None]:
    """Return :func:`pulled_back`, and add the values that backward rules log, unless None."""
    n = len(res.values)
    present = [c for c in cts if c is not None]
    full = [*[NonLinear()] * n, *ct_specs]
    has = tuple([c is not None for c in cts])
    linear = res.linear if logs is None else logging(res.linear)
    done = transformed(
        linear, (transpose, *full, has), [], lambda: unwrap(transpose(linear, full, has))
    )
    made = Harvest(done.jaxpr, ()) if logs is None else harvested(done.jaxpr)
    results = iter(run(made.jaxpr, [*res.values, *refs, *present]))
    nonzero = iter(done.nonzero)
    wanted = [w for w in ct_specs if isinstance(w, GradValue)]
    found = [next(results) if next(nonzero) else None for _ in wanted]
    if logs is not None:
        logs.update(zip(made.paths, results, strict=True))
    return found


def check_differentiable(x: Operand, name: str, what: str, allow_int: bool | None) -> bool:
    """Return whether a leaf has tangents. Raises IllTyped where it is not differentiable.

    ``allow_int``: whether integers are allowed, without effect; None: not an option of the caller.
    """
    type_ = x.type
    if isinstance(type_, RefType):
        raise RefError(
            f"{what} with respect to {name}, which is a reference",
            expected="an array",
            found=shown_ref(x),
            remedy="use `vjp`, and bind a gradient ref with `with_refs`",
        )
    if is_inexact_dtype(type_.dtype):
        return True
    if allow_int:
        return False
    remedy = "" if allow_int is None else ", or pass allow_int=True"
    raise IllTyped(
        f"{what} with respect to {name}, which is not real-valued",
        expected="a float (or complex, with holomorphic) dtype",
        found=str(type_),
        remedy=f"convert it to {allowed(float)}{remedy}",
    )


def check_real(type_: Type, name: str, what: str, holomorphic: bool) -> None:
    """Raise IllTyped where the dtype and ``holomorphic`` do not agree."""
    if is_complex(type_.dtype) != holomorphic and is_inexact_dtype(type_.dtype):
        raise IllTyped(
            f"{what}: {name} is {'not ' if holomorphic else ''}complex",
            expected="complex" if holomorphic else "real",
            found=str(type_),
            remedy=None if holomorphic else "pass holomorphic=True for a holomorphic function",
        )
