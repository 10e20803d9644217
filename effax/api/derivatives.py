"""What the differentiating functions share: a call traced, linearised, and its parts run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from effax import tree
from effax.api.auxiliary import WithAux
from effax.api.collector import paused_collector
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import Operand, annotate_errors, atom_in, run
from effax.arrays.config import allowed, config
from effax.arrays.device_array import Array, TracedArray, as_value, from_numpy
from effax.arrays.ref import Ref
from effax.arrays.tracing import (
    FlatArgs,
    FlatFunction,
    TraceOptions,
    flat_args,
    label_of,
    shown_tree,
    trace_flat,
)
from effax.ir.dtypes import FLOAT0, DType, is_complex, is_inexact_dtype, promote
from effax.ir.errors import IllTyped, RefError
from effax.ir.scope import checked_axes
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.trace import current_trace, differs_along, is_shared, shown_ref
from effax.ir.types import ArrayType, RefType, Type, tangent_type
from effax.numpy.promotion import converted
from effax.transforms.framework.runner import as_result, unwrap
from effax.transforms.linearize import Linearized, linearize
from effax.transforms.reverse.engine import fuse, run_backward, run_forward
from effax.transforms.reverse.plan import Composed, Fused, plan_reverse
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.spmd.pvary_insertion import explicit
from effax.transforms.transpose.engine import CotangentSpec, GradValue, NonLinear, transpose
from effax.tree import PyTree, PyTreeDef


class TracedCall(NamedTuple):
    """A call traced on values.

    Attributes:
        flat: the program and the structure of its results.
        args: what the function is called with.
        aux: holds the part of the result that is not differentiated, if there is one.
    """

    flat: FlatFunction
    args: FlatArgs
    aux: WithAux | None

    @property
    def main(self) -> PyTreeDef:
        """The structure of the part of the result that is differentiated; its leaves come first."""
        return self.flat.out_tree if self.aux is None else self.flat.out_tree.children()[0]

    def unflatten_aux(self, outs: Sequence[object]) -> PyTree:
        """The other part, from the program's results."""
        assert self.aux is not None
        return self.aux.joined(outs[self.main.num_leaves :])

    @property
    def n_consts(self) -> int:
        """How many binders of the program are captured constants."""
        return len(self.flat.consts)

    @property
    def operands(self) -> list[Operand]:
        """What the program is run on."""
        return [*self.flat.consts, *self.args.leaves]


def traced_call(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    what: str,
    has_aux: bool = False,
    untouched: Callable[[PyTreeDef], Sequence[bool]] | None = None,
) -> TracedCall:
    """Trace a call; Python may ask for the values of what it is called with.

    ``untouched`` says which leaves may be other things than arrays: they are passed on.
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
    """Inside of a ``shard_map`` that is checked: the program that tells shared from different."""
    axes = checked_axes()
    if not axes:
        return flat
    operands = [*flat.consts, *leaves]
    differs = tuple([differs_along(x) for x in operands])
    shared = frozenset([i for i, x in enumerate(operands) if isinstance(x, Ref) and is_shared(x)])
    return flat._replace(jaxpr=explicit(flat.jaxpr, differs, axes, shared))


class Residuals(NamedTuple):
    """A linearised call: its results, and the linear program with its residuals.

    ``linear`` maps residuals, then tangents, to the tangents that ``out_tangents`` marks.
    """

    outs: list[Array]
    values: list[Operand]
    linear: Jaxpr
    in_tangents: tuple[bool, ...]
    out_tangents: tuple[bool, ...]


def linearized(call: TracedCall, mask: Sequence[bool]) -> Residuals:
    """Run a call and keep what its linear part needs.

    Args:
        call: the traced call.
        mask: which leaves of the arguments are differentiated.
    """
    full = (*[False] * call.n_consts, *mask)
    operands = call.operands
    with paused_collector(), annotate_errors(operands):
        done: Linearized = unwrap(linearize(call.flat.jaxpr, full))
    results = run(done.primal, operands)
    n = len(call.flat.jaxpr.outs)
    values = [r.pick(operands, results) for r in done.residuals]
    return Residuals(list(results[:n]), values, done.linear, tuple(mask), done.out_tangents)


class Pulled(NamedTuple):
    """A call's results, and the cotangents of its differentiated leaves, None for zero."""

    outs: list[Array]
    cts: list[Array | None]


def reversed_call(
    call: TracedCall, mask: Sequence[bool], cotangent: Callable[[], Array]
) -> Pulled | None:
    """Run a call forward and backward at once; return None where the plan is ``Composed``.

    Args:
        call: the traced call.
        mask: which leaves of the arguments are differentiated.
        cotangent: gives that of the first result; the others have none.
    """
    jaxpr = call.flat.jaxpr
    full = (*[False] * call.n_consts, *mask)
    wanted = [i == 0 for i in range(len(jaxpr.outs))]
    with paused_collector():
        plan = unwrap(_plan(jaxpr, full, wanted, DEFAULT_RULES))
        if isinstance(plan, Composed):
            return None
        trace = current_trace()
        if trace is None:
            return _run_now(plan, call.operands, cotangent)
        tape = run_forward(plan, trace.builder, [atom_in(trace, x) for x in call.operands])
        outs: list[Array] = [TracedArray(trace, a) for a in tape.outs]
        cts: list[Atom | None] = [None] * len(outs)
        if plan.reached[0]:
            cts[0] = atom_in(trace, cotangent())
        found = run_backward(plan, trace.builder, tape, cts)
    return Pulled(outs, [None if a is None else TracedArray(trace, a) for a in found])


