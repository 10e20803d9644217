"""Trees of arrays: nested tuples, lists, dicts, named tuples, and registered classes.

The work is optree's; what is fixed here is that ``None`` is an empty tree, dicts are taken in the
order of their keys, and classes are registered for this library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, overload

import optree

from effax.ir.errors import BadArgument

__all__ = [
    "PyTree",
    "PyTreeDef",
    "all",
    "all_leaves",
    "broadcast_prefix",
    "flatten",
    "leaves",
    "map",
    "paths",
    "reduce",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_static",
    "structure",
    "transpose",
    "unflatten",
]

T = TypeVar("T")

PyTree: TypeAlias = Any
"""A tree or a leaf of which no more is known than a function makes of it.

Python has no type for "a tuple of these, by name, and inside of it what that function gives". With
``object`` in its place each use of a result would need a cast; so this is the one name under which
``Any`` is part of the public surface, for results whose structure is known when they are made only.
"""

NAMESPACE = "effax"

_UNSET: Final = object()

PyTreeDef = optree.PyTreeSpec
"""The structure of a tree without its leaves."""


def flatten(
    tree: object, is_leaf: Callable[[object], bool] | None = None
) -> tuple[list[PyTree], PyTreeDef]:
    """The leaves of a tree, in order, and its structure."""
    leaves, spec = optree.tree_flatten(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)
    return leaves, spec


def unflatten(treedef: PyTreeDef, leaves: Iterable[object]) -> PyTree:
    """The tree of that structure with these leaves. Raises BadArgument for too few or too many."""
    try:
        return optree.tree_unflatten(treedef, cast("PyTree", leaves))
    except ValueError as error:
        raise BadArgument(
            "the leaves do not fit the structure",
            expected=f"{treedef.num_leaves} leaves",
            found=str(error),
        ) from None


def leaves(tree: object, is_leaf: Callable[[object], bool] | None = None) -> list[PyTree]:
    """The leaves of a tree, in order."""
    return optree.tree_leaves(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)


def structure(tree: object, is_leaf: Callable[[object], bool] | None = None) -> PyTreeDef:
    """The structure of a tree."""
    return optree.tree_structure(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)


def map(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[[object], bool] | None = None,
) -> PyTree:
    """The tree of ``f`` of the leaves; further trees have the first one's structure as prefix.

    Raises:
        BadArgument: a further tree has another structure.
    """
    first, spec = flatten(tree, is_leaf)
    columns = [first]
    for i, other in enumerate(rest):
        try:
            columns.append(spec.flatten_up_to(cast("PyTree", other)))
        except ValueError as error:
            raise BadArgument(
                f"tree.map: tree number {i + 2} has another structure than the first",
                expected=str(spec),
                found=str(error),
            ) from None
    return unflatten(spec, [f(*leaves) for leaves in zip(*columns, strict=True)])


@overload
def reduce(f: Callable[[PyTree, PyTree], PyTree], tree: object) -> PyTree: ...
@overload
def reduce(f: Callable[[T, PyTree], T], tree: object, initializer: T) -> T: ...
def reduce(
    f: Callable[[PyTree, PyTree], object], tree: object, initializer: object = _UNSET
) -> object:
    """Fold the leaves from the left, from ``initializer`` if there is one, else from the first.

    Raises:
        BadArgument: there is neither a leaf nor an initializer.
    """
    found = leaves(tree)
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


def all_leaves(iterable: Iterable[object], is_leaf: Callable[[object], bool] | None = None) -> bool:
    """Whether each element is a leaf, and no tree with others."""
    return optree.all_leaves(cast("PyTree", iterable), is_leaf, namespace=NAMESPACE)


def all(tree: object) -> bool:
    """Whether all leaves are true."""
    return not [leaf for leaf in leaves(tree) if not leaf]


def transpose(outer: PyTreeDef, inner: PyTreeDef, tree: object) -> PyTree:
    """The tree with its two layers of structure exchanged."""
    return optree.tree_transpose(outer, inner, cast("PyTree", tree))


def paths(tree: object, is_leaf: Callable[[object], bool] | None = None) -> list[str]:
    """How each leaf is written in Python, such as ``[0]['w']``."""
    accessors = optree.tree_accessors(cast("PyTree", tree), is_leaf, namespace=NAMESPACE)
    return [a.codify("") for a in accessors]


def broadcast_prefix(prefix: object, tree: object) -> list[PyTree]:
    """The leaves of ``prefix``, each repeated for every leaf of ``tree`` below it.

    ``None`` is a leaf of ``prefix``. Raises ValueError where ``prefix`` is no prefix of ``tree``.
    """
    spread = optree.broadcast_prefix(
        cast("PyTree", prefix), cast("PyTree", tree), none_is_leaf=True, namespace=NAMESPACE
    )
    full = optree.tree_leaves(cast("PyTree", tree), none_is_leaf=True, namespace=NAMESPACE)
    return [p for p, leaf in zip(spread, full, strict=True) if leaf is not None]


def register_pytree_node(
    cls: type[T],
    flatten_func: Callable[[T], tuple[Iterable[object], object]],
    unflatten_func: Callable[[PyTree, Iterable[PyTree]], T],
) -> None:
    """Make instances of ``cls`` inner nodes of trees.

    Args:
        cls: the class.
        flatten_func: gives the children, and auxiliary data that is compared by ``==``.
        unflatten_func: makes an instance from auxiliary data and children.
    """
    optree.register_pytree_node(
        cls,  # type: ignore[arg-type]  # optree wants a Collection; it only calls the functions
        cast("PyTree", flatten_func),
        cast("PyTree", unflatten_func),
        namespace=NAMESPACE,
    )


class TreeClass(Protocol):
    """What a class has that says itself how it is taken apart and put together."""

    def tree_flatten(self) -> tuple[Iterable[object], object]:
        """The children, and auxiliary data that is compared by ``==``."""
        ...

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Iterable[PyTree], /) -> object:
        """An instance from auxiliary data and children."""
        ...


Tree = TypeVar("Tree", bound=TreeClass)


def register_pytree_node_class(cls: type[Tree]) -> type[Tree]:
    """Class decorator: use its methods ``tree_flatten`` and ``tree_unflatten``."""
    made = cast("Callable[[object, Iterable[object]], Tree]", cls.tree_unflatten)
    register_pytree_node(cls, cls.tree_flatten, made)
    return cls


def register_dataclass(
    nodetype: type[T],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
) -> type[T]:
    """Make instances of a dataclass inner nodes of trees; also a class decorator.

    Args:
        nodetype: the dataclass.
        data_fields: the fields that are children; where it is None, all that are not marked by
            ``dataclasses.field(metadata={"static": True})``.
        meta_fields: the fields that are compared by ``==`` and not traced; the others where it
            is None.

    Raises:
        BadArgument: it is no dataclass, or the two lists are not its fields, each once.
    """
    if not is_dataclass(nodetype):
        raise BadArgument("register_dataclass takes a dataclass", found=f"{nodetype!r:.60}")
    init = [f for f in fields(nodetype) if f.init]
    static = {f.name for f in init if f.metadata.get("static", False)}
    if data_fields is None:
        data_fields = [f.name for f in init if f.name not in (meta_fields or static)]
    if meta_fields is None:
        meta_fields = [f.name for f in init if f.name not in data_fields]
    named = [*data_fields, *meta_fields]
    if sorted(named) != sorted(f.name for f in init):
        raise BadArgument(
            f"the fields of {nodetype.__name__} are to be data or meta, each once",
            expected=", ".join(f.name for f in init),
            found=", ".join(named),
        )
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten_fields(x: object) -> tuple[list[object], tuple[object, ...], list[str]]:
        kept = tuple([getattr(x, name) for name in meta])
        return [getattr(x, name) for name in data], kept, list(data)

    def unflatten_fields(kept: tuple[object, ...], children: Iterable[object]) -> T:
        given = dict(zip(meta, kept, strict=True))
        return nodetype(**given, **dict(zip(data, children, strict=True)))

    optree.register_pytree_node(
        nodetype,  # type: ignore[arg-type]  # as in register_pytree_node
        cast("PyTree", flatten_fields),
        cast("PyTree", unflatten_fields),
        path_entry_type=optree.GetAttrEntry,
        namespace=NAMESPACE,
    )
    return nodetype


def register_static(cls: type[T]) -> type[T]:
    """Class decorator: instances are trees without leaves, compared by ``==``."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls
