"""Linear functions: ``linear_transpose``, and ``linear_call`` with a custom transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from effax import tree
from effax.api.custom.results import cast_result
from effax.api.staging import trace_abstractly
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind, run
from effax.arrays.collector import paused_collector
from effax.arrays.conversion import as_value, from_numpy
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.arrays.rules.call_rules import CallRule, CallRules, call_rules, rule_of
from effax.arrays.rules.call_site import CallSite, RuledFunction, with_rules
from effax.arrays.tangents import checked_cotangents, tangent_for
from effax.arrays.tracing import (
    FlatFunction,
    arg_names,
    check_same_tree,
    label_of,
    result_names,
    trace_flat,
)
from effax.effects import Accum, Write
from effax.ir.dtypes import is_integer
from effax.ir.errors import IllTyped, RefError, TransformError
from effax.ir.primitive import Owner
from effax.ir.prims import BackwardRule, CustomLinear, SparseBackward
from effax.ir.syntax import Jaxpr
from effax.ir.trace import current_trace, shown_ref
from effax.ir.types import Type, is_inexact
from effax.lax.leaves import leaves_of
from effax.lazy.dataclasses import dataclass
from effax.transforms.discharge import discharge
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.runner import unwrap
from effax.transforms.framework.zero_propagation import propagate_zeros
from effax.transforms.rules.custom.contents import on_contents
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.engine import GradValue, NonLinear, transpose
from effax.tree import PyTree, PyTreeDef
from effax.tree.registry import Partial

Res = TypeVar("Res")
Lin = TypeVar("Lin")
Out = TypeVar("Out")


def linear_transpose(
    fun: Callable[..., Out], *primals: object, reduce_axes: Sequence[object] = ()
) -> Callable[[Out], tuple[PyTree, ...]]:
    """Transpose a linear function: ``<transpose(ct), x> = <ct, fun(x)>``.

    Args:
        fun: a function of trees of arrays, linear in all of them together.
        primals: its arguments, or their types; the values are not used.
        reduce_axes: for compatibility with JAX; must be empty.

    Returns:
        A function from a tree of cotangents like the result of ``fun`` to a tuple of trees like
        its arguments.

    Raises:
        IllTyped: arguments and results are neither all real or complex nor all integers, or a
            result is not zero where the arguments are.
        TransformError: ``fun`` applies a nonlinear operation to its arguments.

    >>> effax.linear_transpose(lambda n: 3 * n, 1)(2)
    (Array(6, dtype=int32),)
    """
    check_callable(fun, "linear_transpose")
    if reduce_axes:
        raise IllTyped("linear_transpose reduces no axes", "()", str(reduce_axes))
    label = f"linear_transpose({label_of(fun)})"
    flat, treedef = trace_abstractly(fun, primals, {}, StaticArgs((), ()), label)
    n = len(flat.consts)
    types = flat.jaxpr.in_types[n:]
    names = arg_names(fun, primals, {}, len(types))
    out_names = result_names("the result", flat.out_tree)
    over_integers = all(is_integer(t.dtype) for t in (*types, *flat.jaxpr.out_types))
    if not over_integers:
        _check_real(types, names, label)
        _check_real(flat.jaxpr.out_types, out_names, label)
    ct_specs = [NonLinear()] * n + [GradValue()] * len(types)
    with paused_collector():
        jaxpr = unwrap(discharge(flat.jaxpr)).jaxpr if not flat.jaxpr.effects else flat.jaxpr
        done = unwrap(transpose(jaxpr, ct_specs, [True] * len(out_names)))
    zero = [isinstance(c, DeviceArray) and not np.any(c.numpy()) for c in flat.consts]
    _check_vanishes(jaxpr, (*zero, *[True] * len(types)), out_names, label)

    out_types = tuple(flat.jaxpr.out_types)
    call = _Transposed(
        done.jaxpr, n, types, tuple(done.nonzero), treedef.children()[0], flat.out_tree, out_types
    )
    transposed: Callable[[Out], tuple[PyTree, ...]] = Partial(call, *flat.consts)
    return transposed


@dataclass(frozen=True)
class _Transposed:
    """A transposed function: constants, then a tree of cotangents, to a tuple of trees."""

    jaxpr: Jaxpr
    n_consts: int
    types: tuple[Type, ...]
    nonzero: tuple[bool, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    out_types: tuple[Type, ...]

    def __call__(self, *args: Operand) -> tuple[PyTree, ...]:
        *consts, cotangent = args
        names = [f"the cotangent of {name}" for name in result_names("the result", self.out_tree)]
        what = "the cotangents of the result"
        cts = self._checked(cotangent, what, names)
        found = iter(run(self.jaxpr, [*consts, *cts]))
        pairs = zip(self.types, self.nonzero, strict=True)
        leaves = [_cotangent(t, next(found) if has else None) for t, has in pairs]
        made: tuple[PyTree, ...] = tree.unflatten(self.in_tree, leaves)
        return made

    def _checked(self, cotangent: object, what: str, names: Sequence[str]) -> list[Array]:
        if all(map(is_inexact, self.out_types)):
            return checked_cotangents(cotangent, self.out_tree, self.out_types, what, names)
        leaves, found = tree.flatten(cotangent)
        check_same_tree(found, self.out_tree, what)
        triples = zip(leaves, self.out_types, names, strict=True)
        return [cast_result(x, t, name) for x, t, name in triples]


def _cotangent(type_: Type, value: Array | None) -> Array:
    if is_integer(type_.dtype):
        return from_numpy(np.zeros(type_.shape, type_.dtype)) if value is None else value
    return tangent_for(type_, value)


def _check_real(types: Sequence[Type], names: Sequence[str], label: str) -> None:
    for type_, name in zip(types, names, strict=True):
        if not is_inexact(type_):
            raise IllTyped(
                f"{label}: {name} is neither real nor complex",
                expected="a float or complex dtype",
                found=str(type_),
            )


def _check_vanishes(jaxpr: Jaxpr, zero: Mask, names: Sequence[str], label: str) -> None:
    """Raise IllTyped where a result is not zero at zero; unknown with references."""
    if jaxpr.effects:
        return
    outs = propagate_zeros(jaxpr, zero, DEFAULT_RULES)
    for has, name, type_ in zip(outs, names, jaxpr.out_types, strict=False):
        if not has:
            raise IllTyped(
                f"{label}: the function is not linear: {name} is not zero where its arguments are",
                expected="a function f with f(0) = 0",
                found=f"{name}, {type_}, with a part that depends on no argument",
                remedy="leave out the constant part, or transpose `linearize(f, *args)[1]`",
            )


def linear_call(
    fun: Callable[[Res, Lin], Out],
    fun_transpose: Callable[[Res, Out], Lin],
    residual_args: Res,
    linear_args: Lin,
) -> Out:
    """Call ``fun(residual_args, linear_args)``, linear in the second, with a custom transpose.

    The transpose is a ``linear_call`` of ``fun_transpose`` with the transpose ``fun``.

    Args:
        fun: maps residuals r and x to L(r)·x.
        fun_transpose: maps r and a cotangent ct, like the result, to L(r)ᵀ·ct.
        residual_args: a tree of arrays and references. Derivatives in it are those of ``fun`` (JAX
            has none). Of a reference, both functions read the contents at the call.
        linear_args: a tree of real or complex arrays.

    Raises:
        IllTyped: the transpose returns a tree of another structure or types than ``linear_args``.
        RefError: a linear argument is a reference.
        TransformError: a function changes a reference.
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call: fun_transpose")
    trace = current_trace()
    if trace is None:
        return fun(residual_args, linear_args)
    label = label_of(fun)
    res = leaves_of(residual_args, "residual_args")
    lin = leaves_of(linear_args, "linear_args")
    for x, name in zip(lin.leaves, lin.names, strict=True):
        if isinstance(x, Ref):
            raise RefError(
                f"linear_call({label}): {name}, a linear argument, is a reference",
                expected="an array",
                found=shown_ref(x),
                remedy="pass its contents: `ref[...]`",
            )
    _check_real(lin.types, lin.names, f"linear_call({label})")

    both = (residual_args, linear_args)
    args_tree, types = tree.structure(both), (*res.types, *lin.types)
    names = (*res.names, *[f"linear input {i}" for i in range(len(lin.types))])
    site = CallSite(label, (), (), args_tree, types, names)

    def traced() -> list[FlatFunction]:
        in_tree = tree.structure((both, {}))
        flat = trace_flat(fun, in_tree, types, names, f"linear_call({label})")
        out_names = result_names("the result", flat.out_tree)
        _check_real(flat.jaxpr.out_types, out_names, f"linear_call({label})")
        _check_reads(flat.jaxpr, f"linear_call({label})")
        return [flat]

    linear = with_rules(_Linear, fun, fun_transpose)
    call = call_rules(linear, site, [*res.leaves, *lin.leaves], trace, traced)
    fixed = [x[...] if isinstance(x, Ref) else x for x in (*call.consts, *res.leaves)]
    transpose_rule = rule_of(
        _Transpose, call, linear, len(res.types), res.treedef, lin.treedef, label
    )
    run = on_contents(call.jaxpr)
    prim = CustomLinear(transpose_rule, len(fixed), call.out_types, label, run, True)
    made: Out = tree.unflatten(call.out_tree, bind(prim, *fixed, *lin.leaves))
    return made


