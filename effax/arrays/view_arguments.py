"""Views of references as arguments: opened, or borrowed where an axis of them is mapped.

A transformation takes a view as a node of a tree, of its reference and of the positions in its
indices; the function takes the view of the traced reference. Where an axis of the view is mapped,
the function takes a local reference with the contents of the view, which are written back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar, cast, final

import numpy as np
import optree

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.device_array import DeviceArray
from effax.arrays.dynamic_span import DynamicSpan
from effax.arrays.ref import Ref
from effax.arrays.ref_functions import freeze, new_ref
from effax.arrays.ref_view import RefView
from effax.effects import ArgIndex, Read
from effax.ir.syntax import Jaxpr
from effax.ir.trace import alias_error, identity
from effax.ir.types import Shape
from effax.tree.functions import NAMESPACE

T = TypeVar("T")


class _Static(NamedTuple):
    """The part of a view that is not traced: its shape, and its indices without positions."""

    shape: Shape
    chain: tuple[object, ...]


class _Tuple(NamedTuple):
    of: tuple[object, ...]


class _Slice(NamedTuple):
    of: tuple[object, object, object]


class _Span(NamedTuple):
    start: object
    size: int
    stride: int


class _Position(NamedTuple):
    """The place of a position among the children."""

    at: int


@final
class OpenView:
    """A view as a node of a tree: its reference, then the positions in its indices."""

    __slots__ = ("children", "static")

    def __init__(self, children: Sequence[object], static: _Static) -> None:
        self.children: tuple[object, ...] = tuple(children)
        self.static: _Static = static


class _Entry(optree.PyTreeEntry):
    """The path of a child; the reference has the name of the view."""

    __slots__ = ()

    def codify(self, /, node: str = "") -> str:
        """Return the path of the child of a node."""
        return node if self.entry == 0 else f"{node}.index[{int(self.entry) - 1}]"


def _flatten(node: OpenView) -> tuple[tuple[object, ...], _Static, range]:
    return node.children, node.static, range(len(node.children))


def _unflatten(static: _Static, children: Iterable[object]) -> object:
    node = OpenView(tuple(children), static)
    return _closed(node) if isinstance(node.children[0], Ref) else node


optree.register_pytree_node(
    OpenView,  # type: ignore[arg-type]  # optree declares a Collection; it only calls the functions
    cast("tree.PyTree", _flatten),
    cast("tree.PyTree", _unflatten),
    path_entry_type=_Entry,
    namespace=NAMESPACE,
)


def has_views(leaves: Sequence[object]) -> bool:
    """Return whether a leaf is a view."""
    return RefView in map(type, leaves)


def open_views(value: T) -> T:
    """Return a tree with its views opened; the tree itself where it has none."""
    leaves, treedef = tree.flatten(value)
    if not has_views(leaves):
        return value
    made: T = tree.unflatten(treedef, [_opened(x) if type(x) is RefView else x for x in leaves])
    return made


def _opened(view: RefView) -> OpenView:
    children: list[object] = [view.ref]
    chain = tuple([_split(index, children) for index in view.chain])
    return OpenView(children, _Static(view.shape, chain))


_POSITIONS: Final = (Array, np.ndarray, np.integer, int)


def _split(index: object, children: list[object]) -> object:
    """Return an index with its positions replaced by their places among the children."""
    if type(index) is tuple:
        return _Tuple(tuple([x for entry in index for x in _entries(entry, children)]))
    entries = _entries(index, children)
    return entries[0] if len(entries) == 1 else _Tuple(tuple(entries))


def _entries(index: object, children: list[object]) -> list[object]:
    """Return the entries of one index: several for a mask, that is, for the positions in it."""
    if isinstance(index, slice):
        return [_Slice((index.start, index.stop, index.step))]
    if isinstance(index, DynamicSpan):
        return [_Span(_entries(index.start, children)[0], index.size, index.stride)]
    if isinstance(index, list):
        index = np.asarray(index)
    if isinstance(index, np.ndarray | DeviceArray) and index.dtype == np.bool_ and index.shape:
        return [_placed(np.int32(at), children) for at in np.nonzero(np.asarray(index))]
    dynamic = isinstance(index, _POSITIONS) and not isinstance(index, bool)
    return [_placed(index, children) if dynamic else index]


def _placed(position: object, children: list[object]) -> _Position:
    children.append(position)
    return _Position(len(children) - 1)


def _closed(node: OpenView) -> RefView:
    chain = tuple([_joined(index, node.children) for index in node.static.chain])
    return RefView.of_shape(cast(Ref, node.children[0]), chain, node.static.shape)


def _joined(index: object, children: Sequence[object]) -> object:
    match index:
        case _Tuple(entries):
            return tuple([_joined(x, children) for x in entries])
        case _Slice(entries):
            return slice(*entries)
        case _Span(start, size, stride):
            return DynamicSpan(_joined(start, children), size, stride)
        case _Position(at):
            return children[at]
        case _:
            return index


class BorrowedView(NamedTuple):
    """A view whose contents are in a local reference while a function runs.

    Attributes:
        view: the view.
        local: the reference.
        name: the user's name of the view.
    """

    view: RefView
    local: Ref
    name: str

    def end(self, jaxpr: Jaxpr, operands: Sequence[Operand]) -> None:
        """Write the contents back, after a program ran on the operands and changed them."""
        position = next(i for i, x in enumerate(operands) if x is self.local)
        changed = any(not isinstance(e, Read) for e in jaxpr.effects.on(ArgIndex(position)))
        contents = freeze(self.local)
        if changed:
            self.view[...] = contents


def borrow_view(view: RefView, name: str) -> BorrowedView:
    """Copy the contents of a view to a local reference."""
    return BorrowedView(view, new_ref(view[...]), name)


def check_borrowed(views: Iterable[BorrowedView], operands: Iterable[Operand], what: str) -> None:
    """Raise RefError where a borrowed view has the reference of an operand or of another view."""
    seen = {identity(x) for x in operands if isinstance(x, Ref)}
    for view, _, name in views:
        own = identity(view.ref)
        if own in seen:
            raise alias_error(
                f"{what} maps over {name}, a view of a reference that it also takes or closes over",
                view.ref,
            )
        seen.add(own)
