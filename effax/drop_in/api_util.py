"""Functions that flatten arguments, under the names of ``jax.api_util``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from effax import tree
from effax.api.staging import abstract_type
from effax.arrays.tracing import arg_names, label_of
from effax.drop_in.linear_util import (
    Store,
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)
from effax.ir.errors import BadArgument
from effax.ir.source import DebugInfo, defined_at
from effax.ir.types import Type
from effax.tree import PyTreeDef

R = TypeVar("R")

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "safe_zip",
    "shaped_abstractify",
]


@transformation_with_aux2
def flatten_fun(
    f: Callable[..., object], store: Store, in_tree: PyTreeDef, *flat: object
) -> object:
    """Make a function of ``(args, kwargs)`` one of leaves, which returns leaves.

    Returns the wrapped function, and a function that returns the structure of its result.
    """
    args, kwargs = tree.unflatten(in_tree, flat)
    leaves, out_tree = tree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., object], store: Store, in_tree: PyTreeDef, *flat: object
) -> object:
    """Make a function of positional arguments one of leaves, as :func:`flatten_fun`."""
    leaves, out_tree = tree.flatten(f(*tree.unflatten(in_tree, flat)))
    store.store(out_tree)
    return leaves


@transformation2
def _with_fixed(
    f: Callable[..., object],
    dyn_argnums: tuple[int, ...],
    fixed: tuple[object, ...],
    *dyn_args: object,
    **kwargs: object,
) -> object:
    given = dict(zip(dyn_argnums, dyn_args, strict=True))
    rest = iter(fixed)
    n = len(fixed) + len(given)
    return f(*[given[i] if i in given else next(rest) for i in range(n)], **kwargs)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[object],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, list[object]]:
    """Return the function of the arguments at these positions, and these arguments.

    Raises:
        BadArgument: a position is out of range, or another argument is not hashable.
    """
    positions = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    if not all(-len(args) <= i < len(args) for i in positions):
        raise BadArgument(
            "a position of an argument is out of range",
            expected=f"positions of {len(args)} arguments",
            found=str(positions),
        )
    positions = tuple([i % len(args) for i in positions])
    fixed = tuple([x for i, x in enumerate(args) if i not in positions])
    if require_static_args_hashable:
        for x in fixed:
            _check_hashable(x)
    return _with_fixed(f, positions, fixed), [args[i] for i in positions]


def _check_hashable(x: object) -> None:
    try:
        hash(x)
    except TypeError:
        raise BadArgument(
            "an argument that is not traced is not hashable",
            expected="a hashable value",
            found=type(x).__name__,
        ) from None


def debug_info(
    traced_for: str,
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    **options: object,
) -> DebugInfo:
    """Return the names of the leaves of the arguments of a function."""
    n = len(tree.leaves((tuple(args), dict(kwargs))))
    names = tuple(arg_names(fun, args, kwargs, n))
    where = defined_at(fun)
    label = label_of(fun)
    return DebugInfo(names, (), traced_for, label if where is None else f"{label} at {where}")


def safe_map(f: Callable[..., R], *args: Sequence[object]) -> list[R]:
    """Return ``f`` of the items of sequences of one length, as a list. Raises ValueError."""
    return [f(*each) for each in zip(*args, strict=True)]


def safe_zip(*args: Sequence[object]) -> list[tuple[object, ...]]:
    """Return the tuples of the items of sequences of one length. Raises ValueError."""
    return list(zip(*args, strict=True))


def shaped_abstractify(x: object) -> Type:
    """Return the type of a value, or of a ``ShapeDtypeStruct``. Raises IllTyped."""
    return abstract_type(x, "the argument of shaped_abstractify")


def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: object, **options: object
) -> list[object]:
    """Return one axis for each leaf of a structure, of which ``axis_tree`` is a prefix.

    Raises:
        BadArgument: it is not a prefix.
    """
    leaves: list[object] = []
    try:
        tree.map(
            lambda axis, sub: leaves.extend([axis] * len(tree.leaves(sub))),
            axis_tree,
            tree.unflatten(treedef, [0] * treedef.num_leaves),
            is_leaf=lambda x: x is None,
        )
    except (ValueError, TypeError) as error:
        raise BadArgument(
            f"{name} is not a prefix of the structure",
            expected=str(treedef),
            found=str(axis_tree),
        ) from error
    return leaves


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: PyTreeDef
) -> tuple[bool, ...]:
    """Return whether each leaf of ``(args, kwargs)`` is donated."""
    args, kwargs = tree.unflatten(in_tree, [0] * in_tree.num_leaves)
    found = [i in donate_argnums for i, x in enumerate(args) for _ in tree.leaves(x)]
    found += [name in donate_argnames for name in sorted(kwargs) for _ in tree.leaves(kwargs[name])]
    return tuple(found)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Return positions of donated arguments among those that are not static.

    Raises:
        BadArgument: an argument is static and donated.
    """
    both = set(donate_argnums) & set(static_argnums)
    if both:
        raise BadArgument("an argument is static and donated", found=str(sorted(both)))
    return tuple([i - sum(j < i for j in static_argnums) for i in sorted(donate_argnums)])
