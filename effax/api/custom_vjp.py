"""``custom_vjp``: a function whose reverse derivative is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from effax import operators as ops
from effax import tree
from effax.api.custom_call import Custom, CustomCall, check_pair, fitted
from effax.api.derivatives import tangent_for, zero_of
from effax.array import Array, as_value
from effax.bind import Operand, bind
from effax.checks import check_callable
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.prims.custom import CustomVjp
from effax.ir.trace import current_trace, shown_ref
from effax.ir.types import ArrayType, RefType, Type, is_inexact, tangent_type
from effax.ref import Ref, TracedRef
from effax.tracing import FlatFunction, check_same_tree, result_names, shown_tree, trace_flat
from effax.tree import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


class custom_vjp(Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose reverse derivative is given by ``defvjp(fwd, bwd)``.

    ``fwd`` takes the arguments and gives ``(result, residuals)``; ``bwd`` takes the residuals and
    the result's cotangent and gives one cotangent an argument (None: zero). A reference among
    the residuals must be an argument of ``fwd``; ``bwd`` then gets that reference. Arguments at
    ``nondiff_argnums`` come first in ``bwd``, and have no cotangents.
    """

    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rules."""
        check_callable(fwd, f"defvjp of {self.label}: fwd")
        check_callable(bwd, f"defvjp of {self.label}: bwd")
        self._rules = (fwd, bwd)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._rules is None:
            raise BadArgument(
                f"{self.label} is a custom_vjp without rules",
                expected="rules for the forward and the backward pass",
                found="none",
                remedy="use `defvjp` first",
            )
        if current_trace() is None:
            return self.fun(*args, **kwargs)
        call = self.taken_apart(args, kwargs)
        flat = self.traced(self.with_fixed(call), call, f"custom_vjp({self.label})")
        knot = self.knot(call, flat)
        if knot is not None:
            consts, call_jaxpr, depth = knot
            prim = CustomVjp(call_jaxpr, depth, depth, len(consts), (), (), self.label)
        else:
            consts, prim = self._ruled(call, flat)
        outs = bind(prim, *consts, *call.leaves)
        return cast(R, tree.unflatten(flat.out_tree, outs))

    def _ruled(self, call: CustomCall, flat: FlatFunction) -> tuple[list[Operand], CustomVjp]:
        forward = _Forward(self.label, call, flat)
        wanted: list[bool] = []

        def trace_rules() -> list[FlatFunction]:
            fwd = self.traced(self._forward_rule(call, forward), call, f"fwd of {self.label}")
            bwd, wanted[:] = self._traced_backward(call, flat, fwd, forward)
            return [fwd, bwd]

        consts, (call_jaxpr, fwd_jaxpr, bwd_jaxpr) = self.with_rules(call, flat, trace_rules)
        refs = tuple(len(consts) + i for i in forward.refs)
        prim = CustomVjp(
            call_jaxpr, fwd_jaxpr, bwd_jaxpr, len(consts), refs, tuple(wanted), self.label
        )
        return consts, prim

    def _forward_rule(self, call: CustomCall, forward: _Forward) -> Callable[..., object]:
        assert self._rules is not None
        fwd = self._rules[0]

        def run(*args: object) -> object:
            rest = iter(args)
            total = len(args) + len(call.fixed)
            places = dict(zip(self.nondiff, call.fixed, strict=True))
            full = [places[i] if i in places else next(rest) for i in range(total)]
            return forward.split(fwd(*full), tree.leaves(args))

        return run

    def _traced_backward(
        self, call: CustomCall, flat: FlatFunction, fwd: FlatFunction, forward: _Forward
    ) -> tuple[FlatFunction, tuple[bool, ...]]:
        assert self._rules is not None
        bwd = self._rules[1]
        n_outs = len(flat.jaxpr.outs)
        residual_types = list(fwd.jaxpr.out_types[n_outs:])
        ref_types = [call.types[i] for i in forward.refs]
        out_types = flat.jaxpr.out_types
        ct_types = [tangent_type(t) for t in out_types if is_inexact(t)]
        wanted: list[bool] = []

        def run(*leaves: Any) -> list[Array]:
            n, m = len(residual_types), len(ref_types)
            residuals = forward.joined(leaves[:n], leaves[n : n + m])
            given = iter(leaves[n + m :])
            cts = [tangent_for(t, next(given) if is_inexact(t) else None) for t in out_types]
            result = bwd(*call.fixed, residuals, tree.unflatten(flat.out_tree, cts))
            entries = _argument_cotangents(self.label, result, call)
            if not any(e is not None for e in entries):
                # The rule runs all the same, for its effects: one zero asks for it.
                entries = _zeros(call.types)
            wanted[:] = [e is not None for e in entries]
            return [e for e in entries if e is not None]

        types = [*residual_types, *ref_types, *ct_types]
        names = [
            *[f"residual {i}" for i in range(len(residual_types))],
            *[call.names[i] for i in forward.refs],
            *[f"cotangent {i}" for i in range(len(ct_types))],
        ]
        in_tree = tree.structure(((0,) * len(types), {}))
        outers: list[Operand | None] = [None] * len(types)
        outers[len(residual_types) : len(residual_types) + len(ref_types)] = [
            call.leaves[i] for i in forward.refs
        ]
        traced = trace_flat(run, in_tree, types, names, f"bwd of {self.label}", outers)
        return traced, tuple(wanted)


class _Forward:
    """The residuals of a forward rule: arrays, and references that are its arguments."""

    def __init__(self, label: str, call: CustomCall, flat: FlatFunction) -> None:
        self.label = label
        self.call = call
        self.flat = flat
        self.refs: tuple[int, ...] = ()
        self._treedef: PyTreeDef | None = None
        self._is_ref: list[int | None] = []

    def split(self, result: Any, args: Sequence[object]) -> tuple[list[Array], list[Any]]:
        """The results, checked, and the residuals that are arrays. Raises on a new reference."""
        rule = f"the forward rule of {self.label}"
        check_pair(result, rule, "(result, residuals)")
        outs, out_tree = tree.flatten(result[0])
        check_same_tree(out_tree, self.flat.out_tree, f"the result of {rule}")
        residuals, self._treedef = tree.flatten(result[1])
        self._is_ref = [self._position(x, args) for x in residuals]
        self.refs = tuple(dict.fromkeys(i for i in self._is_ref if i is not None))
        arrays = [x for x, i in zip(residuals, self._is_ref, strict=True) if i is None]
        names = result_names(f"the result of {rule}", self.flat.out_tree)
        types = self.flat.jaxpr.out_types
        return [fitted(o, t, name) for o, t, name in zip(outs, types, names, strict=True)], arrays

    def _position(self, x: object, args: Sequence[object]) -> int | None:
        if not isinstance(x, Ref):
            return None
        for i, arg in enumerate(args):
            if isinstance(arg, Ref) and _is_same(arg, x):
                return i
        raise RefError(
            f"the forward rule of {self.label} gives a reference that is not its argument",
            expected="references that are arguments of the forward rule",
            found=shown_ref(x),
            remedy="pass the reference as an argument",
        )

    def joined(self, arrays: Sequence[object], refs: Sequence[object]) -> Any:
        """The tree of residuals as the backward rule gets it."""
        assert self._treedef is not None
        rest = iter(arrays)
        place = dict(zip(self.refs, refs, strict=True))
        leaves = [next(rest) if i is None else place[i] for i in self._is_ref]
        return tree.unflatten(self._treedef, leaves)


def _is_same(a: Ref, b: Ref) -> bool:
    if isinstance(a, TracedRef) and isinstance(b, TracedRef):
        return a.trace is b.trace and a.atom == b.atom
    return a is b


def _zeros(types: Sequence[Type]) -> list[Array | None]:
    """A cotangent of zero for the first argument that has one."""
    can = [isinstance(t, ArrayType) and is_inexact(t) for t in types]
    first = can.index(True) if True in can else len(types)
    return [zero_of(t) if i == first else None for i, t in enumerate(types)]


def _argument_cotangents(label: str, result: object, call: CustomCall) -> list[Array | None]:
    """One cotangent a leaf of the arguments; None stands for a whole argument or a leaf of it."""
    args_tree = call.treedef.children()[0]
    children = args_tree.children()
    if not isinstance(result, tuple | list):
        raise IllTyped(
            f"the backward rule of {label} must give a tuple of cotangents, one an argument",
            expected=f"a tuple of {len(children)}",
            found=f"{type(result).__name__}: {result!r:.60}",
            remedy="return `(g,)` for one argument",
        )
    given = tuple(result)
    if len(given) != len(children):
        raise IllTyped(
            f"the backward rule of {label} gives another number of cotangents than arguments",
            expected=str(len(children)),
            found=str(len(given)),
        )
    types = iter(zip(call.types, call.names, strict=True))
    entries: list[Array | None] = []
    for ct, child in zip(given, children, strict=True):
        wanted = [next(types) for _ in range(child.num_leaves)]
        entries.extend(_leaf_cotangents(label, ct, child, wanted))
    return entries


def _leaf_cotangents(
    label: str, ct: object, child: PyTreeDef, wanted: Sequence[tuple[Type, str]]
) -> list[Array | None]:
    if ct is None:
        return [None] * len(wanted)
    full = tree.unflatten(child, range(child.num_leaves))
    try:
        spread = tree.broadcast_prefix(ct, full)
    except ValueError:
        spread = None
    if spread is None or len(spread) != len(wanted):
        raise IllTyped(
            f"the backward rule of {label} gives another structure of cotangents than of arguments",
            expected=shown_tree(child),
            found=shown_tree(tree.structure(ct)),
        )
    return [_leaf(label, x, t, name) for x, (t, name) in zip(spread, wanted, strict=True)]


def _leaf(label: str, x: object, type_: Type, name: str) -> Array | None:
    if x is None or isinstance(type_, RefType) or not is_inexact(type_):
        return None
    value = as_value(x, f"the cotangent for {name} given by the backward rule of {label}")
    want = tangent_type(type_)
    assert isinstance(want, ArrayType)
    if value.shape != want.shape or (value.dtype != want.dtype and not value.type.weak):
        raise IllTyped(
            f"the backward rule of {label} gives a cotangent of the wrong type for {name}",
            expected=str(want),
            found=str(value.type),
        )
    return ops.astype(value, want.dtype)
