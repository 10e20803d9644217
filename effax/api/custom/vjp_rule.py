"""Custom rules for reverse derivatives: traced when asked, and checked against the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

import effax.numpy as jnp
from effax import tree
from effax.api.custom.logs import log_paths, logged_pair
from effax.api.custom.results import cast_result, check_pair
from effax.api.custom.zeros import CustomVJPPrimal, SymbolicZero, symbolic_zero
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.arrays.promotion import yields
from effax.arrays.ref import Ref, TracedRef
from effax.arrays.ref_functions import is_local
from effax.arrays.rules.call_rules import CallRule, CallRules
from effax.arrays.rules.call_site import CallSite
from effax.arrays.tangents import tangent_for
from effax.arrays.tracing import (
    check_same_tree,
    result_names,
    results_of,
    shown_tree,
)
from effax.ir.dtypes import family
from effax.ir.errors import IllTyped, RefError
from effax.ir.primitive import Owner
from effax.ir.prims import BackwardRule, ReverseRule, SparseBackward, SparseVjp
from effax.ir.syntax import Jaxpr
from effax.ir.trace import shown_ref
from effax.ir.types import ArrayType, RefType, Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.rules.custom.dense import of_given_arguments
from effax.tree import PyTreeDef


class UserVjpRule(NamedTuple):
    """The user's rules, whether they take symbolic zeros, and whether the second one logs."""

    fwd: Callable[..., object]
    bwd: Callable[..., object]
    symbolic_zeros: bool
    with_logs: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class CallReverse(CallRule, ReverseRule):
    """The reverse rules of a call."""

    call: CallRules
    user: UserVjpRule
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        return self.call.once((self, given), lambda: self._answer(given))

    def _answer(self, given: tuple[bool, ...]) -> SparseVjp:
        if not self.user.symbolic_zeros:
            forward, dense = self.call.once((self, "dense"), self._dense)
            bwd = of_given_arguments(dense, given)
            return SparseVjp(forward.jaxpr, forward.ref_operands, bwd)
        forward = _Forward(self.user.fwd, self.call, given)
        rule = CallBackward(self, forward, given)
        return SparseVjp(forward.jaxpr, forward.ref_operands, rule)

    def _dense(self) -> tuple[_Forward, SparseBackward]:
        """Trace both rules for arrays of cotangents, and cotangents of all arguments."""
        forward = _Forward(self.user.fwd, self.call, None)
        every = (True,) * len(self.call.site.types)
        backward = CallBackward(self, forward, every)
        return forward, backward((True,) * sum(map(is_inexact, self.call.out_types)))


