"""Equality of constants and of programs, and classes of equal programs.

By the classes, programs with shared subjaxprs are compared once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from effax.ir.recursion import subjaxprs_of
from effax.ir.types import ArrayType, Type

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr


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


def known_same(first: Jaxpr, second: Jaxpr) -> bool:
    """Return whether two programs are one object, or in one class."""
    mine, its = first._class, second._class
    return first is second or (mine is not None and its is not None and mine.root() is its.root())


def pairs(first: Jaxpr, second: Jaxpr) -> tuple[list[Jaxpr], list[Jaxpr]]:
    """Return the pairs of subjaxprs at the same places, each before the pair that encloses it."""
    found: tuple[list[Jaxpr], list[Jaxpr]] = ([], [])
    seen = {(id(first), id(second))}
    waiting = [(first, second, zip(subjaxprs_of(first), subjaxprs_of(second), strict=False))]
    while waiting:
        a, b, rest = waiting[-1]
        for x, y in rest:
            if (id(x), id(y)) not in seen and not known_same(x, y):
                seen.add((id(x), id(y)))
                waiting.append((x, y, zip(subjaxprs_of(x), subjaxprs_of(y), strict=False)))
                break
        else:
            waiting.pop()
            found[0].append(a)
            found[1].append(b)
    return found


def same(first: Jaxpr, second: Jaxpr) -> bool:
    """Return whether two programs with compared subjaxprs are equal; if so, join their classes."""
    is_same = (
        hash(first) == hash(second)
        and first.binders == second.binders
        and first.outs == second.outs
        and first.n_consts == second.n_consts
        and len(first.eqns) == len(second.eqns)
        and all(a == b for a, b in zip(first.eqns, second.eqns, strict=True))
    )
    if is_same:
        for jaxpr in (first, second):
            if jaxpr._class is None:
                object.__setattr__(jaxpr, "_class", EqualPrograms())
        assert first._class is not None and second._class is not None
        mine, its = first._class.root(), second._class.root()
        if mine is not its:
            mine.joined = its
    return is_same
