"""Calls of functions with custom rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Final,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
)

from effax import tree
from effax.api.custom.jvp_rule import CallForward, UserJvpRule
from effax.api.custom.results import check_distinct_refs, check_no_ref
from effax.api.custom.vjp_rule import CallReverse, UserVjpRule
from effax.api.custom.vmap_rule import CallVmap
from effax.api.methods import BindsAsMethod
from effax.arrays.argument_checks import check_callable, integers, strings
from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind
from effax.arrays.rules.call_rules import CallRules, call_rules, is_fixed, rule_of
from effax.arrays.rules.call_site import CallSite, RuledFunction
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import FlatFunction, TraceOptions, flat_args, trace_flat
from effax.ir.errors import BadArgument, MissingRule
from effax.ir.primitive import Owner, Primitive
from effax.ir.prims import CustomJvp, CustomVjp, CustomVmap
from effax.ir.trace import current_trace
from effax.lax.elementwise import stop_gradient

P = ParamSpec("P")
R = TypeVar("R")

_RULES: Final = frozenset({"defjvp", "defjvps", "defvjp", "defvjp_with_logs", "def_vmap"})


class Custom(RuledFunction, BindsAsMethod[R], Generic[P, R]):
    """A function and its custom rules; the public subclasses set the rules."""

    fun: Callable[P, R]
    serial: int
    kept: list[CallRules]
    _jvp: UserJvpRule | None = None
    _vjp: UserVjpRule | None = None
    _vmap: Callable[..., object] | None = None

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        """Wrap a function; it has no rules yet.

        Args:
            fun: the function.
            nondiff_argnums: positions of arguments without derivatives, which need not be arrays.
                Rules take them first, unchanged.
            nondiff_argnames: names of such arguments.

        Raises:
            BadArgument: ``fun`` is not callable, or has no argument of such a name.
        """
        check_callable(fun, type(self).__name__)
        self.fun = fun
        self.label: str = getattr(fun, "__name__", type(fun).__name__)
        self._signature = _signature_of(fun)
        named = self._positions_of(strings(nondiff_argnames, "nondiff_argnames"))
        nums = {*integers(nondiff_argnums, "nondiff_argnums"), *named}
        self.nondiff: tuple[int, ...] = tuple(sorted(nums))
        self.serial = Owner().serial
        self.kept = []
        update_wrapper(self, fun, updated=())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            # Of stacked decorators, delegate to the inner one that sets this rule.
            if name in _RULES and isinstance(self.__dict__.get("fun"), Custom):
                return getattr(self.fun, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _missing(self) -> str | None:
        """Return the rules that must be set before the function can be called, or None."""
        if self._jvp is None and self._vjp is None and self._vmap is None:
            return "a rule"
        return None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        missing = self._missing()
        if missing is not None:
            raise MissingRule(
                f"{self.label} is a {type(self).__name__} without {missing}",
                expected=missing,
                found="none",
                remedy=f"use `{' or '.join(self._setters())}` first",
            )
        trace = current_trace()
        if trace is None:
            if kwargs:
                self._bound(args, kwargs)
            check_distinct_refs(self.fun, args, kwargs, type(self).__name__)
            result = self.fun(*args, **kwargs)
            check_no_ref(result, f"{type(self).__name__}({self.label})")
            return result
        site, leaves = self._call_site(args, cast("dict[str, object]", kwargs))

        def traced() -> list[FlatFunction]:
            in_tree = tree.structure((tree.unflatten(site.args_tree, [0] * len(site.types)), {}))
            options = TraceOptions(leaves, on_values=True)
            label = f"{type(self).__name__}({self.label})"
            filled = site.partial(self.fun)
            return [trace_flat(filled, in_tree, site.types, site.names, label, options)]

        call = call_rules(self, site, leaves, trace, traced)
        outs = bind(call.once("primitive", lambda: self._primitive(call)), *call.consts, *leaves)
        return cast(R, tree.unflatten(call.out_tree, outs))

    def __reduce__(self) -> str:
        # Pickled as a function is, by its name.
        return str(getattr(self, "__qualname__", self.label))

    def rule_functions(self) -> tuple[object, ...]:
        """Return the rules that are set."""
        return (self._jvp, self._vjp, self._vmap)

    def _primitive(self, call: CallRules) -> Primitive:
        n, label = call.n_consts, self.label
        vmap_rule = None if self._vmap is None else rule_of(CallVmap, call, self._vmap, label)
        forward = None if self._jvp is None else rule_of(CallForward, call, self._jvp, label)
        if self._vjp is not None:
            rule = rule_of(CallReverse, call, self._vjp, label)
            return CustomVjp(call.jaxpr, rule, n, label, forward, vmap_rule)
        if forward is not None:
            return CustomJvp(call.jaxpr, forward, n, label, vmap_rule)
        assert vmap_rule is not None
        return CustomVmap(call.jaxpr, vmap_rule, n, label)

    def _setters(self) -> list[str]:
        return [name for name in sorted(_RULES) if hasattr(type(self), name)]

    def _call_site(
        self, args: Sequence[object], kwargs: dict[str, object]
    ) -> tuple[CallSite, list[Operand]]:
        full = self._positional(args, kwargs)
        for i in self.nondiff:
            if not 0 <= i < len(full):
                raise BadArgument(
                    f"{self.label}: nondiff_argnums is out of range for the arguments of the call",
                    expected=f"0 to {len(full) - 1}" if full else "none",
                    found=str(i),
                )
        fixed = tuple([self._fixed(full[i]) for i in self.nondiff])
        rest = tuple([a for i, a in enumerate(full) if i not in self.nondiff])
        flat = flat_args(_NamedLike(self.fun, self.nondiff), rest, {})
        types = tuple([x.type for x in flat.leaves])
        args_tree = flat.treedef.children()[0]
        site = CallSite(self.label, fixed, self.nondiff, args_tree, types, tuple(flat.names))
        return site, flat.leaves

    def _fixed(self, argument: object) -> object:
        """Return a nondifferentiable argument; a reverse rule refuses one with tangents later."""
        traced = [x for x in tree.leaves(argument) if isinstance(x, TracedArray)]
        if self._vjp is not None or all(map(is_fixed, traced)):
            return argument
        return tree.map(lambda x: stop_gradient(x) if isinstance(x, Array) else x, argument)

    def _positional(self, args: Sequence[object], kwargs: dict[str, object]) -> tuple[object, ...]:
        """Return all arguments by position, with defaults. Raises BadArgument where that fails."""
        bound = self._bound(args, kwargs)
        if bound is None:
            return tuple(args)
        # Keyword-only parameters keep their defaults, such as those that a partial has set.
        bound.apply_defaults()
        return tuple(bound.args)

    def _bound(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> inspect.BoundArguments | None:
        """Bind arguments to parameters; None without a signature. Raises BadArgument."""
        bound = None if self._signature is None else self._signature.bind(*args, **kwargs)
        names = kwargs if bound is None else bound.kwargs
        if names:
            raise BadArgument(
                f"{self.label} has custom rules, and arguments that are not positional",
                expected="no keyword-only arguments",
                found=", ".join(names),
            )
        return bound

    def _positions_of(self, names: Sequence[str]) -> list[int]:
        parameters = [] if self._signature is None else list(self._signature.parameters)
        for name in names:
            if name not in parameters:
                raise BadArgument(
                    f"{self.label}: nondiff_argnames has a name that is not a parameter",
                    expected=", ".join(parameters) or "no names",
                    found=name,
                )
        return [parameters.index(name) for name in names]


def _signature_of(fun: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


class _NamedLike:
    """The names of a function's parameters that are not filled in."""

    def __init__(self, fun: Callable[..., object], nondiff: Sequence[int]) -> None:
        self.fun = fun
        self.nondiff = nondiff

    def __call__(self) -> None:
        """Do nothing: the class only carries names."""

    def parameters_left(self, names: Sequence[str], rest: str) -> list[str]:
        """Return the names of the positional parameters that are not filled in."""
        return [n for i, n in enumerate(names) if i not in self.nondiff]
