"""Structures of arguments and results in files: in JSON's types, ``*`` for a leaf.

Tuples, lists, dicts and None are known; classes are registered under a name, by which another
process finds its own class.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, cast

import optree

from effax import tree
from effax.ir.errors import BadArgument, LoweringError
from effax.tree import PyTree, PyTreeDef
from effax.tree.functions import NAMESPACE

T = TypeVar("T")
C = TypeVar("C")
D = TypeVar("D")


class _Node(NamedTuple):
    """How a class is written and read: ``write`` and ``read`` are of its auxiliary data."""

    cls: type
    name: str
    write: Callable[[PyTree], bytes]
    read: Callable[[bytes], PyTree]
    make: Callable[[PyTree, Sequence[PyTree]], object]


class _Nodes:
    """The classes that files may hold, by class and by name."""

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
    """Let files hold named tuples of this class; also for what reads them.

    Args:
        nodetype: the class.
        serialized_name: what files call it; the same wherever they are read.

    Raises:
        BadArgument: it is no named tuple, or has another name already.
    """
    if not issubclass(nodetype, tuple) or not hasattr(nodetype, "_fields"):
        raise BadArgument("this is no named tuple", "a class of named tuples", repr(nodetype))

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
    """Let files hold instances of a class that is registered as a tree; also for what reads them.

    Args:
        nodetype: the class.
        serialized_name: what files call it; the same wherever they are read.
        serialize_auxdata: gives the auxiliary data as bytes.
        deserialize_auxdata: the inverse.
        from_children: makes an instance from auxiliary data and children; by default as it was
            registered.

    Raises:
        BadArgument: the class is not registered as a tree, or has another name already.
    """
    entry = optree.register_pytree_node.get(nodetype, namespace=NAMESPACE)
    if entry is None:
        raise BadArgument(
            "this class is no tree",
            expected="a class that is registered",
            found=repr(nodetype),
            remedy="`tree_util.register_pytree_node` first",
        )
    make = entry.unflatten_func if from_children is None else from_children
    name = _checked(serialized_name)
    _nodes.add(_Node(nodetype, name, serialize_auxdata, deserialize_auxdata, make))
    return nodetype


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise BadArgument("a class has a name in files", "a string", repr(name))
    return name


def tree_to_json(treedef: PyTreeDef, what: str) -> object:
    """The structure in JSON's types. Raises BadArgument where it has nodes of unknown classes."""

    def node(x: object) -> object:
        if isinstance(x, int):
            return "*"
        if x is None:
            return None
        if type(x) in (list, tuple):
            return {type(x).__name__: [node(child) for child in cast("Sequence[object]", x)]}
        if type(x) in (dict, OrderedDict):
            items = cast("dict[object, object]", x).items()
            if all(isinstance(key, str | int) for key, _ in items):
                return {type(x).__name__.lower(): [[key, node(child)] for key, child in items]}
        known = _nodes.by_class.get(type(x))
        if known is not None:
            children, data, *_ = optree.tree_flatten_one_level(cast(PyTree, x), namespace=NAMESPACE)
            auxiliary = bytes(known.write(data)).hex()
            return {"node": known.name, "data": auxiliary, "of": [node(c) for c in children]}
        raise BadArgument(
            f"{what} of an exported function are a tree that cannot be written down",
            expected="tuples, lists, dicts with strings and integers as keys, None, and classes "
            "that files know",
            found=type(x).__name__,
            remedy="`export.register_namedtuple_serialization`, or for other classes "
            "`export.register_pytree_node_serialization`",
        )

    return node(tree.unflatten(treedef, range(treedef.num_leaves)))


def tree_from_json(said: object) -> PyTreeDef:
    """The structure that :func:`tree_to_json` wrote.

    Raises:
        KeyError: it is none.
        LoweringError: it has a class that is not known here.
    """
    return tree.structure(_made(said))


def _made(said: object) -> object:
    if said == "*":
        return 0
    if said is None:
        return None
    if not isinstance(said, Mapping):
        raise KeyError("a structure")
    if "node" in said:
        known = _nodes.by_name.get(str(said["node"]))
        if known is None:
            raise LoweringError(
                "this file holds a tree with a class that is not known here",
                expected=", ".join(sorted(_nodes.by_name)) or "none",
                found=str(said["node"]),
                remedy="register it under this name, as where the file was written",
            )
        data = known.read(bytes.fromhex(said["data"]))
        return known.make(data, [_made(child) for child in said["of"]])
    if "dict" in said:
        return {key: _made(child) for key, child in said["dict"]}
    if "ordereddict" in said:
        return OrderedDict((key, _made(child)) for key, child in said["ordereddict"])
    if "list" in said:
        return [_made(child) for child in said["list"]]
    return tuple([_made(child) for child in said["tuple"]])