class _Forward:
    """A traced forward rule: its program, and its residuals.

    A residual is an array, a reference among the arguments, or a Python value, which is passed to
    the backward rule as it is.
    """

    def __init__(
        self, fun: Callable[..., object], call: CallRules, given: Sequence[bool] | None
    ) -> None:
        """Trace the rule; ``given``: which arguments are differentiated, for symbolic zeros."""
        self.call = call
        self.refs: tuple[int, ...] = ()
        self._treedef: PyTreeDef | None = None
        self._kinds: list[int | _Static | None] = []
        site = call.site
        own = site.partial(fun)

        def run(*leaves: object) -> tuple[list[Array], list[object]]:
            args: Sequence[object] = leaves
            if given is not None:
                args = [CustomVJPPrimal(x, has) for x, has in zip(leaves, given, strict=True)]
            return self._split(own(*tree.unflatten(site.args_tree, args)), leaves)

        what = f"fwd of {site.label}"
        outers = call.known_arguments()
        flat = call.flat(run, site.types, site.names, what, outers)
        self.jaxpr: Jaxpr = call.over_consts(flat, what)
        n = len(call.out_types)
        self.residual_types: tuple[Type, ...] = self.jaxpr.out_types[n:]
        self.known_residuals: list[object] = [None] * len(self.residual_types)
        if call.values is not None:
            self.known_residuals = list(results_of(flat, cast("Sequence[Operand]", outers))[n:])

    @property
    def ref_operands(self) -> tuple[int, ...]:
        """Return the positions of the references among the arguments and constants."""
        return tuple([self.call.n_consts + i for i in self.refs])

    def _split(self, result: object, leaves: Sequence[object]) -> tuple[list[Array], list[object]]:
        """Return the checked results, and the residual arrays. Raises on a new reference."""
        call = self.call
        rule = f"the forward rule of {call.site.label}"
        out, kept = check_pair(result, rule, "(result, residuals)")
        outs, out_tree = tree.flatten(out)
        check_same_tree(out_tree, call.out_tree, f"the result of {rule}")
        residuals, self._treedef = tree.flatten(kept)
        shown = result_names("residuals", self._treedef)
        pairs = zip(residuals, shown, strict=True)
        self._kinds = [self._kind(x, leaves, name) for x, name in pairs]
        self.refs = tuple(dict.fromkeys(i for i in self._kinds if isinstance(i, int)))
        arrays = [x for x, kind in zip(residuals, self._kinds, strict=True) if kind is None]
        names = result_names(f"the result of {rule}", out_tree)
        triples = zip(outs, call.out_types, names, strict=True)
        return [cast_result(o, t, name) for o, t, name in triples], arrays

    def _kind(self, x: object, leaves: Sequence[object], name: str) -> int | _Static | None:
        """Return the position of a reference, a Python value, or None for an array."""
        if isinstance(x, Array | np.ndarray):
            return None
        if not isinstance(x, Ref):
            return _Static(x)
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Ref) and _is_same(leaf, x):
                return i
        raise RefError(
            f"the forward rule of {self.call.site.label} returns a reference that is not its "
            f"argument: {name}",
            expected="references that are arguments of the forward rule",
            found=shown_ref(x),
            remedy="return its contents: `ref[...]`; the backward rule may make a reference of them"
            if is_local(x)
            else "pass the reference as an argument",
        )

    def joined(self, arrays: Sequence[object], refs: Sequence[object]) -> object:
        """Return the tree of residuals for the backward rule."""
        assert self._treedef is not None
        rest = iter(arrays)
        place = dict(zip(self.refs, refs, strict=True))
        leaves: list[object] = []
        for kind in self._kinds:
            if isinstance(kind, _Static):
                leaves.append(kind.value)
            else:
                leaves.append(next(rest) if kind is None else place[kind])
        return tree.unflatten(self._treedef, leaves)


class _Static(NamedTuple):
    """A Python value among the residuals."""

    value: object


def _is_same(a: Ref, b: Ref) -> bool:
    if isinstance(a, TracedRef) and isinstance(b, TracedRef):
        return a.owner is b.owner and a.atom == b.atom
    return a is b


