"""Programs of all pairs of primitives: the second applied to the result of the first.

A pass that looks for few equations seldom finds them in random programs. These programs have every
equation of most primitives, and every pair, on operands, equal operands and frequent numbers. What
a pass changes in them is then cut out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from inspect import signature
from itertools import product
from math import inf
from typing import Final

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import as_dtype
from effax.ir.errors import EffaxError
from effax.ir.primitive import Primitive
from effax.ir.prims.special import Formula
from effax.ir.registry import own_primitives
from effax.ir.state import cached
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, Type, array_type

NUMBERS: Final = (0, 1, 2, -1)
"""The numbers in the place of an operand."""


def _without_parameters(kind: type[Primitive]) -> tuple[Primitive, ...]:
    """Return the primitives of a kind in the library that have no parameters."""
    found = [cls for cls in own_primitives().values() if issubclass(cls, kind)]
    named = sorted(found, key=lambda cls: cls.name)
    return tuple([cls() for cls in named if not signature(cls).parameters])


UNARY: Final[tuple[Primitive, ...]] = (
    *_without_parameters(p.Unary),
    *(p.Abs(), p.IntegerPow(2), p.IntegerPow(3), p.IntegerPow(-1), p.Rev((0,))),
    *(p.Transpose((1, 0)), p.Reshape((3, 2)), p.ReduceSum((0,)), p.ReduceSum((0, 1))),
    *(p.ReduceMax((0,)), p.CumSum(0, False), p.BroadcastInDim((2, 3), ())),
    *(p.BroadcastInDim((2, 3), (1,)), p.Argmax(0, as_dtype("int32"))),
    *(p.ConvertElementType(as_dtype(d)) for d in ("float32", "bfloat16", "int32")),
    p.ReducePrecision(5, 10),
)
"""Primitives of one operand, some with parameters."""

BINARY: Final[tuple[Primitive, ...]] = _without_parameters(p.Binary)

TYPES: Final[tuple[tuple[Type, ...], ...]] = (
    (array_type((2, 3), "float32"),) * 2,
    (array_type((2, 3), "int32"),) * 2,
    (array_type((2, 3), "bool"),) * 2,
    (array_type((2, 3), "uint8"),) * 2,
)
"""The types of the operands."""

WIDTH: Final = 6
"""The number of inner equations in a program."""

Apply = Callable[[Builder, Sequence[Var]], Atom]


@cached(maxsize=1)
def catalogue() -> tuple[Jaxpr, ...]:
    """Return the programs: all pairs, some hundred equations each; and short loops."""
    return (
        *loops(),
        *sorts(),
        *mixed(),
        *choices(),
        *movements(),
        *[made for types in TYPES for made in _programs(types)],
    )


def loops() -> Iterator[Jaxpr]:
    """Yield loops of no, one and more iterations with one equation in the body, and branches."""
    x, n = array_type((3,), "float32"), array_type((), "int32")
    for body in (_body([x], p.Sin()), _body([x], p.Neg()), _body([x, x], p.Mul())):
        for length, reverse in product((0, 1, 2, 3), (False, True)):
            for carried in (True, False):
                b = Builder(body.in_types)
                scan = p.Scan(body, length, reverse, len(body.binders) - carried, int(carried))
                yield b.finish(b.emit(scan, b.binders))
    test = Builder([n, x])
    below = test.finish([test(p.Lt(), test.binders[0], lit(2, n))])
    step = Builder([n, x])
    i, v = step.binders
    count = step.finish([step(p.Add(), i, lit(1, n)), step(p.Sin(), v)])
    b = Builder([n, x])
    yield b.finish(b.emit(p.While(below, count, 0), b.binders))
    branches = _body([x], p.Sin()), _body([x], p.Neg())
    b = Builder([array_type((), "bool"), x])
    yield b.finish(b.emit(p.Cond(branches), b.binders))


def sorts() -> Iterator[Jaxpr]:
    """Yield sorts with operands that are no keys, in which ties show."""
    x, n = array_type((6,), "float32"), array_type((6,), "int32")
    for types, keys in (((x, x), 1), ((n, x), 1), ((x, n, x), 2)):
        b = Builder(types)
        yield b.finish(b.emit(p.Sort(0, keys), b.binders))


def mixed() -> Iterator[Jaxpr]:
    """Yield operations on a weak operand and a strong one, of which one is an input."""
    for dtype in ("float32", "int32"):
        weak, strong = array_type((2, 3), dtype, weak=True), array_type((2, 3), dtype)
        for a, other in ((weak, strong), (strong, weak)):
            applied = [
                (prim, value, first)
                for prim in BINARY
                for value in NUMBERS
                for first in (False, True)
            ]
            for i in range(0, len(applied), WIDTH):
                b, outs = Builder([a]), list[Atom]()
                for prim, value, first in applied[i : i + WIDTH]:
                    number = _number(value, other)
                    with suppress(EffaxError):
                        v = b.binders[0]
                        outs.append(b(prim, number, v) if first else b(prim, v, number))
                if outs:
                    yield b.finish(outs)


def choices() -> Iterator[Jaxpr]:
    """Yield programs that clamp and select, of scalars and of arrays."""
    for dtype, shape in product(("float32", "int32", "uint8"), ((), (2, 3))):
        b = Builder([array_type(shape, dtype)] * 3)
        x, y, z = b.binders
        tests = [b(prim, x, y) for prim in (p.Lt(), p.Le(), p.Gt(), p.Ge(), p.Eq(), p.Ne())]
        yield b.finish([b(p.Clamp(), x, y, z), *[b(p.SelectN(), c, y, z) for c in tests]])


CUBE: Final = array_type((3, 3, 3), "float32")

MOVEMENTS: Final[tuple[Primitive, ...]] = (
    *(p.Transpose(order) for order in ((1, 2, 0), (0, 2, 1), (1, 0, 2))),
    *(p.Rev((0,)), p.Rev((1, 2)), p.ReduceSum((0,)), p.ReduceMax((1,)), p.CumSum(1, True)),
    *(p.Slice((1, 0, 0), (3, 3, 2), None), p.Slice((0, 0, 0), (3, 3, 3), (2, 1, 1))),
    *(p.ExpandDims((0,)), p.Squeeze((0,)), p.Reshape((9, 3)), p.Reshape((3, 9))),
    *(p.BroadcastInDim((3, 3, 3, 3), (0, 2, 3)), p.BroadcastInDim((3, 3, 3), (0, 2))),
)
"""Primitives that move elements of three axes of one size, where their order shows."""


def movements() -> Iterator[Jaxpr]:
    """Yield all pairs of primitives that move elements, at static and at dynamic positions."""
    types = (CUBE, *[array_type((), "int32")] * 2)
    moves = (*map(_unary, MOVEMENTS), *map(_dynamic, (1, 2)), _updated, _padded)
    for inner in _typed(types, moves):
        b = Builder(types)
        made = inner(b, b.binders)
        assert isinstance(made, Var)
        outs: list[Atom] = [made]
        for outer in moves:
            with suppress(EffaxError):
                outs.append(outer(b, [made, b.binders[2]]))
        yield b.finish(outs)


def _dynamic(size: int) -> Apply:
    return lambda b, xs: b(p.DynamicSlice((size, *_shape(xs[0])[1:])), xs[0], *_starts(xs))


def _updated(b: Builder, xs: Sequence[Var]) -> Atom:
    row = b(p.BroadcastInDim((1, *_shape(xs[0])[1:]), ()), lit(2.0, CUBE.update(shape=())))
    return b(p.DynamicUpdateSlice(), xs[0], row, *_starts(xs))


def _padded(b: Builder, xs: Sequence[Var]) -> Atom:
    edges = [(1, -1, 0), *[(0, 0, 0)] * (len(_shape(xs[0])) - 1)]
    return b(p.Pad(tuple(edges)), xs[0], lit(1.0, CUBE.update(shape=())))


def _starts(xs: Sequence[Var]) -> list[Atom]:
    """Return the position of a dynamic slice: an input along the first axis, else 0."""
    return [xs[1], *[lit(0, xs[1].type)] * (len(_shape(xs[0])) - 1)]


def _shape(x: Atom) -> tuple[int, ...]:
    assert isinstance(x.type, ArrayType)
    return x.type.shape


LITERALS: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "float32": ((0.1, 3), (-0.0, 0.0), (-2.5, 2), (inf, -inf), (3e38, 3e38)),
    "int32": ((2**31 - 1, 2**31 - 1), (-(2**31), 2), (-(2**31), -1), (-7, 2), (7, 33)),
    "uint8": ((255, 255), (0, 1), (7, 2)),
    "bool": ((0, 1), (1, 1)),
}
"""Operands of equations of literals by dtype: extremes, overflows, signs."""


@cached(maxsize=1)
def literals() -> tuple[Jaxpr, ...]:
    """Return programs of equations whose operands are all literals, which passes fold."""
    made: list[Jaxpr] = []
    for dtype, pairs in LITERALS.items():
        for first, second in pairs:
            b, outs = Builder([]), list[Atom]()
            x, y = (_number(value, array_type((), dtype)) for value in (first, second))
            for prim in _common(UNARY, BINARY):
                with suppress(EffaxError):
                    outs.append(b(prim, x, y) if isinstance(prim, p.Binary) else b(prim, x))
            made.append(b.finish(outs))
    return tuple(made)


def _common(*several: Sequence[Primitive]) -> Iterator[Primitive]:
    """Yield the primitives but for special functions, which are many and take long to evaluate."""
    return (prim for prims in several for prim in prims if not isinstance(prim, Formula))


def _body(types: Sequence[Type], prim: Primitive) -> Jaxpr:
    b = Builder(types)
    return b.finish([b(prim, *b.binders)])


def _programs(types: Sequence[Type]) -> Iterator[Jaxpr]:
    inner = [*_inner(types)]
    for i in range(0, len(inner), WIDTH):
        b = Builder(types)
        outs: list[Atom] = []
        for apply in inner[i : i + WIDTH]:
            made = apply(b, b.binders)
            assert isinstance(made, Var)
            outs.append(made)
            for outer in _outer():
                with suppress(EffaxError):
                    outs.append(outer(b, [made, *b.binders]))
        yield b.finish(outs)


def _unary(prim: Primitive) -> Apply:
    return lambda b, xs: b(prim, xs[0])


def _binary(prim: Primitive, i: int, j: int) -> Apply:
    return lambda b, xs: b(prim, xs[i], xs[j])


def _with_number(prim: Primitive, value: float, first: bool) -> Apply:
    def apply(b: Builder, xs: Sequence[Var]) -> Atom:
        number = _number(value, xs[0].type)
        return b(prim, number, xs[0]) if first else b(prim, xs[0], number)

    return apply


def _number(value: float, like: Type) -> Lit:
    if not isinstance(like, ArrayType) or like.dtype.kind not in "fciub":
        raise EffaxError("the dtype lacks the number")
    if like.dtype.kind == "b" and value not in (0, 1):
        raise EffaxError("the dtype lacks the number")
    scalar = like.update(shape=())
    return lit(bool(value) if like.dtype.kind == "b" else value, scalar)


def _inner(types: Sequence[Type]) -> Iterator[Apply]:
    """Yield the equations on the inputs that are well typed."""
    every = [
        *map(_unary, UNARY),
        *[_binary(prim, *places) for prim in BINARY for places in ((0, 1), (0, 0))],
        *[_with_number(prim, value, False) for prim in BINARY for value in NUMBERS],
    ]
    return _typed(types, every)


def _typed(types: Sequence[Type], every: Iterable[Apply]) -> Iterator[Apply]:
    """Yield the equations that are well typed on inputs of these types."""
    for apply in every:
        b = Builder(types)
        with suppress(EffaxError):
            apply(b, b.binders)
            yield apply


@cached(maxsize=1)
def _outer() -> tuple[Apply, ...]:
    """Return the applications to a first result and to the operands that follow it."""
    return (
        *map(_unary, _common(UNARY)),
        *[_binary(prim, *places) for prim in _common(BINARY) for places in ((0, 1), (2, 0))],
        *[_with_number(prim, value, False) for prim in _common(BINARY) for value in NUMBERS],
    )
