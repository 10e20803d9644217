"""Programs for tests, and helpers to build and run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.eval.numpy import evaluate
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span, row, whole
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import (
    Add,
    AddUpdate,
    Cond,
    EmptyRef,
    FreeRef,
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
    refs,
)
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type

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
    """Return the program that ``body(b, *binders)`` builds."""
    b = Builder(in_types)
    return b.finish(body(b, *b.binders), n_consts)


def chain(length: int) -> Jaxpr:
    """Return a program of ``length`` elementwise equations, each on the result of the last."""

    def body(b: Builder, x: Var, y: Var) -> Sequence[Atom]:
        prims = (Add(), Mul(), Sin())
        for i in range(length):
            prim = prims[i % 3]
            x = b(prim, x) if i % 3 == 2 else b(prim, x, y if i % 2 else lit(2.0, VEC))
        return [x]

    return program([VEC, VEC], body)


def writer() -> Jaxpr:
    """Return a program with all uses of references: read, write, accumulate, swap, freeze."""

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
    """Return a program that writes its first argument into its second, and doubles it."""

    def body(b: Builder, x: Var, r: Var) -> Sequence[Atom]:
        b.emit(Swap(ALL), [r, x])
        return [b(Mul(), x, lit(2.0, WEAK))]

    return program([VEC, REF], body)


def nested() -> Jaxpr:
    """Return a program with every control structure; one subjaxpr occurs twice."""
    inner = doubled()
    same = program([VEC, REF], lambda b, x, r: [x])
    body = program([REF, F32, F32], lambda b, r, c, x: [b(Add(), c, x), b(Get(AT), r, lit(0, I32))])
    going = program([F32], lambda b, c: [b(Lt(), c, lit(9.0, F32))])
    step = program([F32], lambda b, c: [b(Mul(), c, lit(3.0, F32))])

    def whole_program(b: Builder, x: Var, r: Var, flag: Var) -> Sequence[Atom]:
        (once,) = b.emit(Jit(inner, "twice"), [x, r])
        (y,) = b.emit(Jit(inner, "twice"), [once, r])
        (z,) = b.emit(Cond((same, inner)), [flag, y, r])
        total, ys = b.emit(Scan(body, 3, False, 1, 1), [r, lit(0.0, F32), z])
        (end,) = b.emit(While(going, step, 0), [total])
        return [end, ys, z]

    return program([VEC, REF, BOOL], whole_program, n_consts=1)


SCALAR_REF = ref_type(F32)


def f32(*shape: int) -> ArrayType:
    return array_type(shape, "float32")


def ref(*shape: int) -> RefType:
    return ref_type(f32(*shape))


def number(value: float, type_: Type = F32) -> Atom:
    return lit(value, type_)


def get(b: Builder, r: Atom, *dims: Dim, at: Sequence[Atom] = ()) -> Var:
    return b(refs.Get(Indexer(dims) if dims else whole(r.type.shape)), r, *at)


def swap(b: Builder, r: Atom, value: Atom, *dims: Dim, at: Sequence[Atom] = ()) -> Var:
    return b(refs.Swap(Indexer(dims) if dims else whole(r.type.shape)), r, value, *at)


def add(b: Builder, r: Atom, value: Atom, *dims: Dim, at: Sequence[Atom] = ()) -> None:
    indexer = Indexer(dims) if dims else whole(r.type.shape)
    b.emit(refs.AddUpdate(indexer), [r, value, *at])


def scan(body: Jaxpr, length: int, n_consts: int, n_carry: int, reverse: bool = False) -> Scan:
    return Scan(body, length, reverse, n_consts, n_carry)


def values(jaxpr: Jaxpr, seed: int = 0) -> list[Value]:
    """Return random arguments: small numbers, integers at least 0."""
    rng = np.random.default_rng(seed)
    return [random_value(rng, type_) for type_ in jaxpr.in_types]


def random_value(rng: np.random.Generator, type_: Type) -> Value:
    if type_.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 3, type_.shape), type_.dtype)
    if type_.dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, type_.shape), bool)
    return np.asarray(rng.uniform(-1, 1, type_.shape), type_.dtype)


def run(jaxpr: Jaxpr, args: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Return the results and the final contents of references; the arguments are not changed."""
    contents = [np.array(x) for x in args]
    outs = [np.array(x) for x in evaluate(jaxpr, contents)]
    return outs, [
        x for x, t in zip(contents, jaxpr.in_types, strict=True) if isinstance(t, RefType)
    ]


def assert_well_formed(jaxpr: Jaxpr) -> None:
    """Raise UnwrapFailedError unless the checker accepts the program."""
    check(jaxpr).unwrap()


