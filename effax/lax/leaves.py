"""Trees of operands of control flow, taken apart."""

from __future__ import annotations

from typing import NamedTuple

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.ir.dtypes import family
from effax.ir.types import ArrayType, Type
from effax.tree import PyTreeDef


class Leaves(NamedTuple):
    """Leaves and structure of a tree of operands, with names for messages."""

    leaves: list[Operand]
    treedef: PyTreeDef
    names: list[str]

    @property
    def types(self) -> list[Type]:
        return [x.type for x in self.leaves]


def leaves_of(value: object, name: str) -> Leaves:
    """Return the leaves of a tree of arrays and references. Raises IllTyped for others."""
    leaves, treedef = tree.flatten(value)
    names = [name + path for path in tree.paths(value)]
    operands: list[Operand] = [
        x if isinstance(x, Array | Ref) else as_value(x, n)
        for x, n in zip(leaves, names, strict=True)
    ]
    return Leaves(operands, treedef, names)


def rank(type_: ArrayType) -> int:
    """Return the rank of a dtype in the order of promotion."""
    return ("bool", "uint", "int", "float", "complex").index(family(type_.dtype))
