"""Steps of linear solves and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.prims import LinearSolve, ReduceSum, Root
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps

Pair = Callable[[Builder, Atom, Atom, Atom], list[Atom]]
"""A map from a scalar c and two arrays to two arrays."""


def solution(g: ProgramBuilder, generate: Generate) -> None:
    """Append the x and y for which ``c·x + y = p`` and ``c·y = q``, as a linear solve or a root."""
    p = g.squashed(g.operand())
    type_ = p.type
    q = g.value(type_, g.is_linear(p))  # type: ignore[arg-type]  # an array's type
    c = _between_two_and_four(g)
    if g.linear or g.choose.chance(50):
        programs = (_on_pairs(f, c.type, type_) for f in (_forward, _back, _turned, _turned_back))
        matvec, solve, vecmat, transpose_solve = programs
        g.emit(LinearSolve(matvec, solve, vecmat, transpose_solve, 1), c, p, q)
    else:
        g.emit(_root(c.type, type_), c, p, q, q, p)


def _root(scalar: Type, type_: Type) -> Root:
    """Return the root of ``(c·x + y - p, c·y - q)``; the constants are c, p and q."""
    types = [scalar, *[type_] * 4]
    f, solve, tangent = Builder(types), Builder(types), Builder([*types, type_, type_])
    c, *right = f.binders[:3]
    left = _forward(f, c, *f.binders[3:])
    off = [f(prims.Sub(), a, b) for a, b in zip(left, right, strict=True)]
    found = _back(solve, *solve.binders[:3])
    moved = _back(tangent, tangent.binders[0], *tangent.binders[5:])
    return Root(f.finish(off), solve.finish(found), tangent.finish(moved), 3)


def _between_two_and_four(g: ProgramBuilder) -> Atom:
    x = g.fixed()
    if x.type.shape:
        x = g.one(ReduceSum(tuple(range(len(x.type.shape)))), x)
    sine = g.one(prims.Sin(), x, magnitude=1.0)
    return g.one(prims.Add(), sine, g.literal(sine.type.dtype, 3.0), magnitude=4.0)


def _on_pairs(f: Pair, scalar: Type, type_: Type) -> Jaxpr:
    b = Builder([scalar, type_, type_])
    return b.finish(f(b, *b.binders))


def _forward(b: Builder, c: Atom, x: Atom, y: Atom) -> list[Atom]:
    return [b(prims.Add(), b(prims.Mul(), x, c), y), b(prims.Mul(), y, c)]


def _back(b: Builder, c: Atom, p: Atom, q: Atom) -> list[Atom]:
    y = b(prims.Div(), q, c)
    return [b(prims.Div(), b(prims.Sub(), p, y), c), y]


def _turned(b: Builder, c: Atom, x: Atom, y: Atom) -> list[Atom]:
    return _forward(b, c, y, x)[::-1]


def _turned_back(b: Builder, c: Atom, p: Atom, q: Atom) -> list[Atom]:
    return _back(b, c, q, p)[::-1]


STEPS: Final = Steps(nested={"solve": (2, solution)})
