"""``closure_convert``, and ``custom_gradient``: a derivative returned beside the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, cast, overload

from effax import tree
from effax.api.custom.decorators import custom_vjp
from effax.api.custom.logs import logged_pair
from effax.api.custom.results import cast_result, check_pair
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.arrays.binding import Operand, run
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.arrays.tangents import tangent_for, zero_of
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import flat_args, label_of, like, shown_tree, trace_flat
from effax.ir.errors import IllTyped
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


def closure_convert(
    fun: Callable[..., R], *example_args: object
) -> tuple[Callable[..., R], list[object]]:
    """Convert the differentiable values that ``fun`` closes over to arguments.

    Args:
        fun: a pure function of trees of arrays.
        example_args: arguments, of which only the types are used: ``fun`` is traced once.

    Returns:
        A function of arguments of those types followed by the values, and the list of values.

    Raises:
        IllTyped: the returned function is called with other trees or types.
    """
    check_callable(fun, "closure_convert")
    flat_in = flat_args(fun, example_args, {})
    types = [x.type for x in flat_in.leaves]
    label = f"closure_convert({label_of(fun)})"
    flat = trace_flat(fun, flat_in.treedef, types, flat_in.names, label)
    hoisted = [isinstance(c, TracedArray) and is_inexact(c.type) for c in flat.consts]
    values = [c for c, has in zip(flat.consts, hoisted, strict=True) if has]
    n = len(values)
    # The returned function refers to no hoisted value: custom rules would take it as closed over.
    kept = [None if has else c for c, has in zip(flat.consts, hoisted, strict=True)]
    jaxpr, out_tree = flat.jaxpr, flat.out_tree
    in_tree, names = flat_in.treedef, flat_in.names

    @like(fun)
    def converted(*args: object) -> object:
        own, given = (args[:-n], args[-n:]) if n else (args, ())
        leaves, treedef = tree.flatten((own, {}))
        if treedef != in_tree or len(given) != n:
            raise IllTyped(
                f"{label}: the arguments have another structure than example_args",
                expected=f"{shown_tree(in_tree.children()[0])} and {n} values",
                found=shown_tree(tree.structure(args)),
            )
        named = zip(leaves, types, names, strict=True)
        operands: list[Operand] = [
            x if isinstance(x, Ref) else cast_result(x, t, f"{label}: {name}")
            for x, t, name in named
        ]
        rest = iter(given)
        consts = [as_value(next(rest), f"{label}: a value") if c is None else c for c in kept]
        return tree.unflatten(out_tree, run(jaxpr, [*consts, *operands]))

    return cast("Callable[..., R]", converted), list(values)


@dataclass(frozen=True)
class _Pullback:
    """A traced backward rule: a pytree whose leaves are the values that it closes over."""

    consts: tuple[Operand, ...]
    jaxpr: Jaxpr
    out_tree: PyTreeDef

    def __call__(self, cts: object, types: Sequence[Type]) -> object:
        """Return the cotangents of the arguments, from those of results of these types."""
        pairs = zip(tree.leaves(cts), types, strict=True)
        given = [as_value(ct) for ct, t in pairs if is_inexact(t)]
        return tree.unflatten(self.out_tree, run(self.jaxpr, [*self.consts, *given]))


tree.register_pytree_node(
    _Pullback,
    lambda p: (p.consts, (p.jaxpr, p.out_tree)),
    lambda aux, consts: _Pullback(tuple(consts), *aux),
)


@overload
def custom_gradient(
    fun: Callable[P, tuple[R, Callable[..., object]]], *, with_logs: bool = ...
) -> custom_vjp[P, R]: ...
@overload
def custom_gradient(
    *, with_logs: bool = ...
) -> Callable[[Callable[P, tuple[R, Callable[..., object]]]], custom_vjp[P, R]]: ...
def custom_gradient(
    fun: Callable[P, tuple[R, Callable[..., object]]] | None = None, *, with_logs: bool = False
) -> custom_vjp[P, R] | Callable[[Callable[P, tuple[R, Callable[..., object]]]], custom_vjp[P, R]]:
    """Make a function whose reverse derivative is returned beside its result.

    Args:
        fun: returns a pair: the result, and a function from the result's cotangent to a tuple of
            cotangents, one an argument; for one argument, its cotangent alone suffices. That
            function may close over values computed for the result. Without ``fun``, as in
            ``@custom_gradient(with_logs=True)``, a decorator is returned.
        with_logs: whether that function returns a pair of the cotangents, and None or a dict of
            values to log, as the backward rule of ``defvjp_with_logs``.

    Raises:
        IllTyped: called, ``fun`` does not return a pair, or the cotangents do not fit.
    """
    if fun is None:
        return lambda fun: custom_gradient(fun, with_logs=with_logs)
    check_callable(fun, "custom_gradient")
    label = label_of(fun)

    def both(*args: object) -> tuple[object, Callable[..., object]]:
        # Keyword arguments were made positional by custom_vjp.
        result = cast("Callable[..., object]", fun)(*args)
        out, rule = check_pair(result, label, "(result, a function of its cotangent)")
        return out, check_callable(rule, f"custom_gradient of {label}")

    @like(fun)
    def value(*args: object) -> object:
        return both(*args)[0]

    def forward(*args: object) -> tuple[object, _Pullback]:
        out, rule = both(*args)
        outs, out_tree = tree.flatten(out)
        types = [as_value(x, f"the result of {label}").type for x in outs]

        def pull(*cts: Array) -> object:
            given = iter(cts)
            full = [tangent_for(t, next(given)) if is_inexact(t) else zero_of(t) for t in types]
            found = rule(tree.unflatten(out_tree, full))
            return logged_pair(found, f"the rule of {label}") if with_logs else found

        ct_types = [tangent_type(t) for t in types if is_inexact(t)]
        in_tree = tree.structure(((0,) * len(ct_types), {}))
        names = [f"cotangent {i}" for i in range(len(ct_types))]
        flat = trace_flat(pull, in_tree, ct_types, names, f"the backward rule of {label}")
        return out, _Pullback(flat.consts, flat.jaxpr, flat.out_tree)

    def backward(pulled: _Pullback, ct: object) -> object:
        types = [as_value(x).type for x in tree.leaves(ct)]
        cts = pulled(ct, types)
        if with_logs:
            cts, logs = cast("tuple[object, object]", cts)
            return cts if isinstance(cts, tuple | list) else (cts,), logs
        return cts if isinstance(cts, tuple | list) else (cts,)

    made: custom_vjp[P, R] = custom_vjp(cast("Callable[P, R]", value))
    (made.defvjp_with_logs if with_logs else made.defvjp)(forward, backward)
    return made
