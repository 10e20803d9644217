"""Classes whose instances are inner nodes of trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields, is_dataclass
from functools import partial
from typing import Generic, Protocol, Self, TypeVar, cast

import optree

from effax.ir.errors import BadArgument, IllTyped
from effax.tree.functions import NAMESPACE, PyTree

R = TypeVar("R")
T = TypeVar("T")


def register_pytree_node(
    cls: type[T],
    flatten_func: Callable[[T], tuple[Iterable[object], object]],
    unflatten_func: Callable[[PyTree, Iterable[PyTree]], T],
) -> None:
    """Make instances of ``cls`` inner nodes of trees.

    Args:
        cls: the class.
        flatten_func: returns the children, and auxiliary data that is compared by ``==``.
        unflatten_func: returns an instance from auxiliary data and children.
    """
    with warnings.catch_warnings():
        # A named tuple may have a structure of its own; optree warns of that.
        warnings.filterwarnings("ignore", message=".* is a subclass of `collections.namedtuple`")
        optree.register_pytree_node(
            cls,  # type: ignore[arg-type]  # optree declares a Collection, and calls the functions
            cast("PyTree", flatten_func),
            cast("PyTree", unflatten_func),
            namespace=NAMESPACE,
        )


class KeyedEntry(optree.PyTreeEntry):
    """The key of a child, as the class of its parent names it."""

    def codify(self, /, node: str = "") -> str:
        """Return the Python expression of the child of ``node``."""
        return f"{node}{self.entry}"


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[object, object]], object]],
    unflatten_func: Callable[[PyTree, Iterable[PyTree]], T],
    flatten_func: Callable[[T], tuple[Iterable[object], object]] | None = None,
) -> None:
    """Make instances of a class inner nodes of trees, whose children have keys in paths.

    Args:
        nodetype: the class.
        flatten_with_keys: returns pairs of a key and a child, and auxiliary data that is compared
            by ``==``. A key is a ``GetAttrKey``, ``DictKey``, ``SequenceKey`` or another object
            whose ``str`` is its part of a path.
        unflatten_func: returns an instance from auxiliary data and children.
        flatten_func: as that of ``register_pytree_node``; its result is that of
            ``flatten_with_keys`` without keys, and it is not called.
    """
    del flatten_func

    def flatten_keyed(x: T) -> tuple[list[object], object, list[object]]:
        keyed, aux = flatten_with_keys(x)
        pairs = list(keyed)
        return [child for _, child in pairs], aux, [key for key, _ in pairs]

    optree.register_pytree_node(
        nodetype,  # type: ignore[arg-type]  # as in register_pytree_node
        cast("PyTree", flatten_keyed),
        cast("PyTree", unflatten_func),
        path_entry_type=KeyedEntry,
        namespace=NAMESPACE,
    )


class TreeClass(Protocol):
    """A class with methods that flatten and unflatten its instances."""

    def tree_flatten(self) -> tuple[Iterable[object], object]:
        """Return the children, and auxiliary data that is compared by ``==``."""
        ...

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Iterable[PyTree], /) -> object:
        """Return an instance from auxiliary data and children."""
        ...


Tree = TypeVar("Tree", bound=TreeClass)


def register_pytree_node_class(cls: type[Tree]) -> type[Tree]:
    """Register a class with methods ``tree_flatten`` and ``tree_unflatten``; a class decorator."""
    made = cast("Callable[[object, Iterable[object]], Tree]", cls.tree_unflatten)
    register_pytree_node(cls, cls.tree_flatten, made)
    return cls


class KeyedTreeClass(Protocol):
    """A class with methods that flatten with keys, and unflatten, its instances."""

    def tree_flatten_with_keys(self) -> tuple[Iterable[tuple[object, object]], object]:
        """Return pairs of a key and a child, and auxiliary data that is compared by ``==``."""
        ...

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Iterable[PyTree], /) -> object:
        """Return an instance from auxiliary data and children."""
        ...


KeyedTree = TypeVar("KeyedTree", bound=KeyedTreeClass)


def register_pytree_with_keys_class(cls: type[KeyedTree]) -> type[KeyedTree]:
    """Register a class with ``tree_flatten_with_keys`` and ``tree_unflatten``; a decorator."""
    made = cast("Callable[[object, Iterable[object]], KeyedTree]", cls.tree_unflatten)
    register_pytree_with_keys(cls, cls.tree_flatten_with_keys, made)
    return cls


def register_dataclass(
    nodetype: type[T],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type[T]:
    """Make instances of a dataclass inner nodes of trees; also a class decorator.

    Args:
        nodetype: the dataclass; or any class whose constructor takes these fields, which must
            then be listed.
        data_fields: the fields that are children; None means all but those marked by
            ``tree.static`` and those dropped.
        meta_fields: the fields that are compared by ``==`` and not traced; None means the
            others.
        drop_fields: the fields that are not passed to the constructor: those with a default, or
            with ``init=False``.

    Raises:
        IllTyped: ``nodetype`` is not a dataclass, and the fields are not listed.
        BadArgument: a field is in neither list or in both.

    >>> import dataclasses
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: jax.Array
    ...     name: str = jax.tree.static(default="layer")
    >>> jax.tree.leaves(Layer(3.0))
    [3.0]
    """
    if not is_dataclass(nodetype):
        if data_fields is None or meta_fields is None:
            raise IllTyped(
                "register_dataclass takes a dataclass, or data_fields and meta_fields",
                found=f"{nodetype!r:.60}",
            )
        _register_fields(nodetype, data_fields, meta_fields)
        return nodetype
    kept = [f for f in fields(nodetype) if f.name not in drop_fields]
    static = {f.name for f in kept if f.metadata.get("static", False)}
    if data_fields is None:
        data_fields = [f.name for f in kept if f.name not in (meta_fields or static)]
    if meta_fields is None:
        meta_fields = [f.name for f in kept if f.name not in data_fields]
    _check_fields(nodetype, [f.name for f in kept if f.init], [*data_fields, *meta_fields])
    _register_fields(nodetype, data_fields, meta_fields)
    return nodetype


def _check_fields(nodetype: type, wanted: Sequence[str], named: Sequence[str]) -> None:
    if sorted(named) != sorted(wanted):
        raise BadArgument(
            f"the fields of {nodetype.__name__} must each be data or meta, once",
            expected=", ".join(wanted),
            found=", ".join(named),
            remedy="list fields with init=False in drop_fields",
        )


def _register_fields(
    nodetype: type[T], data_fields: Sequence[str], meta_fields: Sequence[str]
) -> None:
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


def static(**options: PyTree) -> PyTree:
    """Return a ``dataclasses.field`` that ``register_dataclass`` takes as a meta field.

    Args:
        options: those of ``dataclasses.field``; ``metadata`` may have further entries.

    >>> jax.tree.static(default="relu").metadata["static"]
    True
    """
    metadata = {"static": True, **(options.pop("metadata", None) or {})}
    return field(metadata=metadata, **options)


def is_tree_node(typ: type) -> bool:
    """Return whether instances of a class are inner nodes of trees.

    >>> jax.tree_util.is_tree_node(dict), jax.tree_util.is_tree_node(float)
    (True, False)
    """
    entry = optree.register_pytree_node.get(typ, namespace=NAMESPACE)
    return entry is not None or optree.is_namedtuple_class(typ)


def register_static(cls: type[T]) -> type[T]:
    """Make instances trees without leaves, compared by ``==``; a class decorator."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


