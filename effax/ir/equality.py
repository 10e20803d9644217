"""Equality of constants, and classes of equal programs.

By the classes, programs with shared subjaxprs are compared once.
"""

from __future__ import annotations

import numpy as np

from effax.ir.types import ArrayType, Type


class EqualPrograms:
    """A class of equal programs: a node of a union-find forest, whose root represents the class.

    Without it, comparing programs whose subjaxprs are shared at many levels would compare the same
    pairs exponentially often. Only programs that were found equal are joined, so a class never has
    to be split; equality is transitive, so a join is sound.
    """

    __slots__ = ("joined",)

    def __init__(self) -> None:
        self.joined: EqualPrograms | None = None

    def root(self) -> EqualPrograms:
        """Return the root, halving the paths to it."""
        top = self
        while top.joined is not None:
            if top.joined.joined is not None:
                top.joined = top.joined.joined
            top = top.joined
        return top


def same_constant(type_: Type, first: object, second: object) -> bool:
    """Return whether two constants of a type are one object, or arrays of the same bits."""
    if first is second:
        return True
    if not isinstance(type_, ArrayType):
        return False
    try:
        a, b = np.asarray(first), np.asarray(second)
    except TypeError:
        # A tracer, which has no value.
        return False
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