def primitives(jaxpr: Jaxpr) -> list[Primitive]:
    """Return the primitives of all equations, including those in subjaxprs."""
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn.prim)
        for inner in eqn.prim.subjaxprs():
            found += primitives(inner)
    return found


def count(jaxpr: Jaxpr, *kinds: type[Primitive]) -> int:
    """Return the number of equations of these kinds, including those in subjaxprs."""
    return sum(isinstance(prim, kinds) for prim in primitives(jaxpr))


F: Final = array_type((), "float64")
F3: Final = array_type((3,), "float64")
N: Final = array_type((), "int32")
R: Final = ref_type(F)
R3: Final = ref_type(F3)


def f(*shape: int) -> ArrayType:
    return array_type(shape, "float64")


def refs_of(*shape: int) -> RefType:
    return ref_type(f(*shape))


def mul(b: Builder, x: Atom, y: Atom) -> Atom:
    return b(prims.Mul(), x, y)


def plus(b: Builder, x: Atom, y: Atom) -> Atom:
    return b(prims.Add(), x, y)


def sin(b: Builder, x: Atom) -> Atom:
    return b(prims.Sin(), x)


def straight() -> Jaxpr:
    """Return a program with literals, an input as a result, a result twice, an unused input."""

    def body(b: Builder, x: Atom, y: Atom, z: Atom) -> list[Atom]:
        a = mul(b, x, y)
        c = sin(b, a)
        d = mul(b, c, number(3.0, F))
        return [plus(b, d, x), c, c, y, number(2.0, F)]

    return program([F, F, F], body)


