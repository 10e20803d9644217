"""Trees of operands of control flow, taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.conversion import as_value
from effax.arrays.promotion import yields
from effax.arrays.ref import Ref
from effax.arrays.view_arguments import open_views
from effax.ir.build import Builder
from effax.ir.prims import ConvertElementType
from effax.ir.syntax import Atom, Jaxpr
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
    value = open_views(value)
    leaves, treedef = tree.flatten(value)
    # Paths take longer than the rest.
    is_leaf = len(leaves) == 1 and leaves[0] is value
    names = [name] if is_leaf else [name + path for path in tree.paths(value)]
    operands: list[Operand] = [
        x if isinstance(x, Array | Ref) else as_value(x, n)
        for x, n in zip(leaves, names, strict=True)
    ]
    return Leaves(operands, treedef, names)


def with_results(jaxpr: Jaxpr, types: Sequence[Type]) -> Jaxpr:
    """Return the program with its first results converted to these types."""
    if all(have is want for have, want in zip(jaxpr.out_types, types, strict=False)):
        return jaxpr
    b = Builder(jaxpr.in_types)
    outs = list(b.inline_jaxpr(jaxpr, b.binders))
    for i, (out, want) in enumerate(zip(outs, types, strict=False)):
        if out.type is not want and isinstance(want, ArrayType):
            outs[i] = b(ConvertElementType(want.dtype, want.weak), out)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names)


def promotes(atom: Atom, wanted: Type) -> bool:
    """Return whether a weak result promotes to a type without loss."""
    have = atom.type
    if not (isinstance(have, ArrayType) and isinstance(wanted, ArrayType)):
        return False
    return have.shape == wanted.shape and yields(have, wanted.dtype, atom)
