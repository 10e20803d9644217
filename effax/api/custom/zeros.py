"""Symbolic zeros, and markers of differentiated arguments, for custom rules."""

from __future__ import annotations

from effax import tree
from effax.arrays.tangents import zero_of
from effax.arrays.tracing import input_type
from effax.ir.dtypes import FLOAT0, DType, is_inexact_dtype
from effax.ir.errors import IllTyped
from effax.ir.types import ArrayType, Shape, Type, array_type, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTree


@dataclass(frozen=True)
class SymbolicZero:
    """A tangent or cotangent that is known to be zero: its type, and no array."""

    type: ArrayType

    @property
    def aval(self) -> ArrayType:
        """Return the type, under JAX's name."""
        return self.type

    @property
    def shape(self) -> Shape:
        """Return the sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Return the dtype; ``float0`` for a primal without tangents."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return self.type.ndim

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.type.size

    @property
    def weak_type(self) -> bool:
        """Return whether the type is weak: False for tangents."""
        return self.type.weak

    @staticmethod
    def from_primal_value(val: object) -> SymbolicZero:
        """Return the zero tangent of a value."""
        return symbolic_zero(input_type(val, "the argument of from_primal_value"))

    def __repr__(self) -> str:
        return f"SymbolicZero({self.type})"


def symbolic_zero(type_: Type) -> SymbolicZero:
    """Return the zero tangent of values of this type."""
    dtype = tangent_type(type_).dtype if is_inexact_dtype(type_.dtype) else FLOAT0
    return SymbolicZero(array_type(type_.shape, dtype))


def zero_from_primal(val: object, symbolic_zeros: bool = False) -> PyTree:
    """Return the tree of zero tangents of a tree of values: arrays, or ``SymbolicZero``s."""

    def zero(x: object) -> object:
        type_ = input_type(x, "a leaf of the argument of zero_from_primal")
        return symbolic_zero(type_) if symbolic_zeros else zero_of(type_)

    return tree.map(zero, val)


@dataclass(frozen=True, slots=True)
class CustomVJPPrimal:
    """An argument of a forward rule with ``symbolic_zeros``, and whether it is differentiated."""

    value: PyTree
    perturbed: bool


def custom_vjp_primal_tree_values(tree_: object) -> PyTree:
    """Return the values of a tree of ``CustomVJPPrimal``s. Raises IllTyped for other leaves."""

    def value(leaf: object) -> object:
        if not isinstance(leaf, CustomVJPPrimal):
            raise IllTyped(
                "custom_vjp_primal_tree_values takes a tree of CustomVJPPrimal",
                expected="the arguments of a forward rule with symbolic_zeros=True",
                found=f"{type(leaf).__name__}: {leaf!r:.60}",
            )
        return leaf.value

    return tree.map(value, tree_)
