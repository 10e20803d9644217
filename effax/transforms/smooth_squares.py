"""Squares of magnitudes, which are differentiated as sums of squares.

Before::

    { lambda ; a:f32[]. let b:f32[] = magnitude a; c:f32[] = square b in (c,) }

After::

    { lambda ; a:f32[]. let
        b:f32[] = magnitude a
        c:f32[] = square b
        d:f32[] = straight_through c a
      in (d,) }

A magnitude has no derivative at 0, and its square has one, of every order: the chain rule would
multiply 0 by infinity. So it is with a square root, whose slope at 0 is infinite. The values are
unchanged. Nothing else is: other even functions of a magnitude have second derivatives of nan at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from effax.effects import NO_EFFECTS
from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.dtypes import is_complex
from effax.ir.edit.rewriter import Rewriter
from effax.ir.primitive import Primitive
from effax.ir.recursion import kinds_of
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType

ROOTS: Final = frozenset({p.Magnitude, p.Abs, p.Sqrt})
"""Primitives whose squares are smooth."""

MOVES: Final[tuple[type[Primitive], ...]] = (
    *(p.BroadcastInDim, p.ExpandDims, p.Reshape, p.Squeeze, p.Transpose, p.Rev),
    *(p.Slice, p.DynamicSlice, p.Gather),
)
"""Primitives that move elements of their first operand, so that they commute with the square."""

POWERS: Final = frozenset({p.Square, p.IntegerPow, p.Pow, p.Mul})
"""Primitives that may be an even power."""

FOLLOWED: Final = frozenset({p.Mul, p.Neg, p.Div, p.SelectN, p.Concatenate, *MOVES})
"""Primitives of which the square is computed from the squares of their operands."""

DEPTH: Final = 8
"""The number of equations from a square back to its magnitude."""


def smooth_squares(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program, with squares of magnitudes that have the derivatives of sums of squares.

    Type:     a -> b  =>  a -> b
    Effects:  unchanged.
    Laws:     tests/unit/transforms/test_smooth_squares.py
    """
    kinds = kinds_of(jaxpr)
    if kinds.isdisjoint(ROOTS) or kinds.isdisjoint(POWERS) or not _may_have_squares(jaxpr):
        return jaxpr
    return _Squares(jaxpr).run()


def _may_have_squares(jaxpr: Jaxpr) -> bool:
    """Return whether a power is applied to roots, or to values that are computed from them."""
    found: set[int] = set()
    for eqn in jaxpr.eqns:
        kind = type(eqn.prim)
        if kind in ROOTS:
            if _is_root(eqn):
                found.add(eqn.outs[0].id)
        elif kind in POWERS or kind in FOLLOWED:
            used = [a for a in eqn.ins if type(a) is not Lit and a.id in found]
            if used and kind in POWERS and (kind is not p.Mul or len(used) > 1):
                return True
            if used:
                found.add(eqn.outs[0].id)
    return False


def _is_root(eqn: Eqn) -> bool:
    """Return whether an equation is a root that has no derivative at 0 and a smooth square.

    The magnitude of a real number has a square with the right derivatives already, and the square
    root of a complex number has two values.
    """
    if type(eqn.prim) not in ROOTS:
        return False
    type_ = eqn.ins[0].type
    is_abs = isinstance(eqn.prim, p.Abs)
    return isinstance(type_, ArrayType) and is_complex(type_.dtype) == is_abs


def _even_power(eqn: Eqn, same: Callable[[Atom, Atom], bool]) -> tuple[Var, int] | None:
    """Return the variable and the exponent of an even power of it, such as its square."""
    prim, ins = eqn.prim, eqn.ins
    first = ins[0] if ins else None
    if not isinstance(first, Var):
        return None
    if isinstance(prim, p.Square) or (isinstance(prim, p.Mul) and same(ins[1], first)):
        return first, 2
    n: object = None
    if isinstance(prim, p.IntegerPow):
        n = prim.y
    elif isinstance(prim, p.Pow) and isinstance(ins[1], Lit):
        n = ins[1].value
    if isinstance(n, int | float) and n >= 2 and n % 2 == 0:
        return first, int(n)
    return None


