"""Jacobians and Hessians: derivatives along all vectors of a basis, batched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Concatenate, Literal, ParamSpec, TypeVar, cast, overload

import effax.numpy as jnp
from effax import tree
from effax.api.autodiff import leaf_args, linearize
from effax.api.derivatives import check_differentiable, check_real
from effax.api.vjp import vjp
from effax.arrays.argument_checks import argument_positions, check_callable
from effax.arrays.array import Array
from effax.arrays.batching import vmap
from effax.arrays.binding import run
from effax.arrays.device_array import DeviceArray
from effax.arrays.promotion import converted
from effax.arrays.tracing import flat_args, label_of, like, trace_flat
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.errors import IllTyped
from effax.transforms.confine_nan import confine_nan
from effax.tree import PyTree, PyTreeDef

P = ParamSpec("P")
T = TypeVar("T")


class _Partial:
    """``fun`` as a function of the differentiated arguments, which keep their names."""

    def __init__(
        self,
        fun: Callable[..., object],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        nums: Sequence[int],
    ) -> None:
        self.fun = fun
        self.args = args
        self.kwargs = kwargs
        self.nums = nums
        self.__name__ = label_of(fun)

    def __call__(self, *some: object) -> object:
        full = list(self.args)
        for n, x in zip(self.nums, some, strict=True):
            full[n] = x
        return self.fun(*full, **self.kwargs)

    def parameters_left(self, names: Sequence[str], rest: str) -> list[str]:
        """Return the names of the differentiated arguments."""
        n = len(names)
        return [names[i] if i < n else f"{rest}[{i - n}]" for i in self.nums]


def _basis(leaves: Sequence[Array]) -> list[Array]:
    """Return for each leaf ``n`` unit vectors in its place and zeros in the others."""
    total = sum(x.size for x in leaves)
    columns, before = [], 0
    for x in leaves:
        rows = jnp.equal(
            jnp.reshape(jnp.arange(total), (total, 1)), jnp.arange(before, before + x.size)
        )
        columns.append(jnp.reshape(converted(rows, x.dtype, False), (total, *x.shape)))
        before += x.size
    return columns


def _blocks(stacked: Array, leaves: Sequence[Array], axis: int) -> list[Array]:
    """Cut the axis of a basis of ``leaves`` into one block a leaf, in the leaf's shape."""
    parts, before = [], 0
    rest_before, rest_after = stacked.shape[:axis], stacked.shape[axis + 1 :]
    for x in leaves:
        index = (slice(None),) * axis + (slice(before, before + prod(x.shape)),)
        parts.append(jnp.reshape(stacked[index], (*rest_before, *x.shape, *rest_after)))
        before += prod(x.shape)
    return parts


def _one_or_all(value: tuple[object, ...], argnums: int | Sequence[int]) -> object:
    return value[0] if isinstance(argnums, int) else value


def _inputs(
    fun: Callable[..., object],
    args: Sequence[object],
    nums: Sequence[int],
    what: str,
    holomorphic: bool,
    real: bool,
    allow_int: bool | None = None,
) -> tuple[list[Array], PyTreeDef]:
    """Return the checked leaves of the differentiated arguments, and the structure of their tuple.

    They must be complex where ``holomorphic``, and real where ``real`` otherwise.
    """
    flat = flat_args(fun, args, {}, lambda t: [i not in nums for i in leaf_args(t, len(args))])
    position = flat.of_operands(leaf_args(flat.treedef, len(args)))
    by_arg: dict[int, list[Array]] = {n: [] for n in nums}
    for x, name, arg in zip(flat.leaves, flat.names, position, strict=True):
        if arg not in by_arg:
            continue
        check_differentiable(x, name, what, allow_int)
        if holomorphic or real:
            check_real(x.type, name, what, holomorphic)
        by_arg[arg].append(cast(Array, x))
    return [x for n in nums for x in by_arg[n]], tree.structure(tuple(args[n] for n in nums))


def _check_outputs(
    outs: Sequence[Array], out: object, what: str, holomorphic: bool, real: bool
) -> None:
    """Raise IllTyped for results without a Jacobian; ``real``: they must be real-valued."""
    for x, path in zip(outs, tree.paths(out), strict=True):
        if real and not is_inexact_dtype(x.dtype):
            raise IllTyped(
                f"{what}: the result{path} is not real-valued",
                expected="a float (or complex, with holomorphic) dtype",
                found=str(x.type),
                remedy="convert it, or leave it out with has_aux",
            )
        if holomorphic or real:
            check_real(x.type, f"the result{path}", what, holomorphic)


