"""Functions with derivatives of their own: ``custom_jvp`` and ``custom_vjp``."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

from effax import operators as ops
from effax import tree
from effax.api.derivatives import checked_cotangents, tangent_for
from effax.array import Array, as_value
from effax.bind import Operand, bind
from effax.checks import check_callable, integers
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.prims.custom import CustomJvp, CustomVjp
from effax.ir.syntax import Jaxpr
from effax.ir.trace import current_trace, shown_ref
from effax.ir.types import ArrayType, RefType, Type, is_inexact, tangent_type
from effax.ref import Ref, TracedRef
from effax.tracing import (
    FlatFunction,
    check_same_tree,
    flat_args,
    shared_consts,
    shown_tree,
    trace_flat,
)
from effax.tree import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


class _Call(NamedTuple):
    """A call whose non-differentiable arguments are filled in."""

    fixed: tuple[object, ...]
    args: tuple[object, ...]
    leaves: list[Operand]
    treedef: PyTreeDef
    names: list[str]

    @property
    def types(self) -> list[Type]:
        return [x.type for x in self.leaves]


def _positional(
    fun: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]
) -> tuple[object, ...]:
    """All arguments by position, defaults filled in. Raises BadArgument where one cannot be."""
    if not kwargs:
        return tuple(args)
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise BadArgument(
            "a function with custom derivatives takes arguments by position only",
            found=", ".join(bound.kwargs),
        )
    return tuple(bound.args)


class _Frame:
    """Rules that are being traced: a call of their function inside of them is a knot.

    ``consts`` is what the function and its rules close over, once that is known.
    """

    def __init__(self, fun: object, call: _Call) -> None:
        self.fun = fun
        self.call = call
        self.met = False
        self.consts: list[Operand] = []

    def is_for(self, fun: object, call: _Call) -> bool:
        """Whether a call is one of the same function on the same types."""
        mine = self.call
        return (
            self.fun is fun
            and mine.treedef == call.treedef
            and mine.types == call.types
            and len(mine.fixed) == len(call.fixed)
            and all(a is b or _equal(a, b) for a, b in zip(mine.fixed, call.fixed, strict=True))
        )


def _equal(a: object, b: object) -> bool:
    return type(a) is type(b) and isinstance(a, int | float | complex | str | bytes) and a == b


class _Frames(threading.local):
    """The frames of this thread, innermost last, and how many knots there were so far."""

    def __init__(self) -> None:
        self.stack: list[_Frame] = []
        self.knots = 0


_frames = _Frames()


def knots_so_far() -> int:
    """A count that grows where a traced call refers to the rules around it.

    What is traced then has a meaning in that place only, and must not be kept for another.
    """
    return _frames.knots


class _Custom(Generic[P, R]):
    """What functions with custom derivatives share."""

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        check_callable(fun, type(self).__name__)
        self._fun = fun
        self._nondiff = integers(nondiff_argnums, "nondiff_argnums")
        self._label = getattr(fun, "__name__", type(fun).__name__)
        update_wrapper(cast(Any, self), fun, updated=())

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind as a method: the instance becomes the first argument."""
        if instance is None:
            return self

        def bound(*args: Any, **kwargs: Any) -> Any:
            return cast(Any, self)(instance, *args, **kwargs)

        return bound

    def _taken_apart(self, args: Sequence[object], kwargs: dict[str, object]) -> _Call:
        full = _positional(self._fun, args, kwargs)
        fixed = tuple(full[i] for i in self._nondiff)
        rest = tuple(a for i, a in enumerate(full) if i not in self._nondiff)
        flat = flat_args(_NamedLike(self._fun, self._nondiff), rest, {})
        return _Call(fixed, rest, flat.leaves, flat.treedef, flat.names)

    def _with_fixed(self, call: _Call) -> Callable[..., R]:
        def filled(*args: object) -> R:
            rest = iter(args)
            total = len(args) + len(call.fixed)
            places = dict(zip(self._nondiff, call.fixed, strict=True))
            full = [places[i] if i in places else next(rest) for i in range(total)]
            return cast(Callable[..., R], self._fun)(*full)

        return filled

    def _traced(self, fun: Callable[..., object], call: _Call, label: str) -> FlatFunction:
        return trace_flat(fun, call.treedef, call.types, call.names, label, call.leaves)

    def _frame_of(self, call: _Call) -> _Frame | None:
        """The frame in which this call is a knot."""
        for frame in reversed(_frames.stack):
            if frame.is_for(self, call):
                return frame
        return None

    def _knot(self, frame: _Frame, flat: FlatFunction) -> tuple[list[Operand], Jaxpr]:
        """The constants and the program of a call inside of its own rules."""
        frame.met = True
        _frames.knots += 1
        consts, (call_jaxpr,) = shared_consts([flat], frame.consts)
        return consts, call_jaxpr

    def _with_rules(
        self, call: _Call, flat: FlatFunction, trace_rules: Callable[[], list[FlatFunction]]
    ) -> tuple[list[Operand], list[Jaxpr]]:
        """The programs of the function and of its rules, over one list of constants.

        A knot takes the constants of all of them, so rules with knots are traced again when
        those are known.
        """
        frame = _Frame(self, call)
        _frames.stack.append(frame)
        try:
            consts, jaxprs = shared_consts([flat, *trace_rules()])
            while frame.met and len(frame.consts) != len(consts):
                frame.consts = consts
                consts, jaxprs = shared_consts([flat, *trace_rules()], consts)
        finally:
            _frames.stack.pop()
        return consts, jaxprs