class _Squares(Rewriter):
    """One run of the pass.

    Attributes:
        made: by variable, the equation that defines it, if it is its only result.
        first: by variable, the number of the first one that an equal equation defines.
        squares: by variable, its smooth square in the new program, or None.
    """

    __slots__ = ("first", "made", "squares")

    def run(self) -> Jaxpr:
        self.made: dict[int, Eqn] = {}
        self.squares: dict[int, Atom | None] = {}
        self.first: list[int] = list(range(self.jaxpr.size))
        known: dict[object, int] = {}
        for eqn in self.jaxpr.eqns:
            outs = self.keep(eqn, self.operands(eqn))
            power = _even_power(eqn, self._same)
            square = None if power is None else self._square(eqn, power[0], DEPTH)
            if power is not None and square is not None:
                if power[1] > 2:
                    (square,) = self.emit(eqn, p.IntegerPow(power[1] // 2), [square])
                self.replace(eqn, self.emit(eqn, p.StraightThrough(), [outs[0], square]))
            if len(eqn.outs) == 1:
                at = eqn.outs[0].id
                self.made[at] = eqn
                if eqn.effects is NO_EFFECTS and not eqn.prim.subjaxprs():
                    numbers = [a if isinstance(a, Lit) else self.first[a.id] for a in eqn.ins]
                    self.first[at] = known.setdefault((eqn.prim, *numbers), at)
        return self.finish()

    def _same(self, x: Atom, y: Atom) -> bool:
        """Return whether two operands are equal since equal equations define them."""
        if isinstance(x, Lit) or isinstance(y, Lit):
            return False
        return self.first[x.id] == self.first[y.id]

    def _square(self, at: Eqn, atom: Atom, depth: int) -> Atom | None:
        """Return the smooth square of a value, emitted at an equation; None if there is none."""
        if isinstance(atom, Lit) or atom.id not in self.made or not depth:
            return None
        if atom.id not in self.squares:
            self.squares[atom.id] = self._square_of(at, self.made[atom.id], depth - 1)
        return self.squares[atom.id]

    def _square_of(self, at: Eqn, eqn: Eqn, depth: int) -> Atom | None:
        prim, ins, args = eqn.prim, eqn.ins, self.operands(eqn)
        if _is_root(eqn):
            return self._square_of_root(at, prim, args[0])
        if isinstance(prim, p.Mul):
            for x, factor in ((ins[0], args[1]), (ins[1], args[0])):
                # (c·m)² = c·(c·m²), which overflows only if the derivative does
                if (square := self._square(at, x, depth)) is not None:
                    return self._one(at, p.Mul(), factor, self._one(at, p.Mul(), factor, square))
            return None
        if isinstance(prim, p.SelectN | p.Concatenate):
            return self._of_cases(at, eqn, depth)
        if not isinstance(prim, (p.Neg, p.Div, *MOVES)):
            return None
        square = self._square(at, ins[0], depth)
        if square is None or isinstance(prim, p.Neg):
            return square
        if isinstance(prim, p.Div):
            return self._one(at, prim, self._one(at, prim, square, args[1]), args[1])
        return self._one(at, prim, square, *args[1:])

    def _of_cases(self, at: Eqn, eqn: Eqn, depth: int) -> Atom | None:
        """Return the square of selected or joined values, if one of them has a smooth square."""
        first = 1 if isinstance(eqn.prim, p.SelectN) else 0
        cases = eqn.ins[first:]
        squares = [self._square(at, case, depth) for case in cases]
        if all(square is None for square in squares):
            return None
        made = [
            self._one(at, p.Square(), self.read(case)) if square is None else square
            for case, square in zip(cases, squares, strict=True)
        ]
        return self._one(at, eqn.prim, *self.operands(eqn)[:first], *made)

    def _square_of_root(self, at: Eqn, prim: Primitive, x: Atom) -> Atom:
        if isinstance(prim, p.Magnitude):
            return x
        if isinstance(prim, p.Abs):
            return self._sum_of_squares(at, x)
        # nan below 0, where the root is nan
        zero, one, nan = (lit(value, x.type) for value in (0, 1, math.nan))
        inside = self._one(at, p.Ge(), x, zero)
        return self._one(at, p.Mul(), x, self._one(at, p.SelectN(), inside, nan, one))

    def _sum_of_squares(self, at: Eqn, z: Atom) -> Atom:
        parts = [self._one(at, p.Square(), self._one(at, part, z)) for part in (p.Real(), p.Imag())]
        return self._one(at, p.Add(), *parts)

    def _one(self, at: Eqn, prim: Primitive, *ins: Atom) -> Atom:
        return self.emit(at, prim, ins)[0]