class Partial(partial[R]):
    """A ``functools.partial`` that is a tree: its arguments are children, its function is not.

    ``jit`` and ``vmap`` accept it; functions are compared by ``==``.
    """

    def __new__(cls, func: Callable[..., R], /, *args: PyTree, **keywords: PyTree) -> Self:
        """Keep the arguments of another ``functools.partial`` apart: they are not children."""
        if isinstance(func, partial) and not isinstance(func, Partial):
            func = _Whole(func)
        return super().__new__(cls, func, *args, **keywords)


class _Whole(Generic[R]):
    """A ``functools.partial`` that ``Partial`` calls as a whole, equal to it."""

    def __init__(self, func: partial[R]) -> None:
        self.func = func

    def __call__(self, *args: PyTree, **keywords: PyTree) -> R:
        return self.func(*args, **keywords)

    def __hash__(self) -> int:
        return hash(self.func)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if isinstance(other, _Whole) else other)


def _flatten_partial(f: Partial[object]) -> tuple[tuple[object, ...], object]:
    return (f.args, f.keywords), f.func


def _unflatten_partial(func: PyTree, children: Iterable[PyTree]) -> Partial[object]:
    args, keywords = children
    return Partial(func, *args, **keywords)


register_pytree_node(Partial, _flatten_partial, _unflatten_partial)
