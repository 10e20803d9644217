"""Calls of Python functions from programs: ``pure_callback`` and ``io_callback``."""

from __future__ import annotations

from collections.abc import Callable

from effax import tree
from effax.api.host_functions import TreeFunction, array_leaves
from effax.api.staging import check_enabled
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import bind
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
    """Call the pure function ``callback(*args, **kwargs)`` while the program runs.

    A call whose result is unused may be removed, equal calls may be merged, and ``checkpoint`` may
    repeat it. It is not differentiable: wrap it in a function with a ``custom_jvp`` rule.

    Args:
        callback: a function of trees of arrays.
        result_shape_dtypes: the types of the results, a tree of ``ShapeDtypeStruct``s or arrays.
        *args: trees of arrays.
        sharding: None; there is one device.
        vmap_method: how it is batched. ``"sequential"`` and ``"sequential_unrolled"``: one call
            a batch element, in a loop or without one. ``"expand_dims"``: one call, all arguments
            with a leading axis, which has size 1 for an unbatched argument.
            ``"broadcast_all"``: the same, with the batch size for all of them.
            ``"legacy_vectorized"``: an unbatched argument is passed unchanged.
        **kwargs: trees of arrays, by name.

    Raises:
        BadArgument: ``callback`` is not callable, or ``vmap_method`` does not exist.
        IllTyped: an argument is not an array; ``result_shape_dtypes`` has no shapes and dtypes; or
            results of ``callback`` have other types.
    """
    if vmap_method is not None and vmap_method not in METHODS:
        raise BadArgument(
            "pure_callback: unknown vmap_method",
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
    """Call ``callback(*args, **kwargs)``, which may have side effects, once each run.

    Under ``vmap`` it is called once a batch element, in their order, even where its arguments are
    unbatched; an ordered call is not batched. It is not differentiable.

    Args:
        callback: a function of trees of arrays.
        result_shape_dtypes: the types of the results, as for ``pure_callback``; or None.
        *args: trees of arrays.
        sharding: None; there is one device.
        ordered: whether ordered calls run in program order.
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
            f"{what}: sharding is not supported",
            expected="sharding=None",
            found=repr(sharding),
        )


def _results(result_shape_dtypes: object, what: str) -> tuple[tuple[ArrayType, ...], PyTreeDef]:
    """Return the types of the results, and their structure. Raises IllTyped."""
    leaves, treedef = tree.flatten(result_shape_dtypes)
    avals = []
    for x, path in zip(leaves, tree.paths(result_shape_dtypes), strict=True):
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if shape is None or dtype is None:
            raise IllTyped(
                f"{what}: result_shape_dtypes{path} is not a type",
                expected="a value with a shape and a dtype, such as a ShapeDtypeStruct",
                found=f"{type(x).__name__}: {x!r:.60}",
            )
        made = array_type(shape, dtype)
        check_enabled(made, f"{what}: result_shape_dtypes{path}")
        avals.append(made)
    return tuple(avals), treedef
