"""Custom rules for reverse derivatives: traced, and checked against results and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import effax.numpy as jnp
from effax import tree
from effax.api.custom.call_site import CallSite, DeferredRule, cast_result, check_pair
from effax.api.custom.rule_tracing import outside_rules
from effax.api.custom.zeros import CustomVJPPrimal, SymbolicZero, symbolic_zero
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.arrays.promotion import yields
from effax.arrays.ref import Ref, TracedRef
from effax.arrays.tangents import tangent_for, zero_of
from effax.arrays.tracing import (
    FlatFunction,
    TraceOptions,
    check_same_tree,
    result_names,
    results_of,
    shown_tree,
    trace_flat,
)
from effax.ir.errors import IllTyped, RefError
from effax.ir.prims import SparseBackward, SparseVjp, ZerosBackward, ZerosVjp
from effax.ir.trace import shown_ref
from effax.ir.types import ArrayType, RefType, Type, is_inexact, tangent_type
from effax.tree import PyTreeDef


class VjpRule(NamedTuple):
    """The user's rules, and whether they take symbolic zeros."""

    fwd: Callable[..., object]
    bwd: Callable[..., object]
    symbolic_zeros: bool


class TracedVjp(NamedTuple):
    """Both rules, traced; ``refs`` and ``wanted`` as in ``CustomVjp``, constants not counted."""

    fwd: FlatFunction
    bwd: FlatFunction
    refs: tuple[int, ...]
    wanted: tuple[bool, ...]


def traced_vjp(
    rule: VjpRule,
    site: CallSite,
    flat: FlatFunction,
    leaves: Sequence[Operand],
    instantiate: bool,
    set_primals: Callable[[Sequence[object]], None],
) -> TracedVjp:
    """Trace both rules; Python may read values where those of ``leaves`` are known.

    Args:
        rule: the rules.
        site: the call.
        flat: the function.
        leaves: its arguments.
        instantiate: whether each argument that can have a cotangent gets one: zeros where the
            rule returns None.
        set_primals: called with the arguments that the forward rule gets.
    """
    forward = _ForwardRule(rule.fwd, site, flat.out_tree, flat.jaxpr.out_types)
    split: Callable[..., tuple[list[Array], list[object]]] = forward.rule(None)

    def run_forward(*inputs: object) -> tuple[list[Array], list[object]]:
        set_primals(inputs)
        return split(*inputs)

    in_tree, label = _list_tree(len(site.types)), f"fwd of {site.label}"
    options = TraceOptions(leaves, on_values=True)
    fwd = trace_flat(run_forward, in_tree, site.types, site.names, label, options)
    backward = _BackwardRule(rule.bwd, forward, fwd.jaxpr.out_types[len(forward.out_types) :])
    types, names = backward.inputs(tuple(map(is_inexact, forward.out_types)))
    outers: list[object] = [None] * len(types)
    n = len(backward.residual_types)
    outers[:n] = results_of(fwd, leaves)[len(forward.out_types) :]
    outers[n : n + len(forward.refs)] = [leaves[i] for i in forward.refs]
    wanted: list[bool] = []

    def run(*inputs: object) -> list[Array]:
        entries = backward.entries(inputs, [is_inexact(t) for t in forward.out_types], False)
        if instantiate:
            entries = _instantiated(entries, site.types)
        elif not any(e is not None for e in entries):
            # The rule runs for its effects even so: one zero keeps the call.
            entries = _zeros(site.types)
        wanted[:] = [e is not None for e in entries]
        return [e for e in entries if e is not None]

    options = TraceOptions(outers, on_values=True)
    bwd = trace_flat(run, _list_tree(len(types)), types, names, f"bwd of {site.label}", options)
    return TracedVjp(fwd, bwd, forward.refs, tuple(wanted))


def _list_tree(n: int) -> PyTreeDef:
    return tree.structure(((0,) * n, {}))


def _zeros(types: Sequence[Type]) -> list[Array | None]:
    """Return a cotangent of zero for the first argument that can have one, else None."""
    can = [_has_cotangent(t) for t in types]
    first = can.index(True) if True in can else len(types)
    return [zero_of(t) if i == first else None for i, t in enumerate(types)]


def _instantiated(entries: Sequence[Array | None], types: Sequence[Type]) -> list[Array | None]:
    pairs = zip(entries, types, strict=True)
    return [zero_of(t) if e is None and _has_cotangent(t) else e for e, t in pairs]


def _has_cotangent(type_: Type) -> bool:
    return isinstance(type_, ArrayType) and is_inexact(type_)


