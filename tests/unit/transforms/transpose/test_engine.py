"""Transpose: <T(y), x> = <y, f(x)>, in place where there is a reference, and no more work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.errors import TransformError
from effax.ir.indexing import Pick, row
from effax.ir.prims import Cond, DotGeneral, Gather, Jit, Slice
from effax.ir.prims import refs as p
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType, array_type
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.engine import (
    CotangentSpec,
    GradRef,
    transpose,
)
from tests.counting import calls
from tests.unit.building import (
    F32,
    I32,
    SCALAR_REF,
    add,
    count,
    f32,
    get,
    number,
    program,
    random_value,
    ref,
    run,
    scan,
    swap,
    values,
)
from tests.unit.transforms.adjoint import (
    DOT,
    PLUMBED,
    D,
    N,
    R,
    T,
    V,
    big_zeros,
    check,
    only_accumulates,
    refs_and_values_agree,
    transposed,
)

# Arrays.


def affine(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
    scaled = b(prims.Mul(), b(prims.Sin(), c), x)
    return [b(prims.Sub(), b(prims.Add(), scaled, x), b(prims.Neg(), y)), b(prims.Mul(), y, c)]


AFFINE = program([F32, F32, F32], affine)


@pytest.mark.parametrize(
    "ct_specs", [(N, V, V), (N, R, V), (N, V, R), (N, R, R), (N, D, V), (N, V, D)]
)
@pytest.mark.parametrize("cts", [None, (True, False), (False, True)])
def test_transpose_into_values_and_references(
    ct_specs: Sequence[CotangentSpec], cts: Sequence[bool] | None
) -> None:
    made = check(AFFINE, ct_specs, cts)
    assert made.jaxpr.in_types[0] == F32
    assert all(only_accumulates(made, 1 + i) for i in range(sum(w == R for w in ct_specs)))


def test_the_order_of_inputs_and_results() -> None:
    made = check(
        program([f32(2), F32, f32(3), F32], lambda b, x, c, y, z: [y, b(prims.Mul(), z, c), x]),
        (R, N, V, V),
    )
    assert made.jaxpr.in_types == (F32, ref(2), f32(3), F32, f32(2))
    assert made.jaxpr.out_types == (f32(3), F32)
    assert made.nonzero == (True, True)


def test_zero_cotangents_are_not_materialised() -> None:
    made = check(AFFINE, (N, V, V), (False, True))
    assert made.nonzero == (False, True)
    assert [type(e.prim) for e in made.jaxpr.eqns] == [prims.Mul]
    assert not transposed(AFFINE, (N, V, V), (False, False)).jaxpr.eqns


def test_transpose_of_scalar_operands_sums() -> None:
    check(
        program([F32, f32(4)], lambda b, x, c: [b(prims.Mul(), x, c), b(prims.Add(), x, x)]), (V, N)
    )


def test_dont_want_adds_no_equations() -> None:
    def body(b: Builder, w: Var, x: Var, dw: Var, dx: Var) -> Sequence[Atom]:
        return [b(prims.Add(), b(DOT, dw, x), b(DOT, w, dx))]

    jaxpr = program([f32(3, 4), f32(4), f32(3, 4), f32(4)], body)
    assert count(check(jaxpr, (N, N, V, V)).jaxpr, DotGeneral) == 2
    assert count(check(jaxpr, (N, N, V, D)).jaxpr, DotGeneral) == 1
    call = program(jaxpr.in_types, lambda b, *a: b.emit(Jit(jaxpr), a))
    assert count(check(call, (N, N, D, V)).jaxpr, DotGeneral) == 1


def test_fixed_values_that_only_unwanted_ones_need_are_not_computed() -> None:
    def body(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return [
            b(
                prims.Add(),
                b(prims.Mul(), b(prims.Sin(), c), x),
                b(prims.Mul(), b(prims.Cos(), c), y),
            )
        ]

    made = check(program([F32, F32, F32], body), (N, V, D))
    assert count(made.jaxpr, prims.Sin) == 1
    assert count(made.jaxpr, prims.Cos) == 0


@pytest.mark.parametrize("ct_specs", [(N, V, V), (N, R, V), (N, R, R)])
def test_transposition_is_its_own_inverse(ct_specs: Sequence[CotangentSpec]) -> None:
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
    return [b(prims.Add(), b(prims.Mul(), first, number(2.0)), one)]


BOOL = array_type((), "bool")
SLICES = program([I32, f32(1000)], slices)


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


def test_one_sparse_use_returns_a_value() -> None:
    made = check(program([I32, f32(1000)], lambda b, i, x: [b(Gather(row((1000,))), x, i)]), (N, V))
    assert count(made.jaxpr, p.NewRef) == 0


def test_a_dense_use_after_sparse_ones_begins_the_accumulator() -> None:
    def body(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
        y = b(prims.Mul(), x, number(3.0))
        return [b(Gather(row((1000,))), y, i), b(Slice((5,), (9,)), y), b(prims.Neg(), y)]

    made = check(program([I32, f32(1000)], body), (N, V))
    # The dense cotangent is the accumulator's first contents: no zeros.
    assert big_zeros(made.jaxpr) == 0
    assert count(made.jaxpr, p.NewRef) == 1


@pytest.mark.parametrize("wrap", ["jit", "cond", "scan"])
def test_sparse_uses_across_a_boundary(wrap: str) -> None:
    def call(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
        return [b(Gather(row((1000,))), x, i)]

    inner = program([I32, f32(1000)], call)

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


def test_an_array_passed_twice_to_a_call() -> None:
    inner = program([f32(8), f32(8)], lambda b, x, y: [b(Slice((0,), (2,)), x), b(prims.Neg(), y)])
    made = check(program([f32(8)], lambda b, x: b.emit(Jit(inner), [x, x])), (R,))
    (call,) = [e for e in made.jaxpr.eqns if isinstance(e.prim, Jit)]
    names = [a.id for a in call.ins if isinstance(a, Var)]
    assert len(names) == len(set(names))


# References.


@pytest.mark.parametrize(
    "ct_specs", [(N, N, R, V), (N, N, T, V), (N, N, R, R), (N, N, T, D), (N, N, D, V)]
)
@pytest.mark.parametrize(
    "cts", [None, (True, False, False), (False, True, True), (False, False, False)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_transpose_of_every_reference_primitive(
    ct_specs: Sequence[CotangentSpec], cts: Sequence[bool] | None, seed: int
) -> None:
    check(PLUMBED, ct_specs, cts, seed)


def test_a_reference_that_is_only_read_is_added_to_directly() -> None:
    made = check(program([SCALAR_REF, F32], lambda b, r, c: [b(prims.Mul(), get(b, r), c)]), (R, N))
    assert [type(e.prim) for e in made.jaxpr.eqns] == [prims.Mul, p.AddUpdate]


def test_a_reference_that_is_changed_is_added_to_at_the_end() -> None:
    made = check(PLUMBED, (N, N, R, V))
    assert only_accumulates(made, 2)
    last = made.jaxpr.eqns[-1]
    assert isinstance(last.prim, p.AddUpdate)
    assert last.ins[0] == made.jaxpr.binders[2]


def test_an_unwanted_reference_does_no_work() -> None:
    jaxpr = program([SCALAR_REF, F32], lambda b, r, x: [b(prims.Add(), get(b, r), x)])
    assert not check(jaxpr, (D, V)).jaxpr.eqns


def test_a_double_transpose_of_references_is_the_program() -> None:
    back = transposed(PLUMBED, (N, N, T, V))
    assert back.nonzero == (True,)
    again = transposed(back.jaxpr, (N, N, T, V, V, V))
    args = values(PLUMBED)
    outs, finals = run(PLUMBED, args)
    # Inputs: fixed ones, the reference, then cotangents of cotangents: x again.
    same, after = run(again.jaxpr, args)
    for ct_spec, have in zip(outs, same, strict=True):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-5)
    np.testing.assert_allclose(after, finals, rtol=1e-5)


def test_repeated_indices_accumulate() -> None:
    at = array_type((3,), "int32")

    def body(b: Builder, i: Var, r: Var, x: Var) -> Sequence[Atom]:
        first = get(b, r, Pick(None), at=[i])
        add(b, r, x, Pick(None), at=[i])
        return [first, get(b, r)]

    jaxpr = program([at, ref(2), f32(3)], body)
    check(jaxpr, (N, R, V))
    check(jaxpr, (N, T, V))
    # The last value that is written to a position stays; the old one is read each time.
    swapped = program([at, ref(2), f32(3)], lambda b, i, r, x: [swap(b, r, x, Pick(None), at=[i])])
    for seed in range(4):
        check(swapped, (N, R, V), seed=seed)
        check(swapped, (N, T, V), seed=seed)
    again = transposed(transposed(swapped, (N, T, V)).jaxpr, (N, T, V))
    args = values(swapped)
    for have, ct_spec in zip(run(again.jaxpr, args), run(swapped, args), strict=True):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-6)


class TestWideAccumulators:
    """Cotangents of a narrow array can be summed up in a wider reference."""

    def wide(self, jaxpr: Jaxpr, ct_specs: Sequence[CotangentSpec]) -> None:
        made = transposed(jaxpr, ct_specs)
        narrow = transposed(jaxpr, [V if isinstance(w, GradRef) else w for w in ct_specs])
        asked = [t for t, w in zip(jaxpr.in_types, ct_specs, strict=True) if isinstance(w, GradRef)]
        bound = [t for t in made.jaxpr.in_types if isinstance(t, RefType)]
        assert [t.dtype.name for t in bound] == ["float32"] * len(asked)
        rng = np.random.default_rng(0)
        args = values(jaxpr)
        fixed = [x for x, w in zip(args, ct_specs, strict=True) if w == N]
        given = [random_value(rng, t) for t in jaxpr.out_types]
        totals = [np.ones(t.shape, np.float32) for t in asked]
        _, after = run(made.jaxpr, [*fixed, *totals, *given])
        expected, _ = run(narrow.jaxpr, [*fixed, *given])
        for have, ct_spec in zip(after, expected, strict=True):
            # The narrow sums round after each of forty additions.
            np.testing.assert_allclose(have, 1 + ct_spec.astype(np.float32), atol=0.1)

    def test_dense_and_sparse_cotangents_through_calls(self) -> None:
        bf16 = array_type((40,), "bfloat16")

        def part(b: Builder, i: Var, x: Var) -> Sequence[Atom]:
            return [b(Gather(row((40,))), x, i)]

        inner = program([I32, bf16], part)
        looped = program(
            [I32, bf16, bf16.update(shape=())],
            lambda b, i, x, u: [b.inline_jaxpr(inner, [i, x])[0], u],
        )

        def body(b: Builder, i: Var, x: Var, y: Var) -> Sequence[Atom]:
            outs = [b(prims.Neg(), x), b(Slice((1,), (5,)), x), *b.emit(Jit(inner), [i, x])]
            outs += b.emit(Cond((inner, inner)), [i, i, x])
            return [*outs, *b.emit(scan(looped, 40, 2, 0), [i, x, y])]

        jaxpr = program([I32, bf16, bf16], body)
        wide = GradRef(F32.dtype)
        self.wide(jaxpr, (N, wide, wide))
        assert big_zeros(transposed(jaxpr, (N, wide, wide)).jaxpr, 40) == 0

    def test_a_dtype_that_does_not_fit_is_refused(self) -> None:
        jaxpr = program([SCALAR_REF, array_type((), "complex64")], lambda b, r, x: [get(b, r), x])
        for ct_specs in (
            (GradRef(I32.dtype), V),
            (GradRef(np.dtype("float64")), V),
            (R, GradRef(F32.dtype)),
        ):
            assert "cannot be accumulated" in str(transpose(jaxpr, ct_specs).failure())
        assert repr(R) == "GradRef()"


# Errors.


@pytest.mark.parametrize(
    ("jaxpr", "ct_specs", "cts", "words"),
    [
        (AFFINE, (N, V), None, "one spec for each input"),
        (AFFINE, (N, V, V), (True,), "one entry for each result"),
        (
            program([BOOL], lambda b, p: [p]),
            (V,),
            None,
            "argument 0 cannot be linear",
        ),
        (PLUMBED, (N, N, V, V), None, "must be accumulated into a reference"),
        (PLUMBED, (N, N, R, T), None, "only the cotangent of a reference is threaded"),
        (PLUMBED, (N, N, N, V), None, "written to argument 2, which is not linear"),
        (program([F32], lambda b, x: [b(prims.Mul(), x, x)]), (V,), None, "not linear"),
        (program([F32], lambda b, x: [b(prims.Sin(), x)]), (V,), None, "sin has no transpose rule"),
        (
            program([BOOL], lambda b, p: [p]),
            (N,),
            (True,),
            "result 0 has no cotangent",
        ),
    ],
)
def test_transpose_errors(
    jaxpr: Jaxpr, ct_specs: Sequence[CotangentSpec], cts: Sequence[bool] | None, words: str
) -> None:
    error = transpose(jaxpr, ct_specs, cts).failure()
    assert isinstance(error, TransformError)
    assert words in str(error)


# Growth.


def chain(n: int) -> Jaxpr:
    def body(b: Builder, c: Var, x: Var) -> Sequence[Atom]:
        y: Atom = x
        for k in range(n // 2):
            y = (
                b(prims.Add(), b(prims.Mul(), y, c), x)
                if k % 2
                else b(prims.Neg(), b(prims.Mul(), c, y))
            )
        return [y]

    return program([f32(3), f32(3)], body)


@pytest.mark.slow
def test_growth_and_work_are_linear() -> None:
    def work(n: int) -> int:
        jaxpr = chain(n)
        assert len(transpose(jaxpr, (N, V)).unwrap().jaxpr.eqns) <= n
        return calls(lambda: transpose.uncached(jaxpr, (N, V), (True,), DEFAULT_RULES))

    assert work(10_000) < 12 * work(1_000)
