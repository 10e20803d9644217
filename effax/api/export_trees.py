"""Serialize structures of arguments and results as JSON values, ``*`` for a leaf.

Tuples, lists, dicts and None are built in; other classes are registered under a name, by which
another process finds its class.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, cast

import optree

from effax import tree
from effax.ir.errors import BadArgument, LoweringError, TooDeep
from effax.tree import PyTree, PyTreeDef
from effax.tree.functions import NAMESPACE

MOST_LEVELS: Final = 100
"""The levels of trees in files: readers of JSON recur."""

T = TypeVar("T")
C = TypeVar("C")
D = TypeVar("D")


class _Node(NamedTuple):
    """The serialization of a class; ``write`` and ``read`` convert its auxiliary data."""

    cls: type
    name: str
    write: Callable[[PyTree], bytes]
    read: Callable[[bytes], PyTree]
    make: Callable[[PyTree, Sequence[PyTree]], object]


class _Nodes:
    """The classes registered for files, by class and by name."""

    def __init__(self) -> None:
        self.by_class: dict[type, _Node] = {}
        self.by_name: dict[str, _Node] = {}

    def add(self, node: _Node) -> None:
        for known in (self.by_class.get(node.cls), self.by_name.get(node.name)):
            if known is not None and (known.cls, known.name) != (node.cls, node.name):
                raise BadArgument(
                    "a class has one name in files, and a name one class",
                    expected=f"{known.cls.__name__} as {known.name!r}",
                    found=f"{node.cls.__name__} as {node.name!r}",
                )
        self.by_class[node.cls] = self.by_name[node.name] = node


_nodes: Final = _Nodes()


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Register a class of named tuples for files that are written or read.

    Args:
        nodetype: the class.
        serialized_name: its name in files; the same where they are read.

    Raises:
        BadArgument: it is not a class of named tuples, or has another name already.
    """
    if not issubclass(nodetype, tuple) or not hasattr(nodetype, "_fields"):
        raise BadArgument(
            "the class is not a named tuple", "a class of named tuples", repr(nodetype)
        )

    def made(_: object, children: Sequence[PyTree]) -> object:
        return nodetype(*children)

    _nodes.add(_Node(nodetype, _checked(serialized_name), lambda _: b"", lambda _: None, made))
    return nodetype


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[D], bytes],
    deserialize_auxdata: Callable[[bytes], D],
    from_children: Callable[[D, Sequence[C]], T] | None = None,
) -> type[T]:
    """Register a class of pytree nodes for files that are written or read.

    Args:
        nodetype: the class.
        serialized_name: its name in files; the same where they are read.
        serialize_auxdata: converts the auxiliary data to bytes.
        deserialize_auxdata: the inverse.
        from_children: makes an instance from auxiliary data and children; by default as it was
            registered.

    Raises:
        BadArgument: the class is not registered as a tree, or has another name already.
    """
    entry = optree.register_pytree_node.get(nodetype, namespace=NAMESPACE)
    if entry is None:
        raise BadArgument(
            "the class is not a pytree",
            expected="a registered class",
            found=repr(nodetype),
            remedy="`tree_util.register_pytree_node` first",
        )
    make = entry.unflatten_func if from_children is None else from_children
    name = _checked(serialized_name)
    _nodes.add(_Node(nodetype, name, serialize_auxdata, deserialize_auxdata, make))
    return nodetype


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise BadArgument("the name of a class in files is not a string", "a string", repr(name))
    return name


def tree_to_json(treedef: PyTreeDef, what: str) -> object:
    """Convert a structure to JSON values. Raises BadArgument for nodes of unknown classes."""

    def node(x: object, level: int = 0) -> object:
        if level > MOST_LEVELS:
            raise TooDeep(
                f"{what} of an exported function are nested too deeply",
                expected=f"trees of {MOST_LEVELS} levels at most",
            )
        if isinstance(x, int):
            return "*"
        if x is None:
            return None
        if type(x) in (list, tuple):
            return {
                type(x).__name__: [node(child, level + 1) for child in cast("Sequence[object]", x)]
            }
        if type(x) in (dict, OrderedDict):
            items = cast("dict[object, object]", x).items()
            if all(isinstance(key, str | int) for key, _ in items):
                return {
                    type(x).__name__.lower(): [
                        [key, node(child, level + 1)] for key, child in items
                    ]
                }
        known = _nodes.by_class.get(type(x))
        if known is not None:
            children, data, *_ = optree.tree_flatten_one_level(cast(PyTree, x), namespace=NAMESPACE)
            auxiliary = bytes(known.write(data)).hex()
            return {
                "node": known.name,
                "data": auxiliary,
                "of": [node(c, level + 1) for c in children],
            }
        raise BadArgument(
            f"{what} of an exported function have a structure that cannot be serialized",
            expected="tuples, lists, dicts with strings and integers as keys, None, and classes "
            "registered for files",
            found=type(x).__name__,
            remedy="`export.register_namedtuple_serialization`, or for other classes "
            "`export.register_pytree_node_serialization`",
        )

    return node(tree.unflatten(treedef, range(treedef.num_leaves)))


def tree_from_json(node: object) -> PyTreeDef:
    """Convert the result of :func:`tree_to_json` to a structure.

    Raises:
        KeyError: it is malformed.
        LoweringError: it has a class that is not registered.
    """
    return tree.structure(_made(node))


def _made(node: object) -> object:
    if node == "*":
        return 0
    if node is None:
        return None
    if not isinstance(node, Mapping):
        raise KeyError("a structure")
    if "node" in node:
        known = _nodes.by_name.get(str(node["node"]))
        if known is None:
            raise LoweringError(
                "the file has a tree with a class that is not registered",
                expected=", ".join(sorted(_nodes.by_name)) or "none",
                found=str(node["node"]),
                remedy="register it under this name",
            )
        data = known.read(bytes.fromhex(node["data"]))
        return known.make(data, [_made(child) for child in node["of"]])
    if "dict" in node:
        return {key: _made(child) for key, child in node["dict"]}
    if "ordereddict" in node:
        return OrderedDict((key, _made(child)) for key, child in node["ordereddict"])
    if "list" in node:
        return [_made(child) for child in node["list"]]
    return tuple([_made(child) for child in node["tuple"]])