class _ForwardRule:
    """The forward rule: its results, and its residuals, arrays or reference arguments."""

    def __init__(
        self,
        fun: Callable[..., object],
        site: CallSite,
        out_tree: PyTreeDef,
        out_types: tuple[Type, ...],
    ) -> None:
        self.fun = fun
        self.site = site
        self.out_tree = out_tree
        self.out_types = out_types
        self.refs: tuple[int, ...] = ()
        self._treedef: PyTreeDef | None = None
        self._is_ref: list[int | None] = []

    def rule(self, given: Sequence[bool] | None) -> Callable[..., tuple[list[Array], list[object]]]:
        """Return the rule on leaves; ``given``: which are differentiated, for symbolic zeros."""
        fun = self.site.partial(self.fun)

        def run(*leaves: object) -> tuple[list[Array], list[object]]:
            args: Sequence[object] = leaves
            if given is not None:
                args = [CustomVJPPrimal(x, has) for x, has in zip(leaves, given, strict=True)]
            return self.split(fun(*tree.unflatten(self.site.args_tree, args)), leaves)

        return run

    def split(self, result: object, leaves: Sequence[object]) -> tuple[list[Array], list[object]]:
        """Return the checked results, and the residual arrays. Raises on a new reference."""
        rule = f"the forward rule of {self.site.label}"
        out, kept = check_pair(result, rule, "(result, residuals)")
        outs, out_tree = tree.flatten(out)
        check_same_tree(out_tree, self.out_tree, f"the result of {rule}")
        residuals, self._treedef = tree.flatten(kept)
        self._is_ref = [self._position(x, leaves) for x in residuals]
        self.refs = tuple(dict.fromkeys(i for i in self._is_ref if i is not None))
        arrays = [x for x, i in zip(residuals, self._is_ref, strict=True) if i is None]
        names = result_names(f"the result of {rule}", self.out_tree)
        made = [
            cast_result(o, t, name) for o, t, name in zip(outs, self.out_types, names, strict=True)
        ]
        return made, arrays

    def _position(self, x: object, leaves: Sequence[object]) -> int | None:
        if not isinstance(x, Ref):
            return None
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Ref) and _is_same(leaf, x):
                return i
        raise RefError(
            f"the forward rule of {self.site.label} returns a reference that is not its argument",
            expected="references that are arguments of the forward rule",
            found=shown_ref(x),
            remedy="pass the reference as an argument",
        )

    def joined(self, arrays: Sequence[object], refs: Sequence[object]) -> object:
        """Return the tree of residuals for the backward rule."""
        assert self._treedef is not None
        rest = iter(arrays)
        place = dict(zip(self.refs, refs, strict=True))
        leaves = [next(rest) if i is None else place[i] for i in self._is_ref]
        return tree.unflatten(self._treedef, leaves)


def _is_same(a: Ref, b: Ref) -> bool:
    if isinstance(a, TracedRef) and isinstance(b, TracedRef):
        return a.trace is b.trace and a.atom == b.atom
    return a is b


class _BackwardRule(NamedTuple):
    """The backward rule of a traced forward rule."""

    fun: Callable[..., object]
    forward: _ForwardRule
    residual_types: tuple[Type, ...]

    def inputs(self, given: Sequence[bool]) -> tuple[list[Type], list[str]]:
        """Return the types and the names of residuals, references and given cotangents."""
        forward, site = self.forward, self.forward.site
        names = result_names("the cotangent of the result", forward.out_tree)
        cts = [
            (tangent_type(t), name)
            for t, name, has in zip(forward.out_types, names, given, strict=True)
            if has
        ]
        types = [*self.residual_types, *[site.types[i] for i in forward.refs], *[t for t, _ in cts]]
        residuals = [f"residual {i}" for i in range(len(self.residual_types))]
        refs = [site.names[i] for i in forward.refs]
        return types, [*residuals, *refs, *[name for _, name in cts]]

    def entries(
        self, inputs: Sequence[object], given: Sequence[bool], symbolic: bool
    ) -> list[Array | None]:
        """Return one cotangent a leaf of the arguments; None is zero."""
        forward, site = self.forward, self.forward.site
        n, m = len(self.residual_types), len(forward.refs)
        residuals = forward.joined(inputs[:n], inputs[n : n + m])
        rest = cast("Iterator[Array]", iter(inputs[n + m :]))
        cts: list[object] = []
        for type_, has in zip(forward.out_types, given, strict=True):
            if has:
                cts.append(tangent_for(type_, next(rest)))
            else:
                cts.append(symbolic_zero(type_) if symbolic else tangent_for(type_, None))
        result = self.fun(*site.fixed, residuals, tree.unflatten(forward.out_tree, cts))
        return _argument_cotangents(site, result)


