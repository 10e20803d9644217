"""Programs that many tests need, and short ways to say types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effax.ir.build import Builder, lit
from effax.ir.indexing import Indexer, Mode, Pick, Span, row, whole
from effax.ir.prims import (
    Add,
    AddUpdate,
    Cond,
    Freeze,
    Get,
    Jit,
    Lt,
    Mul,
    NewRef,
    Scan,
    Sin,
    Swap,
    While,
)
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import Type, array_type, ref_type

F32 = array_type((), "float32")
VEC = array_type((3,), "float32")
WEAK = array_type((), "float32", weak=True)
I32 = array_type((), "int32")
BOOL = array_type((), "bool")
REF = ref_type(VEC)

ALL = whole((3,))
AT = row((3,))


def program(
    in_types: Sequence[Type], body: Callable[..., Sequence[Atom]], n_consts: int = 0
) -> Jaxpr:
    """The program that ``body`` builds, from a builder and the inputs."""
    b = Builder(in_types)
    return b.finish(body(b, *b.binders), n_consts)


def chain(length: int) -> Jaxpr:
    """A program of so many elementwise equations, one after the other."""

    def body(b: Builder, x: Var, y: Var) -> Sequence[Atom]:
        prims = (Add(), Mul(), Sin())
        for i in range(length):
            prim = prims[i % 3]
            x = b(prim, x) if i % 3 == 2 else b(prim, x, y if i % 2 else lit(2.0, VEC))
        return [x]

    return program([VEC, VEC], body)


def writer() -> Jaxpr:
    """A program that reads, writes, accumulates, swaps, and makes and freezes a reference."""

    def body(b: Builder, r: Var, i: Var, v: Var) -> Sequence[Atom]:
        x = b(Get(ALL), r)
        e = b(Get(AT), r, i)
        b.emit(AddUpdate(Indexer((Pick(None),), Mode.DROP)), [r, e, i])
        b.emit(Swap(Indexer((Span(None, 2),))), [r, b(Get(Indexer((Span(0, 2),))), r), i])
        old = b(Swap(Indexer((Pick(0),))), r, e)
        q = b(NewRef(), x)
        b.emit(Swap(ALL), [q, v])
        return [b(Freeze(), q), old]

    return program([REF, I32, VEC], body)


def doubled() -> Jaxpr:
    """Writes its first argument into its second, and doubles it."""

    def body(b: Builder, x: Var, r: Var) -> Sequence[Atom]:
        b.emit(Swap(ALL), [r, x])
        return [b(Mul(), x, lit(2.0, WEAK))]

    return program([VEC, REF], body)


def nested() -> Jaxpr:
    """A program that holds programs in every control structure, one of them twice."""
    held = doubled()
    same = program([VEC, REF], lambda b, x, r: [x])
    body = program([REF, F32, F32], lambda b, r, c, x: [b(Add(), c, x), b(Get(AT), r, lit(0, I32))])
    going = program([F32], lambda b, c: [b(Lt(), c, lit(9.0, F32))])
    step = program([F32], lambda b, c: [b(Mul(), c, lit(3.0, F32))])

    def whole_program(b: Builder, x: Var, r: Var, flag: Var) -> Sequence[Atom]:
        (once,) = b.emit(Jit(held, "twice"), [x, r])
        (y,) = b.emit(Jit(held, "twice"), [once, r])
        (z,) = b.emit(Cond((same, held)), [flag, y, r])
        total, ys = b.emit(Scan(body, 3, False, 1, 1), [r, lit(0.0, F32), z])
        (end,) = b.emit(While(going, step, 0), [total])
        return [end, ys, z]

    return program([VEC, REF, BOOL], whole_program, n_consts=1)
