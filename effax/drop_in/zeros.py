"""Symbolic zeros and linear operands, as JAX's rules of derivatives receive them."""

from __future__ import annotations

import numpy as np

from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.tracing import input_type
from effax.ir.types import Type
from effax.tree import PyTree
from effax.tree_util import register_pytree_node


class Zero:
    """A tangent or cotangent that is zero, without an array.

    Attributes:
        aval: its type.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Type) -> None:
        self.aval: Type = aval

    @staticmethod
    def from_primal_value(value: object) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(input_type(value).to_tangent_aval())

    def instantiate(self) -> Array:
        """Return an array of zeros."""
        return zeros_like_aval(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """An operand in which a transposed equation is linear, without a value.

    Attributes:
        aval: its type.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Type) -> None:
        self.aval: Type = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def zeros_like_aval(aval: Type) -> Array:
    """Return zeros of a type."""
    return as_value(np.zeros(aval.shape, aval.dtype))


def instantiate_zeros(x: object) -> PyTree:
    """Return an array for a symbolic zero; another value unchanged."""
    return x.instantiate() if isinstance(x, Zero) else x


def is_undefined_primal(x: object) -> bool:
    """Return whether a value is an ``UndefinedPrimal``."""
    return type(x) is UndefinedPrimal


register_pytree_node(Zero, lambda x: ((), x.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))
