"""``grad``, ``value_and_grad``, ``jvp`` and ``linearize``: compositions of passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import (
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypeVar,
    TypeVarTuple,
    overload,
)

import numpy as np

from effax import tree
from effax.api.derivatives import (
    TracedCall,
    check_differentiable,
    check_real,
    linearized,
    pulled_back,
    reversed_call,
    traced_call,
)
from effax.api.linear_map import LinearMap, checked_tangents, with_zeros
from effax.api.vjp import only_outs
from effax.arrays.argument_checks import argument_positions, check_callable
from effax.arrays.array import Array
from effax.arrays.binding import run
from effax.arrays.creation import ones
from effax.arrays.device_array import DeviceArray
from effax.arrays.promotion import converted
from effax.arrays.rules.values import retried_on_values
from effax.arrays.tangents import tangent_for, zero_of
from effax.arrays.tracing import like, shown_tree
from effax.arrays.transformed import transformed
from effax.ir.dtypes import DType
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.state import cached
from effax.ir.trace import current_trace
from effax.ir.types import array_type, is_inexact
from effax.transforms.framework.runner import unwrap
from effax.transforms.jvp import jvp as jvp_pass
from effax.transforms.transpose.engine import GradValue
from effax.tree import PyTree, PyTreeDef

P = ParamSpec("P")
# The bound is not ``object``, so that type checkers accept any use of a lambda's argument.
A = TypeVar("A", bound=PyTree)
B = TypeVar("B", bound=PyTree)
R = TypeVar("R")
X = TypeVar("X")
Ts = TypeVarTuple("Ts")


_LEAF: Final = tree.structure(0)


class _Gradient:
    """A gradient function: the common part of ``grad`` and ``value_and_grad``."""

    def __init__(
        self,
        fun: Callable[..., object],
        argnums: int | Sequence[int],
        has_aux: bool,
        holomorphic: bool,
        allow_int: bool,
        what: str,
    ) -> None:
        check_callable(fun, what)
        self.fun = fun
        self.argnums = argnums
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self.allow_int = allow_int
        self.what = what

    @retried_on_values
    def __call__(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[PyTree, object]:
        """Return the result (with the auxiliary part), and the gradients."""
        nums = argument_positions(self.argnums, len(args), self.what)
        call = traced_call(
            self.fun,
            args,
            kwargs,
            self.what,
            self.has_aux,
            lambda treedef: [i not in nums for i in leaf_args(treedef, len(args))],
        )
        mask = self._mask(call, nums, len(args))
        self._check_scalar(call, call.main)
        outs, found = self._pulled(call, mask)
        grads = iter(found)
        out = tree.unflatten(call.main, outs[:1])
        result = (out, call.unflatten_aux(outs)) if self.has_aux else out
        return result, self._arranged(grads, args, nums, call)

    def _mask(self, call: TracedCall, nums: Sequence[int], n_args: int) -> list[bool]:
        position = call.args.of_operands(leaf_args(call.args.treedef, n_args))
        mask = []
        for x, name, arg in zip(call.args.leaves, call.args.names, position, strict=True):
            if arg not in nums:
                mask.append(False)
                continue
            mask.append(check_differentiable(x, name, self.what, self.allow_int))
            if self.holomorphic:
                check_real(x.type, name, self.what, True)
        return mask

    def _check_scalar(self, call: TracedCall, main: PyTreeDef) -> None:
        types = call.flat.jaxpr.out_types
        if main.num_leaves != 1 or main != _LEAF:
            raise IllTyped(
                f"{self.what} takes a function that returns one scalar",
                expected="a scalar",
                found=shown_tree(main),
                remedy="pass has_aux=True for a pair (scalar, aux), or use `vjp`",
            )
        if types[0].shape != ():
            raise IllTyped(
                f"{self.what} takes a function that returns a scalar",
                expected="shape ()",
                found=str(types[0]),
                remedy="sum or average the result, or use `vjp` or a Jacobian",
            )
        if not is_inexact(types[0]):
            raise IllTyped(
                f"{self.what} takes a function that returns a real number",
                expected="a float dtype",
                found=str(types[0]),
            )
        check_real(types[0], "the result", self.what, self.holomorphic)

    def _pulled(self, call: TracedCall, mask: Sequence[bool]) -> tuple[list[Array], list[Array]]:
        """Return the results, and the gradients of the differentiated leaves."""
        types = [x.type for x, m in zip(call.args.leaves, mask, strict=True) if m]
        out_type = call.flat.jaxpr.out_types[0]
        at_once = reversed_call(call, mask, lambda: _one(out_type.dtype))
        if at_once is not None:
            outs, cts = at_once
        else:
            res = linearized(call, mask)
            outs, cts = res.outs, [None] * len(types)
            if res.out_tangents[0]:
                kept = res._replace(linear=only_outs(res, 1))
                one = _one(out_type.dtype)
                cts = pulled_back(kept, [GradValue()] * len(types), [], [one])
        return outs, [tangent_for(t, c) for c, t in zip(cts, types, strict=True)]

    def _arranged(
        self,
        grads: Iterator[Array],
        args: Sequence[object],
        nums: Sequence[int],
        call: TracedCall,
    ) -> object:
        """Arrange the gradients in the structure of the arguments at ``argnums``."""
        position = call.args.of_operands(leaf_args(call.args.treedef, len(args)))
        leaves: list[object] = []
        by_arg: dict[int, list[object]] = {n: [] for n in nums}
        for x, arg in zip(call.args.leaves, position, strict=True):
            if arg in by_arg:
                by_arg[arg].append(next(grads) if is_inexact(x.type) else zero_of(x.type))
        children = call.args.treedef.children()[0].children()
        leaves = [tree.unflatten(children[n], by_arg[n]) for n in nums]
        return leaves[0] if isinstance(self.argnums, int) else tuple(leaves)


def _one(dtype: DType) -> Array:
    """Return the cotangent of a result; its dtype is the result's also where 64 bits are off."""
    if current_trace() is not None:
        # A literal of the program, where a value would be a constant.
        return converted(ones((), dtype), dtype, False)
    # A value that only this cotangent has: the gradient may be the cotangent itself.
    return DeviceArray(np.ones((), dtype), array_type((), dtype))


