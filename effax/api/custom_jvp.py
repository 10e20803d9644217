"""``custom_jvp``: a function whose forward derivative is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from effax import operators as ops
from effax import tree
from effax.api.custom_call import Custom, CustomCall, check_pair, fitted
from effax.api.derivatives import checked_cotangents, tangent_for
from effax.bind import bind
from effax.checks import check_callable
from effax.ir.errors import BadArgument
from effax.ir.prims.custom import CustomJvp
from effax.ir.trace import current_trace
from effax.ir.types import is_inexact, tangent_type
from effax.tracing import FlatFunction, check_same_tree, result_names, trace_flat

P = ParamSpec("P")
R = TypeVar("R")


class custom_jvp(Custom[P, R]):  # noqa: N801  JAX's name
    """A function whose forward derivative is given by ``defjvp``.

    The rule takes ``(primals, tangents)`` as tuples and gives ``(result, tangent of result)``.
    Arguments at ``nondiff_argnums`` come first in the rule, and have no tangents.
    """

    _rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule; gives it back, so that this is a decorator."""
        check_callable(rule, f"defjvp of {self.label}")
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
                f"{self.label} is a custom_jvp without a rule",
                expected="a rule for its derivative",
                found="none",
                remedy="use `defjvp` first",
            )
        if current_trace() is None:
            return self.fun(*args, **kwargs)
        call = self.taken_apart(args, kwargs)
        flat = self.traced(self.with_fixed(call), call, f"custom_jvp({self.label})")
        knot = self.knot(call, flat)
        if knot is not None:
            consts, call_jaxpr, depth = knot
            prim = CustomJvp(call_jaxpr, depth, len(consts), self.label)
        else:
            consts, (call_jaxpr, rule_jaxpr) = self.with_rules(
                call, flat, lambda: [self._traced_rule(call, flat)]
            )
            prim = CustomJvp(call_jaxpr, rule_jaxpr, len(consts), self.label)
        outs = bind(prim, *consts, *call.leaves)
        return cast(R, tree.unflatten(flat.out_tree, outs))

    def _traced_rule(self, call: CustomCall, flat: FlatFunction) -> FlatFunction:
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
        return trace_flat(run, in_tree, types, names, f"the jvp rule of {self.label}")

    def _checked(self, result: Any, flat: FlatFunction) -> tuple[list[Any], list[Any]]:
        rule = f"the jvp rule of {self.label}"
        check_pair(result, rule, "(result, tangent)")
        outs, out_tree = tree.flatten(result[0])
        check_same_tree(out_tree, flat.out_tree, f"the result of {rule}")
        types = flat.jaxpr.out_types
        names = result_names(f"the result of {rule}", flat.out_tree)
        made = [fitted(o, t, name) for o, t, name in zip(outs, types, names, strict=True)]
        names = result_names(f"the tangent given by {rule}", flat.out_tree)
        what = f"the tangents given by {rule}"
        dots = checked_cotangents(result[1], flat.out_tree, types, what, names)
        return made, [d for d, t in zip(dots, types, strict=True) if is_inexact(t)]
