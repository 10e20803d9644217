"""Transpose: <T(y), x> = <y, f(x)>, in place where there is a reference, and no more work."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from returns.pipeline import is_successful

from effax.effects import Accum
from effax.ir.build import Builder
from effax.ir.errors import NotApplicable, TransformError
from effax.ir.primitive import Value
from effax.ir.prims import elementwise as ew
from effax.ir.prims import refs as p
from effax.ir.prims.control import Cond, Jit, Scan, While
from effax.ir.prims.index import Gather
from effax.ir.prims.reduce import DotGeneral
from effax.ir.prims.shape import BroadcastInDim, Slice
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType, Type, array_type
from effax.transforms.transpose import (
    DontWant,
    GradRef,
    GradValue,
    NonLinear,
    Threaded,
    Transposed,
    Want,
    transpose,
)
from tests.unit.transforms.building import (
    F32,
    I32,
    REF,
    Pick,
    Span,
    add,
    check_bound,
    count,
    f32,
    get,
    number,
    program,
    random_value,
    ref,
    row,
    run,
    scan,
    show,
    swap,
    values,
)

N, R, V, D, T = NonLinear(), GradRef(), GradValue(), DontWant(), Threaded()


def transposed(
    jaxpr: Jaxpr, wants: Sequence[Want], cts: Sequence[bool] | None = None
) -> Transposed:
    found = transpose(jaxpr, wants, cts)
    assert is_successful(found), found.failure()
    check_bound(found.unwrap().jaxpr)
    return found.unwrap()


def dot(xs: Sequence[Value], ys: Sequence[Value]) -> float:
    assert [x.shape for x in xs] == [y.shape for y in ys]
    return float(sum(np.sum(np.asarray(x, np.float64) * y) for x, y in zip(xs, ys, strict=True)))


def check(
    jaxpr: Jaxpr, wants: Sequence[Want], cts: Sequence[bool] | None = None, seed: int = 0
) -> Transposed:
    """<ct of results and final contents, those> = <ct of inputs and first contents, those>.

    The references that are bound hold something already; a GradRef is added to.
    """
    made = transposed(jaxpr, wants, cts)
    rng = np.random.default_rng(seed + 100)
    args = [
        np.zeros_like(x) if w == D else x for x, w in zip(values(jaxpr, seed), wants, strict=True)
    ]
    outs, finals = run(jaxpr, args)
    has = [t.dtype.kind == "f" for t in jaxpr.out_types] if cts is None else cts
    given = [random_value(rng, t) for t, h in zip(jaxpr.out_types, has, strict=True) if h]
    fixed = [x for x, w in zip(args, wants, strict=True) if w == N]
    linear = [(i, w) for i, w in enumerate(wants) if w in (R, T)]
    bound = [random_value(rng, jaxpr.in_types[i]) for i, _ in linear]
    results, after = run(made.jaxpr, [*fixed, *bound, *given])
    after = after[len(after) - len(bound) :] if bound else []

    lhs = dot(given, [y for y, h in zip(outs, has, strict=True) if h])
    is_ref = [i for i, t in enumerate(jaxpr.in_types) if isinstance(t, RefType)]
    final = dict(zip(is_ref, finals, strict=True))
    rhs = 0.0
    for (i, w), before, now in zip(linear, bound, after, strict=True):
        if w == T:
            lhs += dot([before], [final[i]])
            rhs += dot([now], [args[i]])
        else:
            rhs += dot([now - before], [args[i]])
    asked = [i for i, w in enumerate(wants) if w == V]
    kept = [i for i, nonzero in zip(asked, made.nonzero, strict=True) if nonzero]
    rhs += dot(results, [args[i] for i in kept])
    np.testing.assert_allclose(rhs, lhs, rtol=2e-4, atol=2e-5)
    return made


def refs_and_values_agree(jaxpr: Jaxpr, wants: Sequence[Want], seed: int = 0) -> None:
    """What a GradRef holds afterwards is what it held, and the GradValue result."""
    by_value = transposed(jaxpr, wants)
    by_ref = transposed(jaxpr, [R if w == V else w for w in wants])
    rng = np.random.default_rng(seed)
    fixed = [x for x, w in zip(values(jaxpr, seed), wants, strict=True) if w == N]
    given = [random_value(rng, t) for t in jaxpr.out_types]
    asked = [t for t, w in zip(jaxpr.in_types, wants, strict=True) if w == V]
    bound = [random_value(rng, t) for t in asked]
    results, _ = run(by_value.jaxpr, [*fixed, *given])
    _, after = run(by_ref.jaxpr, [*fixed, *bound, *given])
    grads = iter(results)
    for before, now, nonzero in zip(bound, after, by_value.nonzero, strict=True):
        np.testing.assert_allclose(now, before + (next(grads) if nonzero else 0), rtol=1e-4)


def only_accumulates(made: Transposed, position: int) -> bool:
    """Whether all that happens to an input is that something is added to it."""
    return all(isinstance(e, Accum) for e in made.jaxpr.effects.on(position))  # type: ignore[arg-type]  # an ArgIndex is an int


# Arrays.


def affine(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
    scaled = b(ew.Mul(), b(ew.Sin(), c), x)
    return [b(ew.Sub(), b(ew.Add(), scaled, x), b(ew.Neg(), y)), b(ew.Mul(), y, c)]


AFFINE = program([F32, F32, F32], affine)


@pytest.mark.parametrize(
    "wants", [(N, V, V), (N, R, V), (N, V, R), (N, R, R), (N, D, V), (N, V, D)]
)
@pytest.mark.parametrize("cts", [None, (True, False), (False, True)])
def test_values_and_references(wants: Sequence[Want], cts: Sequence[bool] | None) -> None:
    made = check(AFFINE, wants, cts)
    assert made.jaxpr.in_types[0] == F32
    assert all(only_accumulates(made, 1 + i) for i in range(sum(w == R for w in wants)))


def test_the_order_of_inputs_and_results() -> None:
    made = check(
        program([f32(2), F32, f32(3), F32], lambda b, x, c, y, z: [y, b(ew.Mul(), z, c), x]),
        (R, N, V, V),
    )
    assert made.jaxpr.in_types == (F32, ref(2), f32(3), F32, f32(2))
    assert made.jaxpr.out_types == (f32(3), F32)
    assert made.nonzero == (True, True)


def test_what_nothing_reaches_is_not_materialised() -> None:
    made = check(AFFINE, (N, V, V), (False, True))
    assert made.nonzero == (False, True)
    assert [type(e.prim) for e in made.jaxpr.eqns] == [ew.Mul]
    assert not transposed(AFFINE, (N, V, V), (False, False)).jaxpr.eqns


def test_scalars_that_go_with_arrays() -> None:
    check(program([F32, f32(4)], lambda b, x, c: [b(ew.Mul(), x, c), b(ew.Add(), x, x)]), (V, N))


DOT = DotGeneral((((1,), (0,)), ((), ())))


def test_dont_want_does_no_work() -> None:
    def body(b: Builder, w: Var, x: Var, dw: Var, dx: Var) -> Sequence[Atom]:
        return [b(ew.Add(), b(DOT, dw, x), b(DOT, w, dx))]

    jaxpr = program([f32(3, 4), f32(4), f32(3, 4), f32(4)], body)
    assert count(check(jaxpr, (N, N, V, V)).jaxpr, DotGeneral) == 2
    assert count(check(jaxpr, (N, N, V, D)).jaxpr, DotGeneral) == 1
    held = program(jaxpr.in_types, lambda b, *a: b.emit(Jit(jaxpr), a))
    assert count(check(held, (N, N, D, V)).jaxpr, DotGeneral) == 1


def test_fixed_values_that_only_unwanted_ones_need_are_not_computed() -> None:
    def body(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return [b(ew.Add(), b(ew.Mul(), b(ew.Sin(), c), x), b(ew.Mul(), b(ew.Cos(), c), y))]

    made = check(program([F32, F32, F32], body), (N, V, D))
    assert count(made.jaxpr, ew.Sin) == 1
    assert count(made.jaxpr, ew.Cos) == 0


@pytest.mark.parametrize("wants", [(N, V, V), (N, R, V), (N, R, R)])
def test_transposition_is_its_own_inverse(wants: Sequence[Want]) -> None:
    back = transposed(AFFINE, (N, V, V))
    again = transposed(back.jaxpr, (N, V, V))
    args = values(AFFINE)
    outs, _ = run(AFFINE, args)
    same, _ = run(again.jaxpr, args)
    np.testing.assert_allclose(same, outs, rtol=1e-5)
    refs_and_values_agree(AFFINE, (N, V, V))


# Sparse uses.


def slices(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
    first = b(Slice((0,), (3,)), x)
    one = b(Gather(row((1000,))), x, i)
    return [b(ew.Add(), b(ew.Mul(), first, number(2.0)), one)]


SLICES = program([I32, f32(1000)], slices)


def big_zeros(jaxpr: Jaxpr, size: int = 1000) -> int:
    prims = [e.prim for e in jaxpr.eqns if isinstance(e.prim, BroadcastInDim)]
    own = sum(size in prim.shape for prim in prims)
    return own + sum(big_zeros(h, size) for e in jaxpr.eqns for h in e.prim.subjaxprs())


def test_sparse_uses_add_into_the_reference_that_is_given() -> None:
    made = check(SLICES, (N, R))
    assert big_zeros(made.jaxpr) == 0
    assert count(made.jaxpr, p.AddUpdate) == 2
    assert count(made.jaxpr, p.NewRef) == 0
    assert only_accumulates(made, 1)


def test_two_sparse_uses_share_one_local_accumulator() -> None:
    made = check(SLICES, (N, V))
    assert big_zeros(made.jaxpr) == 1
    assert count(made.jaxpr, p.NewRef, p.Freeze) == 2
    assert count(made.jaxpr, p.AddUpdate) == 2
    refs_and_values_agree(SLICES, (N, V))


def test_one_sparse_use_gives_a_value() -> None:
    made = check(program([I32, f32(1000)], lambda b, i, x: [b(Gather(row((1000,))), x, i)]), (N, V))
    assert count(made.jaxpr, p.NewRef) == 0


def test_a_dense_use_after_sparse_ones_begins_the_accumulator() -> None:
    def body(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
        y = b(ew.Mul(), x, number(3.0))
        return [b(Gather(row((1000,))), y, i), b(Slice((5,), (9,)), y), b(ew.Neg(), y)]

    made = check(program([I32, f32(1000)], body), (N, V))
    # The dense cotangent is the accumulator's first contents: no zeros.
    assert big_zeros(made.jaxpr) == 0
    assert count(made.jaxpr, p.NewRef) == 1


@pytest.mark.parametrize("wrap", ["jit", "cond", "scan"])
def test_sparse_uses_across_a_boundary(wrap: str) -> None:
    def held(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
        return [b(Gather(row((1000,))), x, i)]

    inner = program([I32, f32(1000)], held)

    def body(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
        if wrap == "jit":
            one, two = b.emit(Jit(inner), [i, x]), b.emit(Jit(inner), [number(7, I32), x])
        elif wrap == "cond":
            one = b.emit(Cond((inner, inner)), [i, i, x])
            two = b.emit(Cond((inner, inner)), [i, i, x])
        else:
            one = two = b.emit(scan(inner, 4, 2, 0), [i, x])
        return [*one, *two]

    jaxpr = program([I32, f32(1000)], body)
    made = check(jaxpr, (N, R))
    assert big_zeros(made.jaxpr) == 0
    made = check(jaxpr, (N, V))
    assert big_zeros(made.jaxpr) == 1
    assert not [z for e in made.jaxpr.eqns for h in e.prim.subjaxprs() if (z := big_zeros(h))]


def test_one_array_given_twice_to_a_call_is_not_an_alias() -> None:
    inner = program([f32(8), f32(8)], lambda b, x, y: [b(Slice((0,), (2,)), x), b(ew.Neg(), y)])
    made = check(program([f32(8)], lambda b, x: b.emit(Jit(inner), [x, x])), (R,))
    (call,) = [e for e in made.jaxpr.eqns if isinstance(e.prim, Jit)]
    names = [a.id for a in call.ins if isinstance(a, Var)]
    assert len(names) == len(set(names))


# References.


def plumbed(b: Builder, c: Var, i: Var, r: Var, x: Var) -> Sequence[Atom]:
    """Every primitive of references, on a linear one that comes in and two local ones."""
    old = swap(b, r, b(ew.Mul(), x, c), Pick(None), at=[i])
    s = b(p.NewRef(), old)
    add(b, s, b(ew.Mul(), get(b, r, Pick(0)), c))
    e = b(p.EmptyRef(f32(2)))
    swap(b, e, b(BroadcastInDim((2,), ()), number(0.0)))
    swap(b, e, x, Pick(1))
    add(b, r, get(b, e), Span(1, 2))
    add(b, r, x, Pick(1))
    b.emit(p.FreeRef(), [e])
    return [b(p.Freeze(), s), get(b, r), get(b, r, Span(2, 2, -1))]


PLUMBED = program([F32, I32, ref(4), F32], plumbed)


@pytest.mark.parametrize(
    "wants", [(N, N, R, V), (N, N, T, V), (N, N, R, R), (N, N, T, D), (N, N, D, V)]
)
@pytest.mark.parametrize(
    "cts", [None, (True, False, False), (False, True, True), (False, False, False)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_primitive_of_references(
    wants: Sequence[Want], cts: Sequence[bool] | None, seed: int
) -> None:
    check(PLUMBED, wants, cts, seed)


def test_a_reference_that_is_only_read_is_added_to_directly() -> None:
    made = check(program([REF, F32], lambda b, r, c: [b(ew.Mul(), get(b, r), c)]), (R, N))
    assert [type(e.prim) for e in made.jaxpr.eqns] == [ew.Mul, p.AddUpdate]


def test_a_reference_that_is_changed_is_added_to_at_the_end() -> None:
    made = check(PLUMBED, (N, N, R, V))
    assert only_accumulates(made, 2)
    last = made.jaxpr.eqns[-1]
    assert isinstance(last.prim, p.AddUpdate)
    assert last.ins[0] == made.jaxpr.binders[2]


def test_an_unwanted_reference_does_no_work() -> None:
    jaxpr = program([REF, F32], lambda b, r, x: [b(ew.Add(), get(b, r), x)])
    assert not check(jaxpr, (D, V)).jaxpr.eqns


def test_a_double_transpose_of_references_is_the_program() -> None:
    back = transposed(PLUMBED, (N, N, T, V))
    assert back.nonzero == (True,)
    again = transposed(back.jaxpr, (N, N, T, V, V, V))
    args = values(PLUMBED)
    outs, finals = run(PLUMBED, args)
    # Inputs: fixed ones, the reference, then cotangents of cotangents: x again.
    same, after = run(again.jaxpr, args)
    for want, have in zip(outs, same, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5)
    np.testing.assert_allclose(after, finals, rtol=1e-5)


def test_positions_that_are_picked_twice() -> None:
    at = array_type((3,), "int32")

    def body(b: Builder, i: Var, r: Var, x: Var) -> Sequence[Atom]:
        first = get(b, r, Pick(None), at=[i])
        add(b, r, x, Pick(None), at=[i])
        return [first, get(b, r)]

    jaxpr = program([at, ref(2), f32(3)], body)
    check(jaxpr, (N, R, V))
    check(jaxpr, (N, T, V))
    swapped = program(
        [at, ref(2)],
        lambda b, i, r: [swap(b, r, b(BroadcastInDim((3,), ()), number(0.0)), Pick(None), at=[i])],
    )
    check(swapped, (N, R))
    check(swapped, (N, T))


# Control flow.


def nested(kind: str, inner: Jaxpr, wants: Sequence[Want]) -> tuple[Jaxpr, Sequence[Want]]:
    """A linear program that calls ``inner``, and its wants."""
    b = Builder(inner.in_types)
    if kind == "jit":
        return b.finish(b.emit(Jit(inner), b.binders)), wants
    if kind == "scan":
        made = b.emit(scan(inner, 3, len(b.binders), 0, reverse=True), b.binders)
        return b.finish(made), wants
    index = b.bind(I32)

    def other(b: Builder, *a: Var) -> Sequence[Atom]:
        zeros = [b(BroadcastInDim(t.shape, ()), number(0.0)) for t in inner.out_types]
        return [
            *zeros[:-1],
            b(ew.Mul(), b(BroadcastInDim(inner.out_types[-1].shape, ()), a[-1]), a[0]),
        ]

    branches = (program(inner.in_types, other), inner)
    return b.finish(b.emit(Cond(branches), [index, *b.binders[:-1]])), [*wants, N]


def index_third(jaxpr: Jaxpr) -> Jaxpr:
    c, i, r, x, k = jaxpr.in_types
    return program([c, i, k, r, x], lambda b, c, i, k, r, x: b.inline_jaxpr(jaxpr, [c, i, r, x, k]))


CALLEE = program(
    [F32, I32, ref(4), F32],
    lambda b, c, i, r, x: [plumbed(b, c, i, r, x)[0]],
)


@pytest.mark.parametrize("outer", ["jit", "cond", "scan"])
@pytest.mark.parametrize("inner", ["jit", "cond", "scan"])
@pytest.mark.parametrize("wants", [(N, N, R, V), (N, N, T, R), (N, N, D, V), (N, N, T, D)])
def test_nested_control_flow(outer: str, inner: str, wants: Sequence[Want]) -> None:
    def scalar(jaxpr: Jaxpr) -> Jaxpr:
        if not any(t.shape for t in jaxpr.out_types):
            return jaxpr

        def body(b: Builder, *a: Var) -> Sequence[Atom]:
            (y,) = b.inline_jaxpr(jaxpr, a)
            return [b(Gather(row(y.type.shape, 1)), y)]

        return program(jaxpr.in_types, body)

    once, given = nested(inner, CALLEE, wants)
    if inner == "cond":
        # The linear value stays last: it is what the other branch of an outer cond uses.
        once, given = index_third(once), [*given[:2], N, *given[2:4]]
    for seed in (0, 1):
        check(once, given, seed=seed)
    twice, given = nested(outer, scalar(once), given)
    for seed in (0, 1, 2):
        check(twice, given, seed=seed)


def loop_body(
    b: Builder, c: Var, w: Var, s: Var, y: Var, z: Var, a: Var, r: Var, x: Var
) -> Sequence[Atom]:
    """consts c fixed, w and the reference s linear; carry y, z; scanned a fixed, r, x linear."""
    add(b, s, b(ew.Mul(), y, a))
    here = swap(b, r, b(ew.Add(), y, x))
    new = b(ew.Add(), b(ew.Mul(), y, c), b(ew.Mul(), w, a))
    return [b(ew.Add(), new, here), b(ew.Add(), z, get(b, s)), b(ew.Mul(), new, a), b(ew.Neg(), x)]


LOOP_TYPES: list[Type] = [F32, F32, REF, F32, F32, f32(5), ref(5), f32(5)]
LOOP = program(
    LOOP_TYPES,
    lambda b, *a: b.emit(
        scan(program([F32, F32, REF, F32, F32, F32, REF, F32], loop_body), 5, 3, 2), a
    ),
)


@pytest.mark.parametrize(
    "wants",
    [
        (N, V, R, V, V, N, R, V),
        (N, R, T, V, V, N, T, R),
        (N, D, T, V, D, N, T, V),
        (N, V, D, D, V, N, D, D),
        (N, D, D, D, D, N, D, V),
        (N, R, D, R, R, N, D, R),
    ],
)
@pytest.mark.parametrize("cts", [None, (True, False, False, False), (False, False, True, False)])
def test_scan(wants: Sequence[Want], cts: Sequence[bool] | None) -> None:
    made = check(LOOP, wants, cts)
    (loop,) = [e.prim for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    assert loop.reverse
    check(
        program(
            LOOP_TYPES,
            lambda b, *a: b.emit(Scan(LOOP.eqns[0].prim.subjaxprs()[0], 5, True, 3, 2), a),
        ),
        wants,
        cts,
    )


def test_a_scan_only_carries_cotangents_that_are_not_zero() -> None:
    def body(b: Builder, y: Var, z: Var, x: Var) -> Sequence[Atom]:
        return [b(ew.Add(), y, x), b(ew.Add(), z, y), b(ew.Neg(), y)]

    jaxpr = program(
        [F32, F32, f32(4)], lambda b, *a: b.emit(scan(program([F32] * 3, body), 4, 0, 2), a)
    )
    made = check(jaxpr, (V, V, V), (False, False, True))
    assert made.nonzero == (True, False, True)
    (loop,) = [e.prim for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    assert loop.n_carry == 1
    check(jaxpr, (V, V, V), (False, True, False))


def test_constants_and_scanned_inputs_of_a_scan_use_the_references_that_are_given() -> None:
    def body(b: Builder, w: Var, y: Var, u: Var) -> Sequence[Atom]:
        return [b(ew.Add(), b(ew.Add(), y, b(Slice((0,), (4,)), w)), u)]

    inner = program([f32(1000), f32(4), f32(4)], body)
    jaxpr = program([f32(1000), f32(4), f32(6, 4)], lambda b, *a: b.emit(scan(inner, 6, 1, 1), a))
    made = check(jaxpr, (R, V, R))
    (loop,) = [e for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    assert [a.type for a in loop.ins] == [ref(1000), f32(4), ref(6, 4)]
    assert len(loop.outs) == 1
    assert count(made.jaxpr, p.NewRef, BroadcastInDim) == 0
    refs_and_values_agree(jaxpr, (V, V, V))


def test_microbatches() -> None:
    """An outer scan closes over a gradient reference; an inner one scans over its layers."""
    layers, width = 3, 2

    def layer(b: Builder, y: Var, dw: Var, act: Var, w: Var) -> Sequence[Atom]:
        return [b(ew.Add(), b(DOT, y, w), b(DOT, act, dw))]

    inner = program([f32(1, width), f32(width, width), f32(1, width), f32(width, width)], layer)

    def loss(b: Builder, acts: Var, ws: Var, dws: Var) -> Sequence[Atom]:
        start = b(BroadcastInDim((1, width), ()), number(0.0))
        return b.emit(scan(inner, layers, 0, 1), [start, dws, acts, ws])

    stacked = f32(layers, width, width)
    linear = program([f32(layers, 1, width), stacked, stacked], loss)
    back = check(linear, (N, N, R))
    assert only_accumulates(back, 2)

    def process(b: Builder, ws: Var, acc: Var, acts: Var, ct: Var) -> Sequence[Atom]:
        b.inline_jaxpr(back.jaxpr, [acts, ws, acc, ct])
        return []

    one = program([stacked, ref(*stacked.shape), f32(layers, 1, width), f32(1, width)], process)
    n = 5
    whole = program(
        [stacked, ref(*stacked.shape), f32(n, layers, 1, width), f32(n, 1, width)],
        lambda b, *a: b.emit(scan(one, n, 2, 0), a),
    )
    check_bound(whole)
    outer = whole.eqns[0].prim.subjaxprs()[0]
    (loop,) = [e for e in outer.eqns if isinstance(e.prim, Scan)]
    # The accumulator of all layers is scanned: each iteration has its layer's slice.
    assert ref(*stacked.shape) in [a.type for a in loop.ins]
    assert count(whole, p.NewRef) == 0
    assert stacked not in [v.type for e in outer.eqns for v in e.outs]

    args = values(whole)
    _, (total,) = run(whole, args)
    expected = np.array(args[1])
    by_value = transposed(linear, (N, N, V))
    for acts, ct in zip(args[2], args[3], strict=True):
        expected += run(by_value.jaxpr, [acts, args[0], ct])[0][0]
    np.testing.assert_allclose(total, expected, rtol=1e-5)


def test_branches_share_references_and_give_zeros_only_where_one_has_none() -> None:
    types = [F32, f32(3), F32]

    def first(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return [b(ew.Mul(), y, c)]

    def second(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return [b(Gather(row((3,), 1)), x)]

    branches = (program(types, first), program(types, second))
    jaxpr = program([I32, *types], lambda b, *a: b.emit(Cond(branches), a))
    for seed in range(3):
        check(jaxpr, (N, N, V, V), seed=seed)
        made = check(jaxpr, (N, N, R, R), seed=seed)
        assert count(made.jaxpr, BroadcastInDim) == 0


def test_a_loop_whose_linear_values_go_through() -> None:
    cond = program([F32, F32, I32], lambda b, w, y, i: [b(ew.Lt(), i, number(3, I32))])
    body = program([F32, F32, I32], lambda b, w, y, i: [y, b(ew.Add(), i, number(1, I32))])

    def whole(b: Builder, w: Var, y: Var, i: Var) -> Sequence[Atom]:
        return b.emit(While(cond, body, 1), [w, y, i])[:1]

    check(program([F32, F32, I32], whole), (V, V, N))


def test_a_loop_is_refused_with_the_remedy() -> None:
    cond = program([F32, F32], lambda b, c, y: [b(ew.Lt(), c, c)])
    body = program([F32, F32], lambda b, c, y: [b(ew.Mul(), y, c)])
    jaxpr = program([F32, F32], lambda b, *a: b.emit(While(cond, body, 1), a))
    error = transpose(jaxpr, (N, V)).failure()
    assert isinstance(error, NotApplicable)
    assert "fori_loop" in str(error)
    assert "while" in str(error.equation)


# What does not depend on linear inputs.


def test_effects_on_fixed_references_run_once_and_in_order() -> None:
    def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
        add(b, r, c)
        y = b(ew.Mul(), x, get(b, r))
        swap(b, r, b(ew.Sin(), c))
        return [b(ew.Mul(), y, get(b, r))]

    jaxpr = program([REF, F32, F32], body)
    made = check(jaxpr, (N, N, V))
    args = values(jaxpr)
    _, finals = run(jaxpr, args)
    _, after = run(made.jaxpr, [args[0], args[1], np.asarray(1, np.float32)])
    np.testing.assert_allclose(after, finals)
    nothing = transposed(jaxpr, (N, N, D))
    assert count(nothing.jaxpr, p.AddUpdate, p.Swap) == 2
    assert count(nothing.jaxpr, ew.Mul) == 0


def test_calls_that_are_linear_in_part_are_split() -> None:
    """Fixed results and effects of a call come first, in their order."""

    def held(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
        add(b, r, c)
        s = b(ew.Sin(), get(b, r))
        return [s, b(ew.Mul(), x, s)]

    inner = program([REF, F32, F32], held)

    def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
        s, y = b.emit(Jit(inner), [r, c, x])
        add(b, r, s)
        return [b(ew.Mul(), y, get(b, r))]

    jaxpr = program([REF, F32, F32], body)
    made = check(jaxpr, (N, N, V))
    assert count(made.jaxpr, ew.Sin) == 1
    args = values(jaxpr)
    _, finals = run(jaxpr, args)
    _, after = run(made.jaxpr, [args[0], args[1], np.asarray(1, np.float32)])
    np.testing.assert_allclose(after, finals)


def test_a_scan_that_carries_a_fixed_value_is_split() -> None:
    def step(b: Builder, i: Var, y: Var, c: Var) -> Sequence[Atom]:
        scaled = b(ew.Mul(), y, b(ew.Mul(), c, b(ew.ConvertElementType(F32.dtype), i)))
        return [b(ew.Add(), i, number(1, I32)), b(ew.Add(), scaled, y)]

    inner = program([I32, F32, F32], step)
    jaxpr = program([I32, F32, f32(4)], lambda b, *a: b.emit(scan(inner, 4, 0, 2), a)[1:])
    check(jaxpr, (N, V, N))


def test_arguments_of_calls_are_computed_where_they_are_needed() -> None:
    inner = program([F32, F32, F32], lambda b, c, x, y: [b(ew.Mul(), x, c), b(ew.Neg(), y)])

    def body(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return b.emit(Jit(inner), [b(ew.Sin(), b(ew.Cos(), c)), x, y])

    assert count(check(program([F32] * 3, body), (N, V, V)).jaxpr, ew.Sin, ew.Cos) == 2


def test_what_no_iteration_adds_to_gets_no_accumulator() -> None:
    def step(b: Builder, w: Var, y: Var) -> Sequence[Atom]:
        return [b(ew.Neg(), y), w]

    inner = program([f32(1000), F32], step)
    jaxpr = program([f32(1000), F32], lambda b, *a: b.emit(scan(inner, 4, 1, 1), a))
    made = check(jaxpr, (V, V), (True, False))
    assert made.nonzero == (False, True)
    assert count(made.jaxpr, p.NewRef) == big_zeros(made.jaxpr) == 0


def test_a_local_reference_of_zeros_leaves_nothing_behind() -> None:
    def body(b: Builder, x: Var) -> Sequence[Atom]:
        r = b(p.NewRef(), number(0.0))
        add(b, r, x)
        return [get(b, r)]

    made = check(program([F32], body), (V,))
    assert count(made.jaxpr, p.Freeze) == 0


class TestWideAccumulators:
    """Cotangents of a narrow array can be summed up in a wider reference."""

    def wide(self, jaxpr: Jaxpr, wants: Sequence[Want]) -> None:
        made = transposed(jaxpr, wants)
        narrow = transposed(jaxpr, [V if isinstance(w, GradRef) else w for w in wants])
        asked = [t for t, w in zip(jaxpr.in_types, wants, strict=True) if isinstance(w, GradRef)]
        bound = [t for t in made.jaxpr.in_types if isinstance(t, RefType)]
        assert [t.dtype.name for t in bound] == ["float32"] * len(asked)
        rng = np.random.default_rng(0)
        args = values(jaxpr)
        fixed = [x for x, w in zip(args, wants, strict=True) if w == N]
        given = [random_value(rng, t) for t in jaxpr.out_types]
        totals = [np.ones(t.shape, np.float32) for t in asked]
        _, after = run(made.jaxpr, [*fixed, *totals, *given])
        expected, _ = run(narrow.jaxpr, [*fixed, *given])
        for have, want in zip(after, expected, strict=True):
            # The narrow sums round after each of forty additions.
            np.testing.assert_allclose(have, 1 + want.astype(np.float32), atol=0.1)

    def test_dense_sparse_and_through_calls(self) -> None:
        bf16 = array_type((40,), "bfloat16")

        def part(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
            return [b(Gather(row((40,))), x, i)]

        inner = program([I32, bf16], part)
        looped = program(
            [I32, bf16, bf16.update(shape=())],
            lambda b, i, x, u: [b.inline_jaxpr(inner, [i, x])[0], u],
        )

        def body(b: Builder, i: Var, x: Var, y: Var) -> Sequence[Atom]:
            outs = [b(ew.Neg(), x), b(Slice((1,), (5,)), x), *b.emit(Jit(inner), [i, x])]
            outs += b.emit(Cond((inner, inner)), [i, i, x])
            return [*outs, *b.emit(scan(looped, 40, 2, 0), [i, x, y])]

        jaxpr = program([I32, bf16, bf16], body)
        wide = GradRef(F32.dtype)
        self.wide(jaxpr, (N, wide, wide))
        assert big_zeros(transposed(jaxpr, (N, wide, wide)).jaxpr, 40) == 0

    def test_a_dtype_that_does_not_fit_is_refused(self) -> None:
        jaxpr = program([REF, array_type((), "complex64")], lambda b, r, x: [get(b, r), x])
        for wants in (
            (GradRef(I32.dtype), V),
            (GradRef(np.dtype("float64")), V),
            (R, GradRef(F32.dtype)),
        ):
            assert "cannot be summed up" in str(transpose(jaxpr, wants).failure())
        assert repr(R) == "GradRef()"


# Errors.


@pytest.mark.parametrize(
    ("jaxpr", "wants", "cts", "words"),
    [
        (AFFINE, (N, V), None, "one want an input"),
        (AFFINE, (N, V, V), (True,), "one entry a result"),
        (PLUMBED, (N, V, R, V), None, "argument 1 cannot be linear"),
        (PLUMBED, (N, N, V, V), None, "must be accumulated into a reference"),
        (PLUMBED, (N, N, R, T), None, "only the cotangent of a reference is threaded"),
        (PLUMBED, (N, N, N, V), None, "written to argument 2, which is not linear"),
        (SLICES, (V, V), None, "argument 0 cannot be linear"),
        (program([F32], lambda b, x: [b(ew.Mul(), x, x)]), (V,), None, "not linear"),
        (program([F32], lambda b, x: [b(ew.Sin(), x)]), (V,), None, "sin has no transpose rule"),
        (program([I32], lambda b, i: [i]), (N,), (True,), "result 0 has no cotangent"),
    ],
)
def test_errors(
    jaxpr: Jaxpr, wants: Sequence[Want], cts: Sequence[bool] | None, words: str
) -> None:
    error = transpose(jaxpr, wants, cts).failure()
    assert isinstance(error, TransformError)
    assert words in str(error)


# Growth.


def chain(n: int) -> Jaxpr:
    def body(b: Builder, c: Var, x: Var) -> Sequence[Atom]:
        y: Atom = x
        for k in range(n // 2):
            y = b(ew.Add(), b(ew.Mul(), y, c), x) if k % 2 else b(ew.Neg(), b(ew.Mul(), c, y))
        return [y]

    return program([f32(3), f32(3)], body)


@pytest.mark.parametrize("n", [1000, 10000])
def test_growth_is_linear_and_the_cost_small(n: int) -> None:
    jaxpr = chain(n)
    start = time.perf_counter()
    made = transpose(jaxpr, (N, V)).unwrap().jaxpr
    took = (time.perf_counter() - start) / n
    assert len(made.eqns) <= n
    assert took < 60e-6


def test_nested_scans_are_transposed_once_a_level() -> None:
    jaxpr = program([F32, F32], lambda b, c, y: [b(ew.Mul(), y, c)])
    for _ in range(25):
        inner = jaxpr
        jaxpr = program([F32, F32], lambda b, *a: b.emit(scan(inner, 1, 1, 1), a))  # noqa: B023
    check(jaxpr, (N, V))


def test_equal_inputs_give_equal_programs() -> None:
    wants = (N, V, R, V, V, N, R, V)
    assert transposed(LOOP, wants).jaxpr == transposed(LOOP, wants).jaxpr
    assert show(transposed(LOOP, wants).jaxpr) == show(transposed(LOOP, wants).jaxpr)