@dataclass(frozen=True, eq=False, repr=False)
class SymbolicZerosVjp(DeferredRule, ZerosVjp):
    """Reverse rules with symbolic zeros; ``fun`` is the forward one."""

    bwd: Callable[..., object]
    outers: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SymbolicZerosVjp)
            and DeferredRule.__eq__(self, other)
            and (self.bwd is other.bwd)
        )

    def __hash__(self) -> int:
        return hash((DeferredRule.__hash__(self), id(self.bwd)))

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        forward = _ForwardRule(self.fun, self.site, self.out_tree, self.out_types)
        site = self.site
        what = f"fwd of {site.label}"
        with outside_rules():
            fwd = self.traced(forward.rule(given), site.types, site.names, what, self.outers)
        residuals = fwd.out_types[len(self.out_types) :]
        backward = _BackwardRule(self.bwd, forward, residuals)
        refs = tuple([len(self.consts) + i for i in forward.refs])
        return SparseVjp(fwd, refs, SymbolicZerosBackward(self, given, backward, self.label))


@dataclass(frozen=True, eq=False, repr=False)
class SymbolicZerosBackward(ZerosBackward):
    """A backward rule with symbolic zeros, for the arguments that are differentiated."""

    rules: SymbolicZerosVjp
    given: tuple[bool, ...]
    backward: _BackwardRule
    label: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicZerosBackward) and (
            (self.rules, self.given, self.backward.residual_types)
            == (other.rules, other.given, other.backward.residual_types)
        )

    def __hash__(self) -> int:
        return hash((self.rules, self.given))

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        rules, backward = self.rules, self.backward
        inexact = iter(given)
        flags = [is_inexact(t) and next(inexact) for t in rules.out_types]
        types, names = backward.inputs(flags)
        linear = [
            has and not isinstance(t, RefType)
            for has, t in zip(self.given, rules.site.types, strict=True)
        ]
        nonzero: list[bool] = []

        def run(*inputs: object) -> list[Array]:
            entries = backward.entries(inputs, flags, True)
            kept = [e for e, has in zip(entries, linear, strict=True) if has]
            nonzero[:] = [e is not None for e in kept]
            return [e for e in kept if e is not None]

        n, refs = len(backward.residual_types), backward.forward.refs
        outers: list[object] = [None] * len(types)
        outers[n : n + len(refs)] = [rules.outers[i] for i in refs]
        with outside_rules():
            jaxpr = rules.traced(run, types, names, f"bwd of {rules.site.label}", outers)
        return SparseBackward(jaxpr, tuple(nonzero))


def _argument_cotangents(site: CallSite, result: object) -> list[Array | None]:
    """Return one cotangent a leaf of the arguments; None may replace an argument or a leaf."""
    children = site.args_tree.children()
    if not isinstance(result, tuple | list):
        raise IllTyped(
            f"the backward rule of {site.label} must return a tuple of cotangents, one an argument",
            expected=f"a tuple of {len(children)}",
            found=f"{type(result).__name__}: {result!r:.60}",
            remedy="return `(g,)` for one argument",
        )
    given = tuple(result)
    if len(given) != len(children):
        raise IllTyped(
            f"the backward rule of {site.label} returns the wrong number of cotangents",
            expected=str(len(children)),
            found=str(len(given)),
        )
    types = iter(zip(site.types, site.names, strict=True))
    entries: list[Array | None] = []
    for ct, child in zip(given, children, strict=True):
        wanted = [next(types) for _ in range(child.num_leaves)]
        entries.extend(_leaf_cotangents(site.label, ct, child, wanted))
    return entries


def _leaf_cotangents(
    label: str, ct: object, child: PyTreeDef, wanted: Sequence[tuple[Type, str]]
) -> list[Array | None]:
    if ct is None:
        return [None] * len(wanted)
    full = tree.unflatten(child, range(child.num_leaves))
    try:
        leaves = tree.broadcast_prefix(ct, full)
    except ValueError:
        leaves = None
    if leaves is None or len(leaves) != len(wanted):
        raise IllTyped(
            f"the backward rule of {label} returns cotangents of the wrong structure",
            expected=shown_tree(child),
            found=shown_tree(tree.structure(ct)),
        )
    return [_leaf(label, x, t, name) for x, (t, name) in zip(leaves, wanted, strict=True)]


def _leaf(label: str, x: object, type_: Type, name: str) -> Array | None:
    if x is None or isinstance(type_, RefType) or not is_inexact(type_):
        return None
    ct_spec = tangent_type(type_)
    assert isinstance(ct_spec, ArrayType)
    wrong = f"the backward rule of {label} returns a cotangent of the wrong type for {name}"
    if isinstance(x, SymbolicZero):
        if x.type.strong() is not ct_spec:
            raise IllTyped(wrong, str(ct_spec), str(x.type), "return None for a cotangent of zero")
        return None
    value = as_value(x, f"the cotangent for {name} returned by the backward rule of {label}")
    fits = value.dtype == ct_spec.dtype or yields(value.type, ct_spec.dtype, value, rounds=True)
    if value.shape != ct_spec.shape or not fits:
        raise IllTyped(wrong, expected=str(ct_spec), found=str(value.type))
    return jnp.astype(value, ct_spec.dtype)
