"""Calls of Python functions from programs that compute with what comes back."""

from __future__ import annotations

from collections.abc import Callable

from effax import tree
from effax.api.host_functions import TreeFunction, array_leaves
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import bind
from effax.arrays.config import allowed
from effax.arrays.tracing import label_of
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import IoCallback, PureCallback
from effax.ir.types import ArrayType, array_type
from effax.transforms.rules.host import METHODS
from effax.tree import PyTree, PyTreeDef


def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: None = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> PyTree:
    """``callback(*args, **kwargs)``, called while the program runs; it must be pure.

    So a call whose result nobody uses may go, two equal ones may be one, and ``checkpoint`` may
    call again. It is not differentiable: put a function with a ``custom_jvp`` rule around it.

    Args:
        callback: a function of trees of arrays.
        result_shape_dtypes: a tree of what it gives, ``ShapeDtypeStruct``s or arrays.
        *args: trees of arrays.
        sharding: None; there is one device.
        vmap_method: how it is batched. ``"sequential"`` and ``"sequential_unrolled"``: a call
            a lane, in a loop or without one. ``"expand_dims"``: one call, all arguments with a
            leading axis, which has size 1 where an argument is the same in all lanes.
            ``"broadcast_all"``: the same, of the size of the batch in all of them.
            ``"legacy_vectorized"``: what has no batch axis is passed as it is.
        **kwargs: trees of arrays, by name.

    Raises:
        BadArgument: ``callback`` is not callable, or there is no such method.
        IllTyped: an argument is no array; ``result_shape_dtypes`` has no shapes and dtypes; or,
            when it is called, ``callback`` gives something else than it says.
    """
    if vmap_method is not None and vmap_method not in METHODS:
        raise BadArgument(
            "pure_callback: there is no such vmap_method",
            expected=", ".join(map(repr, METHODS)),
            found=repr(vmap_method),
        )
    check_callable(callback, "pure_callback")
    _check_sharding(sharding, "pure_callback")
    avals, out_tree = _results(result_shape_dtypes, "pure_callback")
    operands, treedef, _ = array_leaves(args, kwargs, "pure_callback")
    function = TreeFunction(callback, treedef, {}, label_of(callback))
    return tree.unflatten(out_tree, bind(PureCallback(function, avals, vmap_method), *operands))


def io_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: None = None,
    ordered: bool = False,
    **kwargs: object,
) -> PyTree:
    """``callback(*args, **kwargs)``, called while the program runs, once each time; it may act.

    Under ``vmap`` it is called once a lane, in the order of lanes, also where its arguments are
    the same in all of them; an ordered one is not batched. It is not differentiable.

    Args:
        callback: a function of trees of arrays.
        result_shape_dtypes: a tree of what it gives, ``ShapeDtypeStruct``s or arrays; or None.
        *args: trees of arrays.
        sharding: None; there is one device.
        ordered: whether it keeps its place among all ordered calls.
        **kwargs: trees of arrays, by name.

    Raises:
        BadArgument: ``callback`` is not callable.
        IllTyped: as for ``pure_callback``.
    """
    check_callable(callback, "io_callback")
    _check_sharding(sharding, "io_callback")
    avals, out_tree = _results(result_shape_dtypes, "io_callback")
    operands, treedef, _ = array_leaves(args, kwargs, "io_callback")
    function = TreeFunction(callback, treedef, {}, label_of(callback))
    return tree.unflatten(out_tree, bind(IoCallback(function, avals, bool(ordered)), *operands))


def _check_sharding(sharding: object, what: str) -> None:
    if sharding is not None:
        raise BadArgument(
            f"{what}: there is one device, on which everything runs",
            expected="sharding=None",
            found=repr(sharding),
        )


def _results(said: object, what: str) -> tuple[tuple[ArrayType, ...], PyTreeDef]:
    """The types of the results and their structure. Raises IllTyped."""
    leaves, treedef = tree.flatten(said)
    avals = []
    for x, path in zip(leaves, tree.paths(said), strict=True):
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if shape is None or dtype is None:
            raise IllTyped(
                f"{what}: result_shape_dtypes{path} does not say a type",
                expected="something with a shape and a dtype, such as a ShapeDtypeStruct",
                found=f"{type(x).__name__}: {x!r:.60}",
            )
        made = array_type(shape, dtype)
        if allowed(made.dtype) != made.dtype:
            raise IllTyped(
                f"{what}: result_shape_dtypes{path} has 64 bits, which are not enabled",
                expected=str(allowed(made.dtype)),
                found=str(made),
                remedy="say a narrower dtype, or enable 64-bit dtypes: "
                "`config.update('enable_x64', True)`",
            )
        avals.append(made)
    return tuple(avals), treedef
