"""Transposition of control flow, and of linearized programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.errors import NotApplicable
from effax.ir.eval.numpy import evaluate
from effax.ir.indexing import row
from effax.ir.prims import BroadcastInDim, Cond, Gather, Jit, Scan, Slice, While
from effax.ir.prims import refs as p
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType, Type, is_inexact
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import Indivisible
from effax.transforms.linearize import linearize
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.engine import (
    CotangentSpec,
    transpose,
)
from tests.unit.building import (
    F32,
    I32,
    PROGRAMS,
    SCALAR_REF,
    add,
    assert_well_formed,
    count,
    f32,
    get,
    number,
    program,
    ref,
    run,
    scan,
    swap,
    values,
)
from tests.unit.transforms.adjoint import (
    DOT,
    D,
    N,
    R,
    T,
    V,
    big_zeros,
    check,
    only_accumulates,
    plumbed,
    refs_and_values_agree,
    transposed,
)

# Control flow.


def nested(
    kind: str, inner: Jaxpr, ct_specs: Sequence[CotangentSpec]
) -> tuple[Jaxpr, Sequence[CotangentSpec]]:
    """Return a linear program that calls ``inner``, and the cotangent specs of its inputs."""
    b = Builder(inner.in_types)
    if kind == "jit":
        return b.finish(b.emit(Jit(inner), b.binders)), ct_specs
    if kind == "scan":
        made = b.emit(scan(inner, 3, len(b.binders), 0, reverse=True), b.binders)
        return b.finish(made), ct_specs
    index = b.bind(I32)

    def other(b: Builder, *a: Var) -> Sequence[Atom]:
        zeros = [b(BroadcastInDim(t.shape, ()), number(0.0)) for t in inner.out_types]
        return [
            *zeros[:-1],
            b(prims.Mul(), b(BroadcastInDim(inner.out_types[-1].shape, ()), a[-1]), a[0]),
        ]

    branches = (program(inner.in_types, other), inner)
    return b.finish(b.emit(Cond(branches), [index, *b.binders[:-1]])), [*ct_specs, N]


def index_third(jaxpr: Jaxpr) -> Jaxpr:
    c, i, r, x, k = jaxpr.in_types
    return program([c, i, k, r, x], lambda b, c, i, k, r, x: b.inline_jaxpr(jaxpr, [c, i, r, x, k]))


CALLEE = program(
    [F32, I32, ref(4), F32],
    lambda b, c, i, r, x: [plumbed(b, c, i, r, x)[0]],
)


@pytest.mark.parametrize("outer", ["jit", "cond", "scan"])
@pytest.mark.parametrize("inner", ["jit", "cond", "scan"])
@pytest.mark.parametrize("ct_specs", [(N, N, R, V), (N, N, T, R), (N, N, D, V), (N, N, T, D)])
def test_transpose_of_nested_control_flow(
    outer: str, inner: str, ct_specs: Sequence[CotangentSpec]
) -> None:
    def scalar(jaxpr: Jaxpr) -> Jaxpr:
        if not any(t.shape for t in jaxpr.out_types):
            return jaxpr

        def body(b: Builder, *a: Var) -> Sequence[Atom]:
            (y,) = b.inline_jaxpr(jaxpr, a)
            return [b(Gather(row(y.type.shape, 1)), y)]

        return program(jaxpr.in_types, body)

    once, given = nested(inner, CALLEE, ct_specs)
    if inner == "cond":
        # The linear value stays last: the other branch of an outer cond uses it.
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
    add(b, s, b(prims.Mul(), y, a))
    here = swap(b, r, b(prims.Add(), y, x))
    new = b(prims.Add(), b(prims.Mul(), y, c), b(prims.Mul(), w, a))
    return [
        b(prims.Add(), new, here),
        b(prims.Add(), z, get(b, s)),
        b(prims.Mul(), new, a),
        b(prims.Neg(), x),
    ]


LOOP_TYPES: list[Type] = [F32, F32, SCALAR_REF, F32, F32, f32(5), ref(5), f32(5)]
LOOP = program(
    LOOP_TYPES,
    lambda b, *a: b.emit(
        scan(program([F32, F32, SCALAR_REF, F32, F32, F32, SCALAR_REF, F32], loop_body), 5, 3, 2), a
    ),
)


@pytest.mark.parametrize(
    "ct_specs",
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
def test_scans_are_transposed(
    ct_specs: Sequence[CotangentSpec], cts: Sequence[bool] | None
) -> None:
    made = check(LOOP, ct_specs, cts)
    (loop,) = [e.prim for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    assert loop.reverse
    check(
        program(
            LOOP_TYPES,
            lambda b, *a: b.emit(Scan(LOOP.eqns[0].prim.subjaxprs()[0], 5, True, 3, 2), a),
        ),
        ct_specs,
        cts,
    )


@pytest.mark.parametrize("ct_specs", [(N, V, T, V, V, N, T, V), (N, R, T, V, R, N, T, R)])
def test_transposed_programs_can_be_transposed(ct_specs: Sequence[CotangentSpec]) -> None:
    programs = [(LOOP, ct_specs)]
    programs += [nested(kind, CALLEE, (N, N, T, V)) for kind in ("jit", "cond", "scan")]
    for jaxpr, given in programs:
        back = transposed(jaxpr, given).jaxpr
        n_fixed, n_refs = list(given).count(N), sum(w in {R, T} for w in given)
        rest = [V] * (len(back.binders) - n_fixed - n_refs)
        check(back, [*[N] * n_fixed, *[T] * n_refs, *rest])


def test_a_scan_only_carries_cotangents_that_are_not_zero() -> None:
    def body(b: Builder, y: Var, z: Var, x: Var) -> Sequence[Atom]:
        return [b(prims.Add(), y, x), b(prims.Add(), z, y), b(prims.Neg(), y)]

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
        return [b(prims.Add(), b(prims.Add(), y, b(Slice((0,), (4,)), w)), u)]

    inner = program([f32(1000), f32(4), f32(4)], body)
    jaxpr = program([f32(1000), f32(4), f32(6, 4)], lambda b, *a: b.emit(scan(inner, 6, 1, 1), a))
    made = check(jaxpr, (R, V, R))
    (loop,) = [e for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    assert [a.type for a in loop.ins] == [ref(1000), f32(4), ref(6, 4)]
    assert len(loop.outs) == 1
    assert count(made.jaxpr, p.NewRef, BroadcastInDim) == 0
    refs_and_values_agree(jaxpr, (V, V, V))


def test_gradients_of_microbatches_accumulate_in_place() -> None:
    """An outer scan closes over a gradient reference; an inner one scans over its layers."""
    layers, width = 3, 2

    def layer(b: Builder, y: Var, dw: Var, act: Var, w: Var) -> Sequence[Atom]:
        return [b(prims.Add(), b(DOT, y, w), b(DOT, act, dw))]

    inner = program([f32(1, width), f32(width, width), f32(1, width), f32(width, width)], layer)

    def loss(b: Builder, has_effects: Var, ws: Var, dws: Var) -> Sequence[Atom]:
        start = b(BroadcastInDim((1, width), ()), number(0.0))
        return b.emit(scan(inner, layers, 0, 1), [start, dws, has_effects, ws])

    stacked = f32(layers, width, width)
    linear = program([f32(layers, 1, width), stacked, stacked], loss)
    back = check(linear, (N, N, R))
    assert only_accumulates(back, 2)

    def process(b: Builder, ws: Var, acc: Var, has_effects: Var, ct: Var) -> Sequence[Atom]:
        b.inline_jaxpr(back.jaxpr, [has_effects, ws, acc, ct])
        return []

    one = program([stacked, ref(*stacked.shape), f32(layers, 1, width), f32(1, width)], process)
    n = 5
    whole = program(
        [stacked, ref(*stacked.shape), f32(n, layers, 1, width), f32(n, 1, width)],
        lambda b, *a: b.emit(scan(one, n, 2, 0), a),
    )
    assert_well_formed(whole)
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
    for has_effects, ct in zip(args[2], args[3], strict=True):
        expected += run(by_value.jaxpr, [has_effects, args[0], ct])[0][0]
    np.testing.assert_allclose(total, expected, rtol=1e-5)


def test_branches_share_references_and_return_zeros_for_missing_cotangents() -> None:
    types = [F32, f32(3), F32]

    def first(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return [b(prims.Mul(), y, c)]

    def second(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return [b(Gather(row((3,), 1)), x)]

    branches = (program(types, first), program(types, second))
    jaxpr = program([I32, *types], lambda b, *a: b.emit(Cond(branches), a))
    for seed in range(3):
        check(jaxpr, (N, N, V, V), seed=seed)
        made = check(jaxpr, (N, N, R, R), seed=seed)
        assert count(made.jaxpr, BroadcastInDim) == 0


def test_a_while_with_linear_carries() -> None:
    cond = program([F32, F32, I32], lambda b, w, y, i: [b(prims.Lt(), i, number(3, I32))])
    body = program([F32, F32, I32], lambda b, w, y, i: [y, b(prims.Add(), i, number(1, I32))])

    def whole(b: Builder, w: Var, y: Var, i: Var) -> Sequence[Atom]:
        return b.emit(While(cond, body, 1), [w, y, i])[:1]

    check(program([F32, F32, I32], whole), (V, V, N))


def test_a_while_with_an_unused_linear_read() -> None:
    types: list[Type] = [SCALAR_REF, I32]

    def step(b: Builder, r: Var, i: Var) -> Sequence[Atom]:
        get(b, r)
        return [b(prims.Add(), i, number(1, I32))]

    cond = program(types, lambda b, r, i: [b(prims.Lt(), i, number(3, I32))])

    def body(b: Builder, r: Var, i: Var, x: Var) -> Sequence[Atom]:
        b.emit(While(cond, program(types, step), 1), [r, i])
        return [b(prims.Add(), get(b, r), x)]

    for ct_specs in ((R, N, V), (T, N, V), (D, N, V)):
        check(program([SCALAR_REF, I32, F32], body), ct_specs)


def test_a_loop_whose_condition_is_linear_is_refused() -> None:
    cond = program([F32, F32], lambda b, c, y: [b(prims.Lt(), y, c)])
    body = program([F32, F32], lambda b, c, y: [b(prims.Mul(), y, c)])
    jaxpr = program([F32, F32], lambda b, *a: b.emit(While(cond, body, 1), a))
    error = transpose(jaxpr, (N, V)).failure()
    assert isinstance(error, NotApplicable)
    assert "not linear in the operands of its condition" in str(error)
    assert "while" in str(error.equation)


def test_a_condition_may_change_a_linear_reference_in_a_condition() -> None:
    """The condition runs once more than the body, and its last effects are transposed too."""

    def zero(b: Builder, r: Var, i: Var) -> Sequence[Atom]:
        swap(b, r, number(0.0))
        return [b(prims.Lt(), i, number(2, I32))]

    def one_more(b: Builder, r: Var, i: Var) -> Sequence[Atom]:
        return [b(prims.Add(), i, number(1, I32))]

    asks = While(program([SCALAR_REF, I32], zero), program([SCALAR_REF, I32], one_more), 1)

    def again(b: Builder, r: Var, x: Var, i: Var) -> Sequence[Atom]:
        b.emit(asks, [r, number(0, I32)])
        return [b(prims.Lt(), i, number(2, I32))]

    def step(b: Builder, r: Var, x: Var, i: Var) -> Sequence[Atom]:
        add(b, r, x)
        return [b(prims.Add(), i, number(1, I32))]

    types: list[Type] = [SCALAR_REF, F32, I32]
    loop = While(program(types, again), program(types, step), 2)

    def body(b: Builder, r: Var, x: Var) -> Sequence[Atom]:
        b.emit(loop, [r, x, number(0, I32)])
        return [x]

    for ct_specs in ((T, V), (R, V), (T, D)):
        check(program([SCALAR_REF, F32], body), ct_specs)


def test_what_a_loop_reads_may_change_after_it() -> None:
    """The backward loop uses the contents that were read before the change."""
    types: list[Type] = [SCALAR_REF, I32, F32]

    def step(b: Builder, r: Var, i: Var, y: Var) -> Sequence[Atom]:
        return [b(prims.Add(), i, number(1, I32)), b(prims.Mul(), y, get(b, r))]

    cond = program(types, lambda b, r, i, y: [b(prims.Lt(), i, number(3, I32))])
    loop = While(cond, program(types, step), 1)

    def body(b: Builder, c: Var, x: Var) -> Sequence[Atom]:
        r = b(p.NewRef(), c)
        _, y = b.emit(loop, [r, number(0, I32), x])
        add(b, r, number(5.0))
        return [b(prims.Mul(), y, get(b, r))]

    check(program([F32, F32], body), (N, V))


# What does not depend on linear inputs.


def test_effects_on_fixed_references_run_once_and_in_order() -> None:
    def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
        add(b, r, c)
        y = b(prims.Mul(), x, get(b, r))
        swap(b, r, b(prims.Sin(), c))
        return [b(prims.Mul(), y, get(b, r))]

    jaxpr = program([SCALAR_REF, F32, F32], body)
    made = check(jaxpr, (N, N, V))
    args = values(jaxpr)
    _, finals = run(jaxpr, args)
    _, after = run(made.jaxpr, [args[0], args[1], np.asarray(1, np.float32)])
    np.testing.assert_allclose(after, finals)
    nothing = transposed(jaxpr, (N, N, D))
    assert count(nothing.jaxpr, p.AddUpdate, p.Swap) == 2
    assert count(nothing.jaxpr, prims.Mul) == 0


def test_calls_that_are_linear_in_part_are_split() -> None:
    """Fixed results and effects of a call come first, in their order."""

    def callee(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
        add(b, r, c)
        s = b(prims.Sin(), get(b, r))
        return [s, b(prims.Mul(), x, s)]

    inner = program([SCALAR_REF, F32, F32], callee)

    def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
        s, y = b.emit(Jit(inner), [r, c, x])
        add(b, r, s)
        return [b(prims.Mul(), y, get(b, r))]

    jaxpr = program([SCALAR_REF, F32, F32], body)
    made = check(jaxpr, (N, N, V))
    assert count(made.jaxpr, prims.Sin) == 1
    args = values(jaxpr)
    _, finals = run(jaxpr, args)
    _, after = run(made.jaxpr, [args[0], args[1], np.asarray(1, np.float32)])
    np.testing.assert_allclose(after, finals)


def test_a_scan_that_carries_a_fixed_value_is_split() -> None:
    def step(b: Builder, i: Var, y: Var, c: Var) -> Sequence[Atom]:
        scaled = b(prims.Mul(), y, b(prims.Mul(), c, b(prims.ConvertElementType(F32.dtype), i)))
        return [b(prims.Add(), i, number(1, I32)), b(prims.Add(), scaled, y)]

    inner = program([I32, F32, F32], step)
    jaxpr = program([I32, F32, f32(4)], lambda b, *a: b.emit(scan(inner, 4, 0, 2), a)[1:])
    check(jaxpr, (N, V, N))


def test_a_fixed_result_of_a_call_without_fixed_arguments() -> None:
    def callee(b: Builder, x: Var) -> Sequence[Atom]:
        r = b(p.NewRef(), number(2.0))
        add(b, r, number(1.0))
        return [b(prims.Neg(), x), b(p.Freeze(), r)]

    inner = program([F32], callee)

    def body(b: Builder, x: Var) -> Sequence[Atom]:
        y, three = b.emit(Jit(inner), [x])
        return [b(prims.Mul(), y, three)]

    check(program([F32], body), (V,))
    looped = scan(
        program([F32, F32], lambda b, w, x: b.emit(Jit(inner), [b(prims.Add(), w, x)])), 3, 1, 0
    )

    def outer(b: Builder, w: Var, x: Var) -> Sequence[Atom]:
        y, threes = b.emit(looped, [w, x])
        return [b(prims.Mul(), y, threes)]

    check(program([F32, f32(3)], outer), (V, V))


class TestRulesThatCannotSplit:
    """A rule set whose calls cannot be split: unsupported cases raise."""

    def failure(self, jaxpr: Jaxpr, ct_specs: Sequence[CotangentSpec]) -> str:
        rules = DEFAULT_RULES
        for prim in (Jit, Scan):
            whole = replace(rules.rules[prim], split=Indivisible())
            rules = rules.extend(prim, whole)
        return str(transpose(jaxpr, ct_specs, rules=rules).failure())

    def callee(self) -> Jaxpr:
        def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
            add(b, r, c)
            return [b(prims.Mul(), x, c), b(prims.Sin(), c)]

        return program([SCALAR_REF, F32, F32], body)

    def test_an_effect_that_would_be_reordered_is_an_error(self) -> None:
        def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
            y, _ = b.emit(Jit(self.callee()), [r, c, x])
            return [b(prims.Mul(), y, get(b, r))]

        words = self.failure(program([SCALAR_REF, F32, F32], body), (N, N, V))
        assert "that one would run first" in words
        assert "jit" in words

    def test_a_later_effect_that_commutes_is_accepted(self) -> None:
        def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
            y, _ = b.emit(Jit(self.callee()), [r, c, x])
            add(b, r, c)
            return [y]

        check(program([SCALAR_REF, F32, F32], body), (N, N, V))

    def test_a_fixed_result_that_an_effect_keeps_from_being_copied(self) -> None:
        def body(b: Builder, r: Var, c: Var, x: Var) -> Sequence[Atom]:
            y, s = b.emit(Jit(self.callee()), [r, c, x])
            return [b(prims.Mul(), y, s)]

        words = self.failure(program([SCALAR_REF, F32, F32], body), (N, N, V))
        assert "cannot split it" in words

    def test_a_fixed_carry(self) -> None:
        def step(b: Builder, c: Var, y: Var) -> Sequence[Atom]:
            return [b(prims.Sin(), c), b(prims.Mul(), y, c)]

        loop = scan(program([F32, F32], step), 3, 0, 2)
        words = self.failure(program([F32, F32], lambda b, *a: b.emit(loop, a)[1:]), (N, V))
        assert "the scan carries a value that does not depend on its linear inputs" in words


def test_arguments_of_calls_are_computed_where_they_are_needed() -> None:
    inner = program([F32, F32, F32], lambda b, c, x, y: [b(prims.Mul(), x, c), b(prims.Neg(), y)])

    def body(b: Builder, c: Var, x: Var, y: Var) -> Sequence[Atom]:
        return b.emit(Jit(inner), [b(prims.Sin(), b(prims.Cos(), c)), x, y])

    assert count(check(program([F32] * 3, body), (N, V, V)).jaxpr, prims.Sin, prims.Cos) == 2


def test_unused_scan_inputs_have_no_accumulator() -> None:
    def step(b: Builder, w: Var, y: Var) -> Sequence[Atom]:
        return [b(prims.Neg(), y), w]

    inner = program([f32(1000), F32], step)
    jaxpr = program([f32(1000), F32], lambda b, *a: b.emit(scan(inner, 4, 1, 1), a))
    made = check(jaxpr, (V, V), (True, False))
    assert made.nonzero == (False, True)
    assert count(made.jaxpr, p.NewRef) == big_zeros(made.jaxpr) == 0


def test_a_local_reference_of_zeros_is_removed() -> None:
    def body(b: Builder, x: Var) -> Sequence[Atom]:
        r = b(p.NewRef(), number(0.0))
        add(b, r, x)
        return [get(b, r)]

    made = check(program([F32], body), (V,))
    assert count(made.jaxpr, p.Freeze) == 0


# Linearised programs.


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("variant", range(6))
def test_reverse_mode(name: str, variant: int) -> None:
    """Transposed linear programs need no references after discharge."""
    jaxpr = PROGRAMS[name]()
    mask = [is_inexact(t) for t in jaxpr.in_types]
    lin = linearize(jaxpr, mask).unwrap()
    args = [np.array(x) for x in values(jaxpr)]
    outs = evaluate(lin.primal, args)
    residuals = [r.pick(args, outs) for r in lin.residuals]
    rng = np.random.default_rng(variant)
    ct_specs: list[CotangentSpec] = [N] * len(residuals)
    for type_ in jaxpr.in_types:
        if isinstance(type_, RefType):
            ct_specs.append((T, R, D)[variant % 3])
        elif is_inexact(type_):
            ct_specs.append((V, R, D)[rng.integers(2 if variant < 3 else 3)])
    made = check(lin.linear, ct_specs, seed=variant, fixed=residuals)
    if not {V, R, T} & {*ct_specs}:
        assert not made.jaxpr.eqns
    pure = discharge(made.jaxpr).unwrap().jaxpr
    assert_well_formed(pure)
    operands = [*residuals, *values(made.jaxpr, variant)[len(residuals) :]]
    results, _ = run(made.jaxpr, operands)
    same, _ = run(pure, operands)
    for ct_spec, have in zip(results, same[: len(results)], strict=True):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-9, atol=1e-12)


def test_nested_scans_are_transposed_once_a_level() -> None:
    jaxpr = program([F32, F32], lambda b, c, y: [b(prims.Mul(), y, c)])
    for _ in range(25):
        inner = jaxpr
        jaxpr = program([F32, F32], lambda b, *a: b.emit(scan(inner, 1, 1, 1), a))  # noqa: B023
    check(jaxpr, (N, V))


def test_transpose_is_deterministic() -> None:
    ct_specs = (N, V, R, V, V, N, R, V)
    assert transposed(LOOP, ct_specs).jaxpr == transposed(LOOP, ct_specs).jaxpr
    assert str(transposed(LOOP, ct_specs).jaxpr) == str(transposed(LOOP, ct_specs).jaxpr)
