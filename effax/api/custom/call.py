"""Calls of functions with custom rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import (
    TYPE_CHECKING,
    Final,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
)

from effax import tree
from effax.api.custom.call_site import CallSite
from effax.api.custom.jvp_rule import SymbolicZerosJvp, UserJvpRule
from effax.api.custom.rule_tracing import (
    is_nondiff,
    recursive_call,
    set_primals,
    trace_once,
    with_rules,
)
from effax.api.custom.vjp_rule import SymbolicZerosVjp, TracedVjp, VjpRule, traced_vjp
from effax.api.custom.vmap_rule import UserVmapRule
from effax.api.methods import BindsAsMethod
from effax.arrays.argument_checks import check_callable, integers, strings
from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind
from effax.arrays.ref import Ref
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import FlatFunction, TraceOptions, flat_args, trace_flat
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import CustomJvp, CustomVjp, CustomVmap, VmapRule
from effax.ir.trace import current_trace
from effax.lax.elementwise import stop_gradient

P = ParamSpec("P")
R = TypeVar("R")

_RULES: Final = frozenset({"defjvp", "defjvps", "defvjp", "def_vmap"})


class Custom(BindsAsMethod[R], Generic[P, R]):
    """A function and its custom rules; the public subclasses set the rules."""

    _jvp: UserJvpRule | None = None
    _vjp: VjpRule | None = None
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
            raise BadArgument(
                f"{self.label} is a {type(self).__name__} without {missing}",
                expected=missing,
                found="none",
                remedy=f"use `{' or '.join(self._setters())}` first",
            )
        if current_trace() is None:
            return self.fun(*args, **kwargs)
        site, leaves = self._call_site(args, cast("dict[str, object]", kwargs))
        filled = site.partial(self.fun)
        in_tree = tree.structure((tree.unflatten(site.args_tree, [0] * len(site.types)), {}))
        label = f"{type(self).__name__}({self.label})"

        def trace() -> FlatFunction:
            options = TraceOptions(leaves, on_values=True)
            return trace_flat(filled, in_tree, site.types, site.names, label, options)

        flat, reusable = trace_once(self, site, leaves, trace)
        consts, prim = self._recursive_call(site, flat, leaves) or self._primitive(
            site, flat, leaves, reusable
        )
        outs = bind(prim, *consts, *leaves)
        return cast(R, tree.unflatten(flat.out_tree, outs))

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
        if self._vjp is not None or all(map(is_nondiff, traced)):
            return argument
        return tree.map(lambda x: stop_gradient(x) if isinstance(x, Array) else x, argument)

    def _positional(self, args: Sequence[object], kwargs: dict[str, object]) -> tuple[object, ...]:
        """Return all arguments by position, with defaults. Raises BadArgument where that fails."""
        if self._signature is None:
            if not kwargs:
                return tuple(args)
            names = ", ".join(kwargs)
        else:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if not bound.kwargs:
                return tuple(bound.args)
            names = ", ".join(bound.kwargs)
        raise BadArgument(
            f"{self.label} has custom rules, and arguments that are not positional",
            expected="no keyword-only arguments",
            found=names,
        )

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

    def _recursive_call(
        self, site: CallSite, flat: FlatFunction, leaves: Sequence[Operand]
    ) -> tuple[list[Operand], Primitive] | None:
        found = recursive_call(self, site, flat, leaves)
        if found is None:
            return None
        consts, call, depth = found
        n, vmap_rule = len(consts), self._vmap_rule(site, flat, consts)
        if self._vjp is None:
            return consts, CustomJvp(call, depth, n, self.label, vmap_rule)
        return consts, CustomVjp(call, depth, depth, n, (), (), self.label, None, vmap_rule)

    def _vmap_rule(
        self, site: CallSite, flat: FlatFunction, consts: Sequence[Operand]
    ) -> VmapRule | None:
        if self._vmap is None:
            return None
        return UserVmapRule(
            self._vmap, site, flat.out_tree, flat.jaxpr.out_types, tuple(consts), self.label
        )

    def _check_both(self, jvp: UserJvpRule, vjp: VjpRule, leaves: Sequence[Operand]) -> None:
        """Raise BadArgument where rules for both derivatives cannot be combined."""
        if any(isinstance(x, Ref) for x in leaves):
            raise BadArgument(
                f"{self.label} has rules for both derivatives, and a reference as an argument",
                expected="arrays",
                found=", ".join(str(x.type) for x in leaves),
                remedy="set a reverse rule only",
            )
        if jvp.symbolic_zeros or vjp.symbolic_zeros:
            raise BadArgument(
                f"{self.label} has rules for both derivatives, one with symbolic zeros",
                expected="rules without symbolic_zeros",
                found="symbolic_zeros=True",
                remedy="set one of the two, or rules without symbolic zeros",
            )

    def _primitive(
        self, site: CallSite, flat: FlatFunction, leaves: Sequence[Operand], reusable: bool
    ) -> tuple[list[Operand], Primitive]:
        """Return the constants, and the primitive with its rules; ``reusable``: see with_rules."""
        jvp, vjp = self._jvp, self._vjp
        both = jvp is not None and vjp is not None
        if jvp is not None and vjp is not None:
            self._check_both(jvp, vjp, leaves)
        traced: list[TracedVjp] = []
        begin = partial(set_primals, self, site)

        def trace_rules() -> list[FlatFunction]:
            rules = []
            if vjp is not None and not vjp.symbolic_zeros:
                traced[:] = [
                    traced_vjp(vjp, site, flat, leaves, both, partial(set_primals, self, site))
                ]
                rules += [traced[0].fwd, traced[0].bwd]
            if jvp is not None and not jvp.symbolic_zeros:
                rules.append(jvp.traced(site, flat, leaves, begin))
            return rules

        consts, (call, *rules) = with_rules(self, site, flat, reusable, trace_rules)
        n = len(consts)
        shape = (site, flat.out_tree, flat.jaxpr.out_types, tuple(consts), self.label)
        vmap_rule = self._vmap_rule(site, flat, consts)
        if vjp is not None and vjp.symbolic_zeros:
            symbolic = SymbolicZerosVjp(vjp.fwd, *shape, vjp.bwd, tuple(leaves))
            return consts, CustomVjp(call, symbolic, None, n, (), (), self.label, None, vmap_rule)
        if vjp is not None:
            refs = tuple([n + i for i in traced[0].refs])
            fwd, bwd, *pushed = rules
            forward = pushed[0] if pushed else None
            wanted = traced[0].wanted
            made = CustomVjp(call, fwd, bwd, n, refs, wanted, self.label, forward, vmap_rule)
            return consts, made
        if jvp is not None:
            rule = SymbolicZerosJvp(jvp.fun, *shape) if jvp.symbolic_zeros else rules[0]
            return consts, CustomJvp(call, rule, n, self.label, vmap_rule)
        assert vmap_rule is not None
        return consts, CustomVmap(call, vmap_rule, n, self.label)


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