_plan: Final = as_result(plan_reverse)


def _run_now(plan: Fused, operands: Sequence[Operand], cotangent: Callable[[], Array]) -> Pulled:
    made = fuse(plan)
    results = run(made.jaxpr, [*operands, cotangent()])
    n = len(plan.jaxpr.outs)
    rest = iter(results[n:])
    return Pulled(list(results[:n]), [next(rest) if has else None for has in made.nonzero])


def pulled_back(
    res: Residuals,
    ct_specs: Sequence[CotangentSpec],
    refs: Sequence[Operand],
    cts: Sequence[Array | None],
) -> list[Array | None]:
    """Cotangents of the differentiated leaves from those of the results that have tangents.

    Args:
        res: the linearised call.
        ct_specs: one entry a differentiated leaf.
        refs: the references of the entries that are ``GradRef``, in order.
        cts: one cotangent a result with a tangent; None is zero.

    Returns:
        One entry a leaf that is ``GradValue``, in order: its cotangent, or None for zero.
    """
    n = len(res.values)
    present = [c for c in cts if c is not None]
    full = [*[NonLinear()] * n, *ct_specs]
    with paused_collector():
        done = unwrap(transpose(res.linear, full, [c is not None for c in cts]))
    results = iter(run(done.jaxpr, [*res.values, *refs, *present]))
    nonzero = iter(done.nonzero)
    return [next(results) if next(nonzero) else None for w in ct_specs if isinstance(w, GradValue)]


def zero_of(type_: Type) -> Array:
    """A cotangent of zero for a value of this type; ``float0`` for one without tangents."""
    if not is_inexact_dtype(type_.dtype):
        return from_numpy(np.zeros(type_.shape, FLOAT0))
    return from_numpy(np.zeros(type_.shape, type_.dtype))


def tangent_for(type_: Type, value: Array | None) -> Array:
    """A (co)tangent as the user gets it: as weak as the value that it belongs to; None is zero.

    Inside of programs tangents are never weak.
    """
    found = zero_of(type_) if value is None else value
    weak = isinstance(type_, ArrayType) and type_.weak and is_inexact_dtype(type_.dtype)
    return converted(found, found.dtype, True) if weak else found


def checked_cotangents(
    cts: object,
    out_tree: PyTreeDef,
    types: Sequence[Type],
    what: str,
    names: Sequence[str] | None = None,
) -> list[Array]:
    """The leaves of a tree of (co)tangents, checked against the types that it belongs to.

    Args:
        cts: the tree.
        out_tree: the structure that it must have.
        types: the types of what its leaves belong to.
        what: what it is called in messages.
        names: what its leaves are called.

    Raises:
        IllTyped: structure, shape or dtype differ.
    """
    leaves, treedef = tree.flatten(cts)
    if treedef != out_tree:
        raise IllTyped(
            f"{what}: another structure than what they belong to",
            expected=shown_tree(out_tree),
            found=shown_tree(treedef),
        )
    told = names or [what + path for path in tree.paths(cts)]
    return [_checked_leaf(x, t, name) for x, t, name in zip(leaves, types, told, strict=True)]


def _checked_leaf(leaf: object, type_: Type, what: str) -> Array:
    ct_spec = tangent_type(type_)
    x = as_value(leaf, what)
    if not is_inexact_dtype(ct_spec.dtype):
        if x.shape != ct_spec.shape or x.dtype != FLOAT0:
            raise IllTyped(
                f"{what} must be zero, since {type_} has no tangents",
                expected=f"float0[{','.join(map(str, ct_spec.shape))}]",
                found=str(x.type),
                remedy=f"pass `numpy.zeros({ct_spec.shape}, effax.float0)`",
            )
        return x
    weak = x.weak_type and x.shape == ct_spec.shape and promotes_to(x.dtype, ct_spec.dtype)
    if x.shape != ct_spec.shape or (x.dtype != ct_spec.dtype and not weak):
        raise IllTyped(f"{what} has the wrong type", expected=str(ct_spec), found=str(x.type))
    return converted(x, ct_spec.dtype, False)


def promotes_to(weak: DType, dtype: DType) -> bool:
    """Whether a weak value yields to this dtype."""
    return promote([(weak, True), (dtype, False)], config.enable_x64)[0] == dtype


def check_differentiable(x: Operand, name: str, what: str, allow_int: bool | None) -> bool:
    """Whether a leaf has tangents. Raises IllTyped for one that cannot be differentiated.

    ``allow_int``: whether integers may be, without effect; None: ``what`` has no such option.
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
    """Raises IllTyped where complex and holomorphic do not agree."""
    if is_complex(type_.dtype) != holomorphic and is_inexact_dtype(type_.dtype):
        raise IllTyped(
            f"{what}: {name} is {'not ' if holomorphic else ''}complex",
            expected="complex" if holomorphic else "real",
            found=str(type_),
            remedy=None if holomorphic else "pass holomorphic=True for a holomorphic function",
        )
