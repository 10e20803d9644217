"""The residuals of a pullback that are arguments of the differentiated function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.ir.errors import BadArgument
from effax.ir.types import Type
from effax.tree import PyTree, PyTreeDef
from effax.tree.key_paths import flatten_one_level
from effax.tree.registry import register_static


class _Absent:
    """The base of marks in place of an argument that a pullback does not keep."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@final
@register_static
class NotNeeded(_Absent):
    """The mark of an argument that a pullback does not use."""


@final
@register_static
class NotSaveable(_Absent):
    """The mark of an argument that a pullback uses and does not keep: set it before the call."""


NOT_NEEDED: Final = NotNeeded()
NOT_SAVEABLE: Final = NotSaveable()


def saveable_leaves(saveable: object, in_tree: PyTreeDef) -> tuple[list[bool], list[PyTree]]:
    """Return which leaves of the arguments may be kept, and the tree of numbers for each argument.

    Args:
        saveable: a boolean, or a tuple of these, nested as the arguments are.
        in_tree: the structure of the arguments.

    Raises:
        BadArgument: it is not such a tree of booleans, or has another structure.
    """
    flags: list[bool] = []
    args = tree.unflatten(in_tree, range(in_tree.num_leaves))

    def spread(entry: object, part: PyTree, where: str) -> PyTree:
        if isinstance(entry, bool):
            leaves = tree.leaves(part)
            flags.extend([entry] * len(leaves))
            return part
        if type(entry) is not tuple:
            raise BadArgument(
                "vjp: saveable_args is a tuple-tree of bools",
                expected="True, False, or a tuple of these",
                found=f"{type(entry).__name__}: {entry!r:.60}",
            )
        if tree.all_leaves([part]):
            raise BadArgument(
                f"vjp: saveable_args has a tuple at {where}, which is a leaf of the arguments",
                expected="a boolean",
                found=repr(entry),
            )
        children, _ = flatten_one_level(part)
        if len(children) != len(entry):
            raise BadArgument(
                f"vjp: saveable_args has another number of children at {where}",
                expected=str(len(children)),
                found=str(len(entry)),
            )
        pairs = enumerate(zip(entry, children, strict=True))
        return tuple([spread(e, child, f"{where}[{i}]") for i, (e, child) in pairs])

    made = spread(saveable, args, "args")
    return flags, list(made)


class ArgSources:
    """The origins of the residuals of a pullback: leaves of the arguments, or other values.

    Attributes:
        leaves: for each residual, the number of the leaf of the arguments that it is, or None.
    """

    def __init__(
        self, leaves: tuple[int | None, ...], types: tuple[Type, ...], in_tree: PyTreeDef
    ) -> None:
        self.leaves: tuple[int | None, ...] = leaves
        self._types = types
        self._in_tree = in_tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgSources) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.leaves, self._types, self._in_tree))

    def split(
        self, residuals: Sequence[Operand], flags: Sequence[bool], layout: Sequence[PyTree]
    ) -> tuple[list[PyTree], list[Operand]]:
        """Return the arguments, with marks for those that are not kept, and other residuals."""
        found: list[PyTree] = [NOT_NEEDED] * len(self._types)
        opaque: list[Operand] = []
        for leaf, x in zip(self.leaves, residuals, strict=True):
            if leaf is None:
                opaque.append(x)
            else:
                found[leaf] = x if flags[leaf] else NOT_SAVEABLE
        return [tree.map(lambda i: found[i], part) for part in layout], opaque

    def joined(self, args_res: Sequence[PyTree], opaque: Sequence[Operand]) -> list[Operand]:
        """Return all residuals. Raises BadArgument where an argument is absent or does not fit."""
        given = _leaves(args_res, self._in_tree)
        rest = iter(opaque)
        return [next(rest) if i is None else self._checked(given[i], i) for i in self.leaves]

    def _checked(self, x: PyTree, leaf: int) -> Operand:
        type_ = self._types[leaf]
        if isinstance(x, Array) and x.type == type_:
            return x
        name = f"args{self._in_tree.accessors()[leaf].codify('')}"
        if x is None or isinstance(x, _Absent):
            kind = "not-saveable" if isinstance(x, NotSaveable) else "missing"
            raise BadArgument(
                f"the pullback needs the {kind} argument {name}",
                expected=str(type_),
                found=repr(x),
                remedy="set it in `args_res` before the call",
            )
        value: Array = as_value(x, f"args_res for {name}")
        if (value.shape, value.dtype) != (type_.shape, type_.dtype):
            raise BadArgument(
                f"args_res has another value for {name} than the function was called with",
                expected=str(type_),
                found=str(value.type),
            )
        return value


def _leaves(args_res: Sequence[PyTree], in_tree: PyTreeDef) -> list[PyTree]:
    """Return one leaf for each of the arguments; None for all leaves of one that is None."""
    sizes = [child.num_leaves for child in in_tree.children()]
    if len(args_res) != len(sizes):
        raise BadArgument(
            "args_res has one entry for each argument",
            expected=str(len(sizes)),
            found=str(len(args_res)),
        )
    found: list[PyTree] = []
    for i, (entry, size) in enumerate(zip(args_res, sizes, strict=True)):
        own = tree.leaves(entry, lambda x: isinstance(x, _Absent))
        if entry is None:
            own = [None] * size
        if len(own) != size:
            raise BadArgument(
                f"args_res[{i}] has another structure than the argument",
                expected=f"{size} leaves",
                found=str(len(own)),
            )
        found += own
    return found