@overload
def jacfwd(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[Array, P], Array],
    argnums: int = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacfwd(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
) -> Callable[P, PyTree]: ...
def jacfwd(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., PyTree]:
    """Return the function of the Jacobian of ``fun``, computed by columns in forward mode.

    Args:
        fun: a function of trees of arrays.
        argnums: the position, or the positions, of the arguments to differentiate.
        has_aux: whether ``fun`` returns a pair; the Jacobian is then returned with its second part.
        holomorphic: whether the function is complex and holomorphic.

    Returns:
        A function of the same arguments; for each leaf of the result, a tree like the argument
        of arrays of shape ``(*result shape, *argument shape)``.
    """
    return _forward(fun, argnums, has_aux, holomorphic, "jacfwd")


def _forward(
    fun: Callable[..., object],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    what: str,
) -> Callable[..., PyTree]:
    """:func:`jacfwd`, called ``what`` in messages."""
    check_callable(fun, what)

    @like(fun)
    def jacobian(*args: object, **kwargs: object) -> object:
        nums = argument_positions(argnums, len(args), what)
        leaves, treedef = _inputs(fun, args, nums, what, holomorphic, True)
        partial = _Partial(fun, args, kwargs, nums)
        out, push, *aux = linearize(partial, *tree.unflatten(treedef, leaves), has_aux=has_aux)
        _check_outputs(tree.leaves(out), out, what, holomorphic, False)

        def columns(*dots: Array) -> list[Array]:
            return tree.leaves(push(*tree.unflatten(treedef, dots)))

        pushed = _confined(columns, leaves, leaves, what)
        stacked = vmap(pushed, out_axes=-1)(*_basis(leaves))
        rows = [tree.unflatten(treedef, _blocks(s, leaves, s.ndim - 1)) for s in stacked]
        made = [_one_or_all(row, argnums) for row in rows]
        result = tree.unflatten(tree.structure(out), made)
        return (result, aux[0]) if has_aux else result

    return jacobian


@overload
def jacrev(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[Array, P], Array],
    argnums: int = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacrev(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[P, PyTree]: ...
def jacrev(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """Return the function of the Jacobian, by rows in reverse mode; else like :func:`jacfwd`."""
    check_callable(fun, "jacrev")

    @like(fun)
    def jacobian(*args: object, **kwargs: object) -> object:
        nums = argument_positions(argnums, len(args), "jacrev")
        operands, _ = _inputs(fun, args, nums, "jacrev", holomorphic, False, allow_int)
        chosen = tuple(args[n] for n in nums)
        partial = _Partial(fun, args, kwargs, nums)
        out, pullback, *aux = vjp(partial, *chosen, has_aux=has_aux)
        outs, out_tree = tree.flatten(out)
        _check_outputs(outs, out, "jacrev", holomorphic, True)

        def pull(*cts: Array) -> tuple[object, ...]:
            found: tuple[object, ...] = pullback(tree.unflatten(out_tree, cts))
            return found

        stacked = vmap(_confined(pull, outs, operands, "jacrev"))(*_basis(outs))
        leaves, in_tree = tree.flatten(stacked)
        cut = [_blocks(leaf, outs, 0) for leaf in leaves]
        rows = [
            _one_or_all(tree.unflatten(in_tree, [c[i] for c in cut]), argnums)
            for i in range(len(outs))
        ]
        result = tree.unflatten(out_tree, rows)
        return (result, aux[0]) if has_aux else result

    return jacobian


def _has_nan(leaves: Sequence[object]) -> Array | None:
    """Return whether an element of the operands is nan; None if surely none is."""
    found: Array | None = None
    for x in leaves:
        if not isinstance(x, Array) or not is_inexact_dtype(x.dtype):
            continue
        here = jnp.any(jnp.isnan(x))
        if not isinstance(here, DeviceArray) or here.numpy():
            found = here if found is None else jnp.logical_or(found, here)
    return found


def _confined(
    linear: Callable[..., T], rows: Sequence[Array], operands: Sequence[object], what: str
) -> Callable[..., T]:
    """Return a linear function of unit vectors whose zeros stay zeros beside operands of nan."""
    has_nan = _has_nan(operands)
    if has_nan is None:
        return linear
    structure = tree.structure(((has_nan, *rows), {}))
    names = [f"the unit vector {i}" for i in range(-1, len(rows))]
    types = [has_nan.type, *[x.type for x in rows]]
    flat = trace_flat(lambda _, *units: linear(*units), structure, types, names, what)
    jaxpr = confine_nan(flat.jaxpr)

    def confined(*units: Array) -> T:
        results = run(jaxpr, [*flat.consts, has_nan, *units])
        return cast(T, tree.unflatten(flat.out_tree, results))

    return confined


@overload
def hessian(  # type: ignore[overload-overlap]  # the more precise one comes first
    fun: Callable[Concatenate[Array, P], Array],
    argnums: int = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def hessian(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
) -> Callable[P, PyTree]: ...
def hessian(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., PyTree]:
    """Return the function of the Hessian: the forward Jacobian of the reverse one."""
    check_callable(fun, "hessian")
    rows = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return _forward(rows, argnums, has_aux, holomorphic, "hessian")
