"""Functions of trees: flatten, unflatten, map, reduce, transpose, paths and prefixes of leaves.

optree does the work. Here ``None`` is an empty tree, dicts are ordered by their keys, and classes
are registered in a namespace of this library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast, overload

import optree

from effax.ir.errors import BadArgument, EffaxError, IllTyped, TooDeep
from effax.tree.deep import DeepTree, flatten_deep

T = TypeVar("T")

PyTree: TypeAlias = Any
"""A tree or a leaf whose structure is known at run time only.

Python has no type for the structure of such a result, and ``object`` would need a cast at each use.
This is the only name for ``Any`` in public signatures.
"""

NAMESPACE = "effax"

_UNSET: Final = object()

PyTreeDef = optree.PyTreeSpec
"""The structure of a tree without its leaves."""


def _deep(
    error: RecursionError,
    tree: object,
    is_leaf: Callable[[object], bool] | None = None,
    none_is_leaf: bool = False,
    with_paths: bool = False,
) -> DeepTree:
    """Flatten a tree for which optree raised ``error``. Raises TooDeep."""
    # Any other recursion is that of the caller's function, which optree calls.
    if "the tree" not in str(error):
        raise error
    try:
        return flatten_deep(tree, is_leaf, none_is_leaf, NAMESPACE, with_paths)
    except RecursionError as again:
        if "the tree" not in str(again):
            raise
    raise TooDeep(
        "a tree is nested too deeply",
        expected=f"{optree.MAX_RECURSION_DEPTH} levels at most of classes that make their children "
        "when they are flattened",
        remedy="use a list of its parts, or stack them in one array",
    )


def flatten(
    tree: object, is_leaf: Callable[[object], bool] | None = None
) -> tuple[list[PyTree], PyTreeDef]:
    """Return the leaves of a tree, in order, and its structure.

    Raises:
        TooDeep: the tree has more than 1,000 levels of classes whose children are made when they
            are flattened.
        IllTyped: the function that flattens a registered class does not return a pair.
    """
    try:
        leaves, spec = optree.tree_flatten(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        leaves, spec, _ = _deep(error, tree, is_leaf)
    except (RuntimeError, TypeError) as error:
        _check_node(error)
        raise
    return leaves, spec


def _check_node(error: RuntimeError | TypeError) -> None:
    """Raise IllTyped where optree refuses what a registered class returned for an instance."""
    text, trace = str(error), error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_there = trace is not None and trace.tb_frame.f_globals.get("__name__") == "optree.ops"
    if raised_there and ("should return a 2- or 3-tuple" in text or "iterable" in text):
        raise IllTyped(
            "the function that flattens a registered class must return (children, aux_data)",
            expected="a pair, whose first part is iterable",
            found=text,
            remedy="return `((child, ...), aux_data)`",
        ) from None


def unflatten(treedef: PyTreeDef, leaves: Iterable[object]) -> PyTree:
    """Return the tree of a structure with these leaves. Raises BadArgument for a wrong number."""
    try:
        return optree.tree_unflatten(treedef, cast("PyTree", leaves))
    except EffaxError:
        raise
    except ValueError as error:
        raise BadArgument(
            "the leaves do not fit the structure",
            expected=f"{treedef.num_leaves} leaves",
            found=str(error),
        ) from None


def leaves(tree: object, is_leaf: Callable[[object], bool] | None = None) -> list[PyTree]:
    """Return the leaves of a tree, in order."""
    try:
        return optree.tree_leaves(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        return _deep(error, tree, is_leaf).leaves


def structure(tree: object, is_leaf: Callable[[object], bool] | None = None) -> PyTreeDef:
    """Return the structure of a tree."""
    try:
        return optree.tree_structure(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        return _deep(error, tree, is_leaf).spec


def map(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[[object], bool] | None = None,
) -> PyTree:
    """Map ``f`` over the leaves; further trees have the first one's structure as prefix.

    Raises:
        BadArgument: a further tree has another structure.
    """
    first, spec = flatten(tree, is_leaf)
    rows = zip(first, *columns(spec, rest), strict=True)
    return unflatten(spec, [f(*leaves) for leaves in rows])


def columns(treedef: PyTreeDef, rest: Sequence[object]) -> list[list[PyTree]]:
    """Return for each further tree of ``map`` its subtrees at the leaves of the structure.

    Raises:
        BadArgument: a tree has another structure.
    """
    found: list[list[PyTree]] = []
    for i, other in enumerate(rest):
        try:
            found.append(treedef.flatten_up_to(cast("PyTree", other)))
        except ValueError as error:
            raise BadArgument(
                f"tree.map: tree number {i + 2} has another structure than the first",
                expected=str(treedef),
                found=str(error),
            ) from None
    return found


@overload
def reduce(
    f: Callable[[PyTree, PyTree], PyTree],
    tree: object,
    *,
    is_leaf: Callable[[object], bool] | None = None,
) -> PyTree: ...
@overload
def reduce(
    f: Callable[[T, PyTree], T],
    tree: object,
    initializer: T,
    is_leaf: Callable[[object], bool] | None = None,
) -> T: ...
def reduce(
    f: Callable[[PyTree, PyTree], object],
    tree: object,
    initializer: object = _UNSET,
    is_leaf: Callable[[object], bool] | None = None,
) -> object:
    """Fold the leaves from the left, from ``initializer`` if there is one, else from the first.

    Raises:
        BadArgument: there is neither a leaf nor an initializer.
    """
    found = leaves(tree, is_leaf)
    if initializer is not _UNSET:
        found.insert(0, initializer)
    if not found:
        raise BadArgument(
            "tree.reduce of a tree without leaves",
            expected="a leaf, or an initializer",
            found="neither",
        )
    result: object = found[0]
    for leaf in found[1:]:
        result = f(result, leaf)
    return result


def reduce_associative(
    operation: Callable[[PyTree, PyTree], PyTree],
    tree: object,
    *,
    identity: object = _UNSET,
    is_leaf: Callable[[object], bool] | None = None,
) -> PyTree:
    """Combine neighbouring leaves by an associative function until one is left.

    The depth of the combinations is the logarithm of the number of leaves.

    Args:
        operation: the function.
        tree: the tree.
        identity: the result for a tree without leaves.
        is_leaf: returns whether a subtree is a leaf.

    Raises:
        BadArgument: there is neither a leaf nor an identity.

    >>> jax.tree.reduce_associative(lambda a, b: f"({a}{b})", ["x", "y", "z"])
    '((xy)z)'
    """
    found = leaves(tree, is_leaf)
    if not found and identity is _UNSET:
        raise BadArgument(
            "tree.reduce_associative of a tree without leaves",
            expected="a leaf, or an identity",
            found="neither",
        )
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        found = [operation(a, b) for a, b in pairs] + found[len(found) // 2 * 2 :]
    return found[0] if found else identity


def all_leaves(iterable: Iterable[object], is_leaf: Callable[[object], bool] | None = None) -> bool:
    """Return whether each element is a leaf."""
    return optree.all_leaves(cast("PyTree", iterable), is_leaf, namespace=NAMESPACE)


def all(tree: object, *, is_leaf: Callable[[object], bool] | None = None) -> bool:
    """Return whether all leaves are true."""
    return not [leaf for leaf in leaves(tree, is_leaf) if not leaf]


def broadcast(
    prefix_tree: object, full_tree: object, is_leaf: Callable[[object], bool] | None = None
) -> PyTree:
    """Return the tree with the structure of ``full_tree`` and the leaves of a prefix of it.

    Raises:
        BadArgument: ``prefix_tree`` is not a prefix of ``full_tree``.

    >>> jax.tree.broadcast([1, 2], [{"a": 0, "b": 0}, 0])
    [{'a': 1, 'b': 1}, 2]
    """
    return map(
        lambda leaf, subtree: map(lambda _: leaf, subtree), prefix_tree, full_tree, is_leaf=is_leaf
    )


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure is that of a leaf."""
    return treedef.is_leaf()


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of the root."""
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees with these structures."""
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: object
) -> PyTree:
    """Exchange the two layers of structure of a tree.

    Args:
        outer_treedef: the outer layer.
        inner_treedef: the inner layer; None is the structure of the first subtree at a leaf of
            the outer one.
        pytree_to_transpose: a tree with the inner layer at each leaf of the outer one.

    Raises:
        IllTyped: the tree does not have these layers, or the outer one has no leaves and the
            inner one is None.

    >>> jax.tree.transpose(jax.tree.structure([0, 0]), None, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    outer, inner = outer_treedef, inner_treedef
    try:
        subtrees = _subtrees(outer, inner, pytree_to_transpose)
        if inner is None:
            inner = structure(subtrees[0])
        rows = [inner.flatten_up_to(subtree) for subtree in subtrees]
        return inner.unflatten(outer.unflatten(column) for column in zip(*rows, strict=True))
    except (ValueError, TypeError, IndexError) as error:
        raise IllTyped(
            "tree.transpose: the tree does not have the structures",
            expected=f"{inner} at each leaf of {outer}",
            found=str(error),
        ) from None


def _subtrees(outer: PyTreeDef, inner: PyTreeDef | None, tree: object) -> list[PyTree]:
    """Return the subtrees at the leaves of a structure. Raises ValueError."""
    try:
        return outer.flatten_up_to(cast("PyTree", tree))
    except ValueError as error:
        # The data of a registered class may depend on the structure of its children.
        found = leaves(tree)
        n = 0 if inner is None else inner.num_leaves
        if "custom node data" not in str(error) or len(found) != n * outer.num_leaves or not n:
            raise
        assert inner is not None
        return [inner.unflatten(found[i : i + n]) for i in range(0, len(found), n)]


def accessors(
    tree: object, is_leaf: Callable[[object], bool] | None = None
) -> list[optree.PyTreeAccessor]:
    """Return the path to each leaf."""
    try:
        return optree.tree_accessors(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        return _deep(error, tree, is_leaf, with_paths=True).paths


def paths(tree: object, is_leaf: Callable[[object], bool] | None = None) -> list[str]:
    """Return the Python expression of each leaf, such as ``[0]['w']``."""
    return [a.codify("") for a in accessors(tree, is_leaf)]


def broadcast_prefix(prefix: object, tree: object) -> list[PyTree]:
    """Return the leaves of ``prefix``, each repeated for every leaf of ``tree`` below it.

    ``None`` is a leaf of ``prefix``. Raises ValueError where ``prefix`` is not a prefix.
    """
    first, spec = _with_none(prefix)
    spread: list[PyTree] = []
    for leaf, subtree in zip(first, spec.flatten_up_to(cast("PyTree", tree)), strict=True):
        spread += [leaf for x in _with_none(subtree)[0] if x is not None]
    return spread


def _with_none(tree: object) -> tuple[list[PyTree], PyTreeDef]:
    """Return the leaves and the structure of a tree in which None is a leaf."""
    try:
        flat = optree.tree_flatten(cast("PyTree", tree), none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError as error:
        found, spec, _ = _deep(error, tree, none_is_leaf=True)
        return found, spec
    return flat[0], flat[1]
