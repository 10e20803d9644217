"""Programs with nested control flow and references on which several passes are tested.

They are in double precision, so that finite differences tell the wrong from the rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from effax.ir import prims
from effax.ir.build import Builder, lit
from effax.ir.prims import Cond, EmptyRef, FreeRef, Freeze, Jit, NewRef, Scan, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from tests.unit.transforms.building import Pick, Span, add, get, number, program, swap

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
    """Literals, an input as a result, a result twice, an unused input."""

    def body(b: Builder, x: Atom, y: Atom, z: Atom) -> list[Atom]:
        a = mul(b, x, y)
        c = sin(b, a)
        d = mul(b, c, number(3.0, F))
        return [plus(b, d, x), c, c, y, number(2.0, F)]

    return program([F, F, F], body)


def jits() -> Jaxpr:
    """A call in a call; one is made twice; inputs and literals come back as they are."""
    inner = program([F, F], lambda b, x, y: [sin(b, mul(b, x, y)), y, number(1.5, F)])

    def outer(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        p, q, r = b.emit(Jit(inner, "inner"), [x, y])
        s, _, _ = b.emit(Jit(inner, "inner"), [p, x])
        return [plus(b, s, mul(b, q, r)), p]

    held = program([F, F], outer)
    return program([F, F], lambda b, x, y: b.emit(Jit(held, "outer"), [y, sin(b, x)]))


def scans() -> Jaxpr:
    """A scan in a scan, backwards inside; a carry that only later depends on an input."""

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
    """A reference that is filled, read, added to and frozen; one that never sees ``x``."""

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
    """Reads, writes and accumulations on references of the caller, with a traced index."""

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
    """A scan that accumulates into a closed-over reference and updates a scanned one."""

    def step(b: Builder, r: Atom, w: Atom, c: Atom, row: Atom, x: Atom) -> list[Atom]:
        held = get(b, r)
        n = sin(b, plus(b, mul(b, c, w), held))
        add(b, r, mul(b, n, x))
        old = swap(b, row, n, Pick(0))
        return [n, plus(b, old, held)]

    body = program([R, F, F, refs_of(2), F], step)

    def whole(b: Builder, rows: Atom, w: Atom, c: Atom, xs: Atom) -> list[Atom]:
        r = b(NewRef(), w)
        d, ys = b.emit(Scan(body, 3, False, 2, 1), [r, w, c, rows, xs])
        e = get(b, r)
        b.emit(FreeRef(), [r])
        return [mul(b, d, e), ys]

    return program([refs_of(3, 2), F, F, F3], whole)


def conds() -> Jaxpr:
    """Branches that differ in what they give and in what they do to a reference."""

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
    """A loop over references, whose condition writes one; a carry nobody differentiates."""

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
    """A reference that begins empty and is filled in a scan, inside of a call."""

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

    held = program([F3], inner)
    return program([F3], lambda b, xs: b.emit(Jit(held, "fill"), [b(prims.Mul(), xs, xs)]))


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


def chain(n: int) -> Jaxpr:
    """``n`` elementwise equations over two inputs."""

    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        for _ in range(n // 4):
            z = sin(b, mul(b, x, y))
            y = plus(b, z, x)
            x = b(prims.Exp(), y)
        return [x, y]

    return program([F3, F3], body)


def nested(depth: int, breadth: int = 2) -> Jaxpr:
    """Scans and calls in turn, each holding the next ``breadth`` times."""
    jaxpr = program([F, F], lambda b, w, c: [sin(b, mul(b, w, c))])
    for level in range(depth):
        held = jaxpr

        def step(
            b: Builder, w: Atom, c: Atom, held: Jaxpr = held, level: int = level
        ) -> list[Atom]:
            for _ in range(breadth):
                if level % 2:
                    (c,) = b.emit(Scan(held, 2, False, 1, 1), [w, c])
                else:
                    (c,) = b.emit(Jit(held, "held"), [w, c])
                c = sin(b, c)
            return [c]

        jaxpr = program([F, F], step)
    return jaxpr