@dataclass(frozen=True, eq=False, repr=False)
class CallBackward(BackwardRule):
    """The backward rule of a traced forward rule, for the arguments that are differentiated."""

    reverse: CallReverse
    forward: _Forward
    given: tuple[bool, ...]

    @property
    def label(self) -> str:  # type: ignore[override]  # that of the rules that it is one of
        return self.reverse.label

    @property
    def user(self) -> UserVjpRule:
        """The user's rules."""
        return self.reverse.user

    def owner(self) -> Owner:
        return self.forward.call

    def __reduce__(self) -> tuple[object, ...]:
        return (_backward_of, (self.reverse, self.given))

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        return self.forward.call.once((self, given), lambda: self._traced(given))

    def _traced(self, given: tuple[bool, ...]) -> SparseBackward:
        forward, call = self.forward, self.forward.call
        inexact = iter(given)
        flags = [is_inexact(t) and next(inexact) for t in call.out_types]
        types, names = self._inputs(flags)
        nonzero: list[bool] = []
        logs: dict[str, Array] = {}

        def run(*inputs: object) -> list[Array]:
            if not call.out_types:
                # Without results there are no cotangents, and the rule is not called.
                nonzero[:] = [False for has in self.given if has]
                return []
            entries = self._entries(inputs, flags, logs)
            kept = [e for e, has in zip(entries, self.given, strict=True) if has]
            nonzero[:] = [e is not None for e in kept]
            return [*[e for e in kept if e is not None], *logs.values()]

        outers: list[object] = [*forward.known_residuals, *[call.outers[i] for i in forward.refs]]
        outers += [None] * (len(types) - len(outers))
        jaxpr = call.traced(run, types, names, f"bwd of {call.site.label}", outers)
        return SparseBackward(jaxpr, tuple(nonzero), tuple(logs))

    def _inputs(self, given: Sequence[bool]) -> tuple[list[Type], list[str]]:
        """Return the types and the names of residuals, references and given cotangents."""
        forward, call = self.forward, self.forward.call
        site = call.site
        names = result_names("the cotangent of the result", call.out_tree)
        triples = zip(call.out_types, names, given, strict=True)
        cts = [(tangent_type(t), name) for t, name, has in triples if has]
        types = [*forward.residual_types, *[site.types[i] for i in forward.refs]]
        residuals = [f"residual {i}" for i in range(len(forward.residual_types))]
        refs = [site.names[i] for i in forward.refs]
        return [*types, *[t for t, _ in cts]], [*residuals, *refs, *[name for _, name in cts]]

    def _entries(
        self, inputs: Sequence[object], given: Sequence[bool], logs: dict[str, Array]
    ) -> list[Array | None]:
        """Return one cotangent a leaf of the arguments; None is zero. Add what is logged."""
        forward, call = self.forward, self.forward.call
        n, m = len(forward.residual_types), len(forward.refs)
        residuals = forward.joined(inputs[:n], inputs[n : n + m])
        rest = cast("Iterator[Array]", iter(inputs[n + m :]))
        cts: list[object] = []
        for type_, has in zip(call.out_types, given, strict=True):
            if has:
                cts.append(tangent_for(type_, next(rest)))
            else:
                zero = (
                    symbolic_zero(type_) if self.user.symbolic_zeros else tangent_for(type_, None)
                )
                cts.append(zero)
        result = self.user.bwd(*call.site.fixed, residuals, tree.unflatten(call.out_tree, cts))
        if self.user.with_logs:
            result, logged = logged_pair(result, f"the backward rule of {call.site.label}")
            logs |= log_paths(logged)
        return _argument_cotangents(call.site, result)


def _backward_of(reverse: CallReverse, given: tuple[bool, ...]) -> BackwardRule | SparseBackward:
    """Return a backward rule that was pickled."""
    return reverse(given).bwd


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
    if x is None or not is_inexact(type_):
        return None
    # The cotangent of a reference is that of its contents.
    ct_spec = tangent_type(type_.inner if isinstance(type_, RefType) else type_)
    assert isinstance(ct_spec, ArrayType)
    wrong = f"the backward rule of {label} returns a cotangent of the wrong type for {name}"
    if isinstance(x, SymbolicZero):
        if x.type.strong() is not ct_spec:
            raise IllTyped(wrong, str(ct_spec), str(x.type), "return None for a cotangent of zero")
        return None
    value = as_value(x, f"the cotangent for {name} returned by the backward rule of {label}")
    # A rule may compute in a wider or narrower dtype than that of its primal.
    fits = family(value.dtype) == family(ct_spec.dtype) and not value.weak_type
    fits = fits or yields(value.type, ct_spec.dtype, value, rounds=True)
    if value.shape != ct_spec.shape or not fits:
        raise IllTyped(wrong, expected=str(ct_spec), found=str(value.type))
    return jnp.astype(value, ct_spec.dtype)