@cached(maxsize=1 << 9)
def leaf_args(treedef: PyTreeDef, n_args: int) -> Sequence[int]:
    """Return for each leaf of ``(args, kwargs)`` the position of its argument (-1: a keyword)."""
    positional, keywords = treedef.children()
    counts = [c.num_leaves for c in positional.children()] if n_args else []
    return (*[i for i, n in enumerate(counts) for _ in range(n)], *[-1] * keywords.num_leaves)


@overload
def grad(
    fun: Callable[Concatenate[A, P], object],
    argnums: Literal[0] = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[A, P], tuple[object, X]],
    argnums: Literal[0] = ...,
    *,
    has_aux: Literal[True],
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, P], tuple[A, X]]: ...
@overload
def grad(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[A, B, P], object],
    argnums: Literal[1],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, B, P], B]: ...
@overload
def grad(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[A, B, P], object],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(
    fun: Callable[P, object],
    argnums: Sequence[int],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[P, tuple[PyTree, ...]]: ...
@overload
def grad(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[P, PyTree]: ...
def grad(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """Return the gradient function of a function that returns a scalar.

    Args:
        fun: a function of trees of arrays and references that returns one scalar; a pair of a
            scalar and auxiliary data where ``has_aux``.
        argnums: the position, or the positions, of the arguments to differentiate.
        has_aux: whether ``fun`` returns a pair; the gradient is then returned with its second part.
        holomorphic: whether the function is complex and holomorphic.
        allow_int: whether integer arguments may be differentiated (to ``float0`` zeros).

    Returns:
        A function of the same arguments that returns the gradient, in the structure of the
        argument; a tuple of gradients where ``argnums`` is a sequence.

    Raises:
        IllTyped: the result is not a scalar, or an argument is not real-valued.
        BadArgument: ``argnums`` is out of range.
    """
    gradient = _Gradient(fun, argnums, has_aux, holomorphic, allow_int, "grad")

    @like(fun)
    def grad_fun(*args: object, **kwargs: object) -> object:
        value, grads = gradient(args, kwargs)
        return (grads, value[1]) if has_aux else grads

    return grad_fun


@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[A, B, P], R],
    argnums: Literal[1],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, B, P], tuple[R, B]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[A, B, P], R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[A, B, P], tuple[R, tuple[A, B]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: Sequence[int],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[P, tuple[R, tuple[PyTree, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[P, tuple[R, PyTree]]: ...
def value_and_grad(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """Return the function of the result and the gradient; otherwise like :func:`grad`."""
    gradient = _Gradient(fun, argnums, has_aux, holomorphic, allow_int, "value_and_grad")

    @like(fun)
    def value_and_grad_fun(*args: object, **kwargs: object) -> tuple[object, object]:
        return gradient(args, kwargs)

    return value_and_grad_fun


@overload
def jvp(
    fun: Callable[[*Ts], R],
    primals: tuple[*Ts],
    tangents: tuple[*Ts],
    has_aux: Literal[False] = ...,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[[*Ts], tuple[R, X]],
    primals: tuple[*Ts],
    tangents: tuple[*Ts],
    has_aux: Literal[True],
) -> tuple[R, R, X]: ...
@overload
def jvp(
    fun: Callable[..., R],
    primals: list[PyTree],
    tangents: list[PyTree],
    has_aux: Literal[False] = ...,
) -> tuple[R, R]: ...
@retried_on_values
def jvp(
    fun: Callable[..., object],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: bool = False,
) -> tuple[PyTree, ...]:
    """Run ``fun`` and its forward derivative on tangents.

    Args:
        fun: a function of trees of arrays and references.
        primals: its arguments.
        tangents: a tree like the arguments: for an array one of its type, for a reference a
            reference, for integers zeros of dtype ``float0``.
        has_aux: whether ``fun`` returns a pair, whose second part is not differentiated.

    Returns:
        The result and its tangent, and the second part of the pair where ``has_aux``.

    Raises:
        IllTyped: tangents do not fit the primals.
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        kinds = f"{type(primals).__name__} and {type(tangents).__name__}"
        raise BadArgument(
            "jvp takes the arguments and their tangents in tuples",
            expected="a tuple (or list) of arguments, and one of tangents",
            found=kinds,
            remedy="write `jvp(f, (x,), (dx,))`",
        )
    call = traced_call(fun, tuple(primals), {}, "jvp", has_aux)
    types = [x.type for x in call.args.leaves]
    in_tree = call.args.treedef.children()[0]
    dots = checked_tangents(tuple(tangents), in_tree, types, call.args.names)
    mask = [is_inexact(t) for t in types]
    jaxpr, full = call.flat.jaxpr, (*[False] * call.n_consts, *mask)
    operands = call.operands
    done = transformed(jaxpr, (jvp_pass, full), operands, lambda: unwrap(jvp_pass(jaxpr, full)))
    given = [d for d, m in zip(dots, mask, strict=True) if m]
    results = run(done.jaxpr, [*operands, *given])
    n_outs = len(jaxpr.outs)
    out_dots = with_zeros(results[n_outs:], done.out_tangents, jaxpr.out_types)
    main = call.main
    n = main.num_leaves
    out = tree.unflatten(main, results[:n]), tree.unflatten(main, out_dots[:n])
    return (*out, call.unflatten_aux(results[:n_outs])) if has_aux else out


@overload
def linearize(
    fun: Callable[[*Ts], R], *primals: *Ts, has_aux: Literal[False] = ...
) -> tuple[R, LinearMap[*Ts, R]]: ...
@overload
def linearize(
    fun: Callable[[*Ts], tuple[R, X]], *primals: *Ts, has_aux: Literal[True]
) -> tuple[R, LinearMap[*Ts, R], X]: ...
@overload
def linearize(
    fun: Callable[..., object], *primals: object, has_aux: bool
) -> tuple[PyTree, ...]: ...
@retried_on_values
def linearize(
    fun: Callable[..., object], *primals: object, has_aux: bool = False
) -> tuple[PyTree, ...]:
    """Run ``fun`` once, and return its result and its derivative, a linear function.

    Args:
        fun: a function of trees of arrays and references.
        primals: its arguments.
        has_aux: whether ``fun`` returns a pair, whose second part is not differentiated.

    Returns:
        ``(result, LinearMap)``, with the second part of the pair last where ``has_aux``.

    Raises:
        IllTyped: an argument is not an array, or the result not a pair where ``has_aux``.
        TransformError: a primitive has no rule.
    """
    call = traced_call(fun, primals, {}, "linearize", has_aux)
    mask = [is_inexact(x.type) for x in call.args.leaves]
    res = linearized(call, mask)
    out = tree.unflatten(call.main, res.outs[: call.main.num_leaves])
    push: LinearMap[*tuple[PyTree, ...], PyTree] = LinearMap.of(res, call)
    return (out, push, call.unflatten_aux(res.outs)) if has_aux else (out, push)