def _check_reads(jaxpr: Jaxpr, label: str) -> None:
    """Raise TransformError where a function of ``linear_call`` changes a reference."""
    for e in jaxpr.effects:
        if isinstance(e, Write | Accum):
            name = jaxpr.name_of(e.ref)
            raise TransformError(
                f"{label} changes {name}: a linear function may run more than once, or not at all",
                expected="a function that only reads references",
                found=f"{e.word} of {name}",
                remedy="return the value, and write it after the call",
            )


@dataclass(frozen=True, eq=False)
class _Linear(RuledFunction):
    """A linear function and its transpose."""

    fun: Callable[..., object]
    fun_transpose: Callable[..., object]
    serial: int = field(default_factory=lambda: Owner().serial)
    kept: list[CallRules] = field(default_factory=list)

    def __reduce__(self) -> tuple[object, ...]:
        return (with_rules, (_Linear, self.fun, self.fun_transpose))

    def rule_functions(self) -> tuple[object, ...]:
        return (self.fun_transpose,)


@dataclass(frozen=True, eq=False, repr=False)
class _Transpose(CallRule, BackwardRule):
    """The transpose of a call of a linear function, for cotangents of all results."""

    call: CallRules
    linear: _Linear
    n_residuals: int
    residual_tree: PyTreeDef
    linear_tree: PyTreeDef
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        jaxpr = self.call.once("transpose", self._traced)
        return SparseBackward(jaxpr, (True,) * self.linear_tree.num_leaves)

    def _traced(self) -> Jaxpr:
        call, n = self.call, self.n_residuals
        own, out_types = call.site.types, call.out_types
        checked = _like(self.linear.fun_transpose, own[n:], self.linear_tree)

        def run_on_leaves(*leaves: object) -> list[Array]:
            residuals = tree.unflatten(self.residual_tree, leaves[:n])
            return checked(residuals, tree.unflatten(call.out_tree, leaves[n:]))

        names = [*call.site.names[:n], *[f"linear input {i}" for i in range(len(out_types))]]
        label = f"linear_call({label_of(self.linear.fun_transpose)})"
        outers = [*call.outers[:n], *[None] * len(out_types)]
        jaxpr = call.traced(run_on_leaves, [*own[:n], *out_types], names, label, outers)
        _check_reads(jaxpr, label)
        return on_contents(jaxpr)


def _like(
    fun_transpose: Callable[..., object], types: Sequence[Type], treedef: PyTreeDef
) -> Callable[..., list[Array]]:
    """Return the transpose with its results checked and flattened."""

    def checked(residuals: object, cotangents: object) -> list[Array]:
        what = f"the result of {label_of(fun_transpose)}"
        leaves, found = tree.flatten(fun_transpose(residuals, cotangents))
        check_same_tree(found, treedef, what)
        names = result_names(what, treedef)
        values = [as_value(x, name) for x, name in zip(leaves, names, strict=True)]
        return checked_cotangents(values, tree.structure([0] * len(types)), types, what, names)

    checked.__name__ = label_of(fun_transpose)
    return checked