class _NamedLike:
    """Carries the names of the arguments that are left when some are filled in."""

    def __init__(self, fun: Callable[..., object], nondiff: Sequence[int]) -> None:
        self.fun = fun
        self.nondiff = nondiff

    def __call__(self) -> None:
        """Never called: it only has names."""

    def parameters_left(self, names: Sequence[str], rest: str) -> list[str]:
        """The names of the positional parameters that are not filled in."""
        return [n for i, n in enumerate(names) if i not in self.nondiff]


class custom_jvp(_Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose forward derivative is given by ``defjvp``.

    The rule takes ``(primals, tangents)`` as tuples and gives ``(result, tangent of result)``.
    Arguments at ``nondiff_argnums`` come first in the rule, and have no tangents.
    """

    _rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule; gives it back, so that this is a decorator."""
        self._rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set one rule an argument: ``(tangent, result, *primals) -> tangent of the result``."""

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            out = self(*primals)  # type: ignore[call-arg]  # the primals are the arguments
            parts = [
                r(t, out, *primals) for r, t in zip(rules, tangents, strict=True) if r is not None
            ]
            total = parts[0] if parts else tree.map(ops.zeros_like, out)
            for part in parts[1:]:
                total = tree.map(ops.add, total, part)
            return out, total

        self._rule = rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._rule is None:
            raise BadArgument(
                f"{self._label} is a custom_jvp without a rule", remedy="use `defjvp` first"
            )
        if current_trace() is None:
            return self._fun(*args, **kwargs)
        call = self._taken_apart(args, kwargs)
        flat = self._traced(self._with_fixed(call), call, f"custom_jvp({self._label})")
        frame = self._frame_of(call)
        if frame is not None:
            consts, call_jaxpr = self._knot(frame, flat)
            prim = CustomJvp(call_jaxpr, None, len(consts), self._label)
        else:
            consts, (call_jaxpr, rule_jaxpr) = self._with_rules(
                call, flat, lambda: [self._traced_rule(call, flat)]
            )
            prim = CustomJvp(call_jaxpr, rule_jaxpr, len(consts), self._label)
        outs = bind(prim, *consts, *call.leaves)
        return cast(R, tree.unflatten(flat.out_tree, outs))

    def _traced_rule(self, call: _Call, flat: FlatFunction) -> FlatFunction:
        """The rule over primals, then tangents of what has some, to results and tangents."""
        dots = [tangent_type(t) for t in call.types if is_inexact(t)]
        args_tree = call.treedef.children()[0]
        rule = self._rule
        assert rule is not None

        def run(*leaves: Any) -> tuple[list[Any], list[Any]]:
            primals = leaves[: len(call.leaves)]
            given = iter(leaves[len(call.leaves) :])
            tangents = [tangent_for(t, next(given) if is_inexact(t) else None) for t in call.types]
            result = rule(
                *call.fixed, tree.unflatten(args_tree, primals), tree.unflatten(args_tree, tangents)
            )
            return self._checked(result, flat)

        types = [*call.types, *dots]
        names = [*call.names, *[f"tangent {i}" for i in range(len(dots))]]
        in_tree = tree.structure(((0,) * len(types), {}))
        return trace_flat(run, in_tree, types, names, f"the jvp rule of {self._label}")

    def _checked(self, result: object, flat: FlatFunction) -> tuple[list[Any], list[Any]]:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise IllTyped(
                f"the jvp rule of {self._label} must give (result, tangent)",
                expected="a pair",
                found=type(result).__name__,
            )
        outs, out_tree = tree.flatten(result[0])
        what = f"the result of the jvp rule of {self._label}"
        check_same_tree(out_tree, flat.out_tree, what)
        types = flat.jaxpr.out_types
        made = [ops.astype(as_value(o, what), t.dtype) for o, t in zip(outs, types, strict=True)]
        dots = checked_cotangents(
            result[1], flat.out_tree, types, f"the tangent given by the jvp rule of {self._label}"
        )
        return made, [d for d, t in zip(dots, types, strict=True) if is_inexact(t)]


class custom_vjp(_Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose reverse derivative is given by ``defvjp(fwd, bwd)``.

    ``fwd`` takes the arguments and gives ``(result, residuals)``; ``bwd`` takes the residuals and
    the result's cotangent and gives one cotangent an argument (None: zero). A reference among
    the residuals must be an argument of ``fwd``; ``bwd`` then gets that reference. Arguments at
    ``nondiff_argnums`` come first in ``bwd``, and have no cotangents.
    """

    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rules."""
        self._rules = (fwd, bwd)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._rules is None:
            raise BadArgument(
                f"{self._label} is a custom_vjp without rules", remedy="use `defvjp` first"
            )
        if current_trace() is None:
            return self._fun(*args, **kwargs)
        call = self._taken_apart(args, kwargs)
        flat = self._traced(self._with_fixed(call), call, f"custom_vjp({self._label})")
        frame = self._frame_of(call)
        if frame is not None:
            consts, call_jaxpr = self._knot(frame, flat)
            prim = CustomVjp(call_jaxpr, None, None, len(consts), (), (), self._label)
        else:
            consts, prim = self._ruled(call, flat)
        outs = bind(prim, *consts, *call.leaves)
        return cast(R, tree.unflatten(flat.out_tree, outs))

    def _ruled(self, call: _Call, flat: FlatFunction) -> tuple[list[Operand], CustomVjp]:
        forward = _Forward(self._label, call, flat)
        wanted: list[bool] = []

        def trace_rules() -> list[FlatFunction]:
            fwd = self._traced(self._forward_rule(call, forward), call, f"fwd of {self._label}")
            bwd, wanted[:] = self._traced_backward(call, flat, fwd, forward)
            return [fwd, bwd]

        consts, (call_jaxpr, fwd_jaxpr, bwd_jaxpr) = self._with_rules(call, flat, trace_rules)
        refs = tuple(len(consts) + i for i in forward.refs)
        prim = CustomVjp(
            call_jaxpr, fwd_jaxpr, bwd_jaxpr, len(consts), refs, tuple(wanted), self._label
        )
        return consts, prim

    def _forward_rule(self, call: _Call, forward: _Forward) -> Callable[..., object]:
        assert self._rules is not None
        fwd = self._rules[0]

        def run(*args: object) -> object:
            rest = iter(args)
            total = len(args) + len(call.fixed)
            places = dict(zip(self._nondiff, call.fixed, strict=True))
            full = [places[i] if i in places else next(rest) for i in range(total)]
            return forward.split(fwd(*full), tree.leaves(args))

        return run

    def _traced_backward(
        self, call: _Call, flat: FlatFunction, fwd: FlatFunction, forward: _Forward
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
            entries = _argument_cotangents(self._label, result, call)
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
        traced = trace_flat(run, in_tree, types, names, f"bwd of {self._label}", outers)
        return traced, tuple(wanted)


class _Forward:
    """The residuals of a forward rule: arrays, and references that are its arguments."""

    def __init__(self, label: str, call: _Call, flat: FlatFunction) -> None:
        self.label = label
        self.call = call
        self.flat = flat
        self.refs: tuple[int, ...] = ()
        self._treedef: PyTreeDef | None = None
        self._is_ref: list[int | None] = []

    def split(self, result: object, args: Sequence[object]) -> tuple[list[Array], list[Any]]:
        """The results, checked, and the residuals that are arrays. Raises on a new reference."""
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise IllTyped(
                f"the forward rule of {self.label} must give (result, residuals)",
                expected="a pair",
                found=type(result).__name__,
            )
        outs, out_tree = tree.flatten(result[0])
        check_same_tree(
            out_tree, self.flat.out_tree, f"the result of the forward rule of {self.label}"
        )
        residuals, self._treedef = tree.flatten(result[1])
        self._is_ref = [self._position(x, args) for x in residuals]
        self.refs = tuple(dict.fromkeys(i for i in self._is_ref if i is not None))
        arrays = [x for x, i in zip(residuals, self._is_ref, strict=True) if i is None]
        wanted = [
            ops.astype(as_value(o), t.dtype)
            for o, t in zip(outs, self.flat.jaxpr.out_types, strict=True)
        ]
        return wanted, arrays

    def _position(self, x: object, args: Sequence[object]) -> int | None:
        if not isinstance(x, Ref):
            return None
        for i, arg in enumerate(args):
            same = arg is x or (
                isinstance(arg, TracedRef) and isinstance(x, TracedRef) and arg.atom == x.atom
            )
            if same and isinstance(arg, Ref):
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


def _argument_cotangents(label: str, result: object, call: _Call) -> list[Array | None]:
    """One cotangent a leaf of the arguments; None stands for a whole argument or a leaf of it."""
    args_tree = call.treedef.children()[0]
    children = args_tree.children()
    given = tuple(result) if isinstance(result, tuple | list) else (result,)
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