def jits() -> Jaxpr:
    """Return a program with nested calls; one is made twice; inputs and literals are results."""
    inner = program([F, F], lambda b, x, y: [sin(b, mul(b, x, y)), y, number(1.5, F)])

    def outer(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        p, q, r = b.emit(Jit(inner, "inner"), [x, y])
        s, _, _ = b.emit(Jit(inner, "inner"), [p, x])
        return [plus(b, s, mul(b, q, r)), p]

    inner = program([F, F], outer)
    return program([F, F], lambda b, x, y: b.emit(Jit(inner, "outer"), [y, sin(b, x)]))


def scans() -> Jaxpr:
    """Return nested scans, the inner one reversed; one carry depends on an input later."""

    def step(b: Builder, w: Atom, c: Atom, x: Atom) -> list[Atom]:
        n = sin(b, plus(b, mul(b, w, c), x))
        return [n, mul(b, n, sin(b, w))]

    inner = program([F, F, F], step)

    def outer_step(b: Builder, w: Atom, c: Atom, k: Atom, xs: Atom) -> list[Atom]:
        d, ys = b.emit(Scan(inner, 3, True, 1, 1), [w, c, xs])
        return [d, plus(b, k, c), ys, mul(b, k, w)]

    outer = program([F, F, F, F3], outer_step)
    return program(
        [F, F, f(2, 3)],
        lambda b, w, c, xs: b.emit(
            Scan(outer, 2, False, 1, 2), [mul(b, w, w), c, number(0.0, F), xs]
        ),
    )


def local_ref() -> Jaxpr:
    """Return a program with two local references, one of them independent of ``x``."""

    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        s = b(NewRef(), y)
        before = get(b, r, Pick(1))
        add(b, r, mul(b, before, number(2.0, F)), Pick(0))
        old = swap(b, r, before, Pick(2))
        t = get(b, s, Pick(0))
        add(b, s, t, Pick(1))
        u = b(Freeze(), s)
        v = b(Freeze(), r)
        return [mul(b, v, u), old, t]

    return program([F3, F3], body)


def outer_ref() -> Jaxpr:
    """Return a program that uses references of the caller, with a traced index."""

    def body(b: Builder, r: Atom, s: Atom, x: Atom, i: Atom) -> list[Atom]:
        a = get(b, r, Pick(None), at=[i])
        c = sin(b, mul(b, a, x))
        add(b, s, c)
        old = swap(b, r, c, Pick(2))
        d = get(b, r, Pick(None), at=[i])
        e = get(b, s)
        swap(b, s, number(0.5, F))
        return [mul(b, d, e), old]

    return program([R3, R, F, N], body)


def ref_in_scan() -> Jaxpr:
    """Return a scan that accumulates into a constant reference and updates a scanned one."""

    def step(b: Builder, r: Atom, w: Atom, c: Atom, row: Atom, x: Atom) -> list[Atom]:
        read = get(b, r)
        n = sin(b, plus(b, mul(b, c, w), read))
        add(b, r, mul(b, n, x))
        old = swap(b, row, n, Pick(0))
        return [n, plus(b, old, read)]

    body = program([R, F, F, refs_of(2), F], step)

    def whole(b: Builder, rows: Atom, w: Atom, c: Atom, xs: Atom) -> list[Atom]:
        r = b(NewRef(), w)
        d, ys = b.emit(Scan(body, 3, False, 2, 1), [r, w, c, rows, xs])
        e = get(b, r)
        b.emit(FreeRef(), [r])
        return [mul(b, d, e), ys]

    return program([refs_of(3, 2), F, F, F3], whole)


def conds() -> Jaxpr:
    """Return branches that differ in their results and their effects on a reference."""

    def first(b: Builder, r: Atom, x: Atom, y: Atom) -> list[Atom]:
        add(b, r, mul(b, sin(b, x), y))
        return [sin(b, mul(b, x, x)), number(1.0, F), y]

    def second(b: Builder, r: Atom, x: Atom, y: Atom) -> list[Atom]:
        old = swap(b, r, x)
        return [mul(b, old, y), sin(b, x), x]

    types: list[Type] = [R, F, F]
    cond = Cond((program(types, first), program(types, second)))

    def whole(b: Builder, r: Atom, i: Atom, x: Atom, y: Atom) -> list[Atom]:
        p, q, s = b.emit(cond, [i, r, sin(b, x), y])
        return [plus(b, p, get(b, r)), mul(b, q, s)]

    return program([R, N, F, F], whole)


def whiles() -> Jaxpr:
    """Return a loop whose condition writes a reference, with a carry of integers."""

    def test(b: Builder, r: Atom, w: Atom, n: Atom, x: Atom) -> list[Atom]:
        add(b, r, mul(b, x, w), Pick(1))
        return [b(prims.Lt(), n, lit(3, N))]

    def step(b: Builder, r: Atom, w: Atom, n: Atom, x: Atom) -> list[Atom]:
        a = get(b, r, Pick(1))
        y = sin(b, plus(b, mul(b, w, x), a))
        swap(b, r, y, Pick(0))
        return [b(prims.Add(), n, lit(1, N)), y]

    types: list[Type] = [R3, F, N, F]
    loop = While(program(types, test), program(types, step), 2)

    def whole(b: Builder, r: Atom, w: Atom, x: Atom) -> list[Atom]:
        n, y = b.emit(loop, [r, sin(b, w), lit(0, N), x])
        return [mul(b, y, get(b, r, Pick(0))), n]

    return program([R3, F, F], whole)


def empty_ref() -> Jaxpr:
    """Return a call that fills an empty reference in a scan."""

    def step(b: Builder, r: Atom, i: Atom, x: Atom) -> list[Atom]:
        swap(b, r, sin(b, x), Pick(None), at=[i])
        return [b(prims.Add(), i, lit(1, N))]

    body = program([R3, N, F], step)

    def inner(b: Builder, xs: Atom) -> list[Atom]:
        r = b(EmptyRef(F3))
        b.emit(Scan(body, 3, False, 1, 1), [r, lit(0, N), xs])
        top = get(b, r, Span(0, 2))
        b.emit(FreeRef(), [r])
        return [top]

    call = program([F3], inner)
    return program([F3], lambda b, xs: b.emit(Jit(call, "fill"), [b(prims.Mul(), xs, xs)]))


PROGRAMS: Final[dict[str, Callable[[], Jaxpr]]] = {
    made.__name__: made
    for made in (
        straight,
        jits,
        scans,
        local_ref,
        outer_ref,
        ref_in_scan,
        conds,
        whiles,
        empty_ref,
    )
}


def elementwise_chain(n: int) -> Jaxpr:
    """Return a program of ``n`` elementwise equations over two inputs."""

    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        for _ in range(n // 4):
            z = sin(b, mul(b, x, y))
            y = plus(b, z, x)
            x = b(prims.Exp(), y)
        return [x, y]

    return program([F3, F3], body)


def nested_loops(depth: int, breadth: int = 2) -> Jaxpr:
    """Return alternately nested scans and calls; each contains the next ``breadth`` times."""
    jaxpr = program([F, F], lambda b, w, c: [sin(b, mul(b, w, c))])
    for level in range(depth):
        inner = jaxpr

        def step(
            b: Builder, w: Atom, c: Atom, inner: Jaxpr = inner, level: int = level
        ) -> list[Atom]:
            for _ in range(breadth):
                if level % 2:
                    (c,) = b.emit(Scan(inner, 2, False, 1, 1), [w, c])
                else:
                    (c,) = b.emit(Jit(inner, "inner"), [w, c])
                c = sin(b, c)
            return [c]

        jaxpr = program([F, F], step)
    return jaxpr
