"""Discharge: observationally equal, without references, in place where possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from returns.pipeline import is_successful

from effax.effects import Accum, Read, Write
from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.indexing import Pick, Span
from effax.ir.prims import BroadcastInDim, Cond, Gather, Jit, Scan, Scatter, ScatterAdd, While
from effax.ir.prims import refs as p
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType, Type, array_type
from effax.transforms.discharge import Discharged, discharge, has_refs
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


def discharged(jaxpr: Jaxpr) -> Discharged:
    found = discharge(jaxpr)
    assert is_successful(found), found.failure()
    return found.unwrap()


def assert_same(jaxpr: Jaxpr, seed: int = 0) -> Discharged:
    """Same results and same final contents; no reference is left; inputs are unchanged."""
    before = hash(jaxpr), str(jaxpr)
    made = discharged(jaxpr)
    assert (hash(jaxpr), str(jaxpr)) == before
    assert not has_refs(made.jaxpr), str(made.jaxpr)
    assert not any(isinstance(e, Read | Write | Accum) for e in made.jaxpr.effects)
    assert_well_formed(made.jaxpr)
    args = values(jaxpr, seed)
    outs, contents = run(jaxpr, args)
    found, _ = run(made.jaxpr, args)
    for ct_spec, have in zip(outs, found[: made.n_outs], strict=True):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-6)
    final = dict(zip(made.changed, found[made.n_outs :], strict=True))
    for i, ct_spec in zip(made.refs, contents, strict=True):
        np.testing.assert_allclose(final.get(i, args[i]), ct_spec, rtol=1e-6)
    assert made.jaxpr.out_types[: made.n_outs] == jaxpr.out_types
    return made


def nested(kind: str, body: Jaxpr) -> Jaxpr:
    """Return a program with the subjaxpr ``body``, from references and numbers to numbers."""
    b = Builder(body.in_types)
    if kind == "jit":
        return b.finish(b.emit(Jit(body), b.binders))
    if kind == "cond":
        index = b.bind(I32)
        sevens = [BroadcastInDim(t.shape, ()) for t in body.out_types]
        other = program(body.in_types, lambda b, *a: [b(s, number(7.0)) for s in sevens])
        return b.finish(b.emit(Cond((other, body)), [index, *b.binders[:-1]]))
    wrapped = Builder(body.in_types)
    ys = wrapped.inline_jaxpr(body, wrapped.binders)
    return b.finish(b.emit(scan(wrapped.finish(ys), 3, len(b.binders), 0), b.binders))


def leaf(b: Builder, r: Atom, s: Atom, x: Atom) -> Sequence[Atom]:
    """Reads, writes and accumulates into ``r: f32[3]``, reads ``s: f32[]``."""
    first = get(b, r, Pick(0))
    old = swap(b, r, b(prims.Mul(), first, x), Pick(1))
    add(b, r, b(prims.Add(), old, get(b, s)), Pick(0))
    swap(b, r, b(prims.Sin(), get(b, r, Span(0, 2))), Span(1, 2))
    return [b(prims.Add(), first, get(b, r, Pick(2)))]


LEAF = program([ref(3), SCALAR_REF, F32], leaf)


def test_a_pure_program_is_returned_unchanged() -> None:
    pure = program(
        [F32], lambda b, x: b.emit(Jit(program([F32], lambda c, y: [c(prims.Sin(), y)])), [x])
    )
    made = discharged(pure)
    assert made.jaxpr is pure
    assert made.refs == made.changed == ()


def test_discharge_of_every_reference_primitive() -> None:
    made = assert_same(LEAF)
    assert made.refs == (0, 1)
    assert made.changed == (0,)
    assert made.jaxpr.in_types == (f32(3), F32, F32)
    assert made.jaxpr.out_types == (F32, f32(3))


def test_unchanged_references_are_not_returned() -> None:
    made = assert_same(program([SCALAR_REF], lambda b, r: [get(b, r)]))
    assert len(made.jaxpr.outs) == 1
    assert not made.jaxpr.eqns


def test_local_references_are_removed() -> None:
    def body(b: Builder, x: Var) -> Sequence[Atom]:
        r = b(p.NewRef(), x)
        e = b(p.EmptyRef(f32(2)))
        add(b, r, b(prims.Sin(), x))
        swap(b, e, get(b, r), Pick(1))
        b.emit(p.FreeRef(), [b(p.NewRef(), number(1.0))])
        return [b(p.Freeze(), r), b(p.Freeze(), e)]

    made = assert_same(program([F32], body))
    assert made.refs == ()
    assert len(made.jaxpr.outs) == 2


def test_contents_are_strong_where_the_value_was_weak() -> None:
    weak = array_type((), "float32", weak=True)
    made = assert_same(program([weak], lambda b, x: [get(b, b(p.NewRef(), x))]))
    assert made.jaxpr.out_types == (F32,)
    written = program([SCALAR_REF, weak], lambda b, r, x: [swap(b, r, x)])
    assert assert_same(written).jaxpr.out_types == (F32, F32)


@pytest.mark.parametrize(
    "dims",
    [
        [Pick(2), Span(0, 4)],
        [Span(3, 2, -1), Span(1, 2)],
        [Pick(None), Span(0, 4)],
        [Span(None, 2), Pick(None)],
        [Pick(None), Pick(None)],
    ],
)
def test_indexers_are_kept(dims: list[Pick | Span]) -> None:
    many = [d for d in dims if d[0] is None]
    index = array_type((5,), "int32")
    types: list[Type] = [ref(4, 4), *[index if isinstance(d, Pick) else I32 for d in many]]

    def body(b: Builder, r: Var, *at: Var) -> Sequence[Atom]:
        part = get(b, r, *dims, at=at)
        old = swap(b, r, b(prims.Sin(), part), *dims, at=at)
        add(b, r, b(prims.Cos(), part), *dims, at=at)
        return [part, old]

    made = assert_same(program(types, body))
    assert count(made.jaxpr, Gather) == 2
    assert count(made.jaxpr, Scatter, ScatterAdd) == 2
    assert count(made.jaxpr, BroadcastInDim) == 0


def test_unused_results_of_swap_are_not_read() -> None:
    def body(b: Builder, r: Var, x: Var) -> Sequence[Atom]:
        swap(b, r, x, Pick(0))
        return []

    made = assert_same(program([ref(9), F32], body))
    assert [type(eqn.prim) for eqn in made.jaxpr.eqns] == [Scatter]


@pytest.mark.parametrize("outer", ["jit", "cond", "scan"])
@pytest.mark.parametrize("inner", ["jit", "cond", "scan"])
@pytest.mark.parametrize("seed", [0, 3])
def test_nested_control_flow_with_references(outer: str, inner: str, seed: int) -> None:
    once = nested(inner, LEAF)
    assert_same(once, seed)
    made = assert_same(nested(outer, once), seed)
    assert made.changed == (0,)


def test_names_and_constants_are_kept() -> None:
    named = LEAF.replace(n_consts=2, names=("r", "s", "x"))
    made = discharged(named).jaxpr
    assert (made.n_consts, made.names) == (2, ("r", "s", "x"))


def test_a_local_reference_inside_of_a_pure_loop() -> None:
    def body(b: Builder, c: Var, x: Var) -> Sequence[Atom]:
        r = b(p.NewRef(), c)
        add(b, r, x)
        return [b(p.Freeze(), r)]

    inner = program([F32, F32], body)
    made = assert_same(
        program([F32, f32(4)], lambda b, c, xs: b.emit(scan(inner, 4, 0, 1), [c, xs]))
    )
    assert made.changed == ()


def scanned(reverse: bool = False) -> Jaxpr:
    """Scans over a reference that it changes, one that it reads, and an array."""

    def body(b: Builder, total: Var, c: Var, r: Var, s: Var, x: Var) -> Sequence[Atom]:
        here = get(b, r, Pick(0))
        add(b, r, get(b, s), Pick(1))
        swap(b, r, b(prims.Mul(), x, c), Pick(0))
        add(b, total, here)
        return [b(prims.Add(), c, get(b, r, Pick(1))), here]

    inner = program([SCALAR_REF, F32, ref(2), SCALAR_REF, F32], body)
    types: list[Type] = [SCALAR_REF, F32, ref(4, 2), ref(4), f32(4)]
    return program(types, lambda b, *a: b.emit(scan(inner, 4, 1, 1, reverse), a))


@pytest.mark.parametrize("reverse", [False, True])
def test_scanned_references(reverse: bool) -> None:
    made = assert_same(scanned(reverse))
    assert made.changed == (0, 2)
    (loop,) = [e.prim for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    # The contents of both changed references and a counter are carried, nothing else is added.
    assert loop.n_carry == 4
    assert loop.n_consts == 0
    assert len(loop.jaxpr.outs) == 5
    # The element is updated in place, in the whole array.
    assert loop.jaxpr.out_types[1] == f32(4, 2)
    assert count(loop.jaxpr, BroadcastInDim) == 0


def test_a_scanned_reference_that_is_only_read_stays_scanned() -> None:
    inner = program([F32, SCALAR_REF], lambda b, c, r: [b(prims.Add(), c, get(b, r))])
    made = assert_same(program([F32, ref(5)], lambda b, c, r: b.emit(scan(inner, 5, 0, 1), [c, r])))
    (loop,) = [e.prim for e in made.jaxpr.eqns if isinstance(e.prim, Scan)]
    assert loop.n_carry == 1


def test_an_element_that_is_overwritten_is_not_gathered() -> None:
    def body(b: Builder, r: Var, x: Var) -> Sequence[Atom]:
        swap(b, r, x)
        return []

    inner = program([SCALAR_REF, F32], body)
    made = assert_same(
        program([ref(5), f32(5)], lambda b, r, x: b.emit(scan(inner, 5, 0, 0), [r, x]))
    )
    assert count(made.jaxpr, Gather) == 0
    assert count(made.jaxpr, Scatter) == 1


def test_an_empty_scan_leaves_references_as_they_were() -> None:
    inner = program([SCALAR_REF, F32], lambda b, r, x: [swap(b, r, x)])
    assert_same(program([SCALAR_REF, f32(0)], lambda b, r, x: b.emit(scan(inner, 0, 1, 0), [r, x])))


def test_branches_that_change_different_references() -> None:
    types: list[Type] = [SCALAR_REF, SCALAR_REF, SCALAR_REF]

    def first(b: Builder, r: Var, s: Var, t: Var) -> Sequence[Atom]:
        swap(b, r, get(b, t))
        return [get(b, s)]

    def second(b: Builder, r: Var, s: Var, t: Var) -> Sequence[Atom]:
        add(b, s, get(b, t))
        return [get(b, r)]

    branches = (program(types, first), program(types, second))
    both = program([I32, *types], lambda b, *a: b.emit(Cond(branches), a))
    for seed in range(4):
        made = assert_same(both, seed)
        assert made.changed == (1, 2)


def test_a_condition_reads_what_the_body_writes() -> None:
    cond = program([SCALAR_REF, F32], lambda b, r, c: [b(prims.Lt(), get(b, r), number(3.0))])

    def body(b: Builder, r: Var, c: Var) -> Sequence[Atom]:
        add(b, r, number(1.0))
        return [b(prims.Add(), c, get(b, r))]

    loop = While(cond, program([SCALAR_REF, F32], body), 1)
    made = assert_same(program([SCALAR_REF, F32], lambda b, r, c: b.emit(loop, [r, c])))
    args = [np.float32(0), np.float32(10)]
    outs, _ = run(made.jaxpr, [np.asarray(a) for a in args])
    assert [float(x) for x in outs] == [16.0, 3.0]
    assert count(made.jaxpr, Jit) == 0


def test_a_condition_that_writes_takes_effect_as_often_as_it_runs() -> None:
    def cond(b: Builder, k: Var, r: Var, s: Var, c: Var) -> Sequence[Atom]:
        add(b, r, number(1.0))
        return [b(prims.Lt(), b(prims.Add(), get(b, r), get(b, s)), k)]

    def body(b: Builder, k: Var, r: Var, s: Var, c: Var) -> Sequence[Atom]:
        add(b, s, number(2.0))
        return [b(prims.Add(), c, get(b, r))]

    types: list[Type] = [F32, SCALAR_REF, SCALAR_REF, F32]
    loop = While(program(types, cond), program(types, body), 3)
    whole = program(types, lambda b, *a: b.emit(loop, a))
    made = assert_same(whole)
    assert made.changed == (1, 2)
    outs, _ = run(made.jaxpr, [np.asarray(x, np.float32) for x in (6, 0, 0, 100)])
    # r, s at the tests: (1,0), (2,2), (3,4): the third says no; the body saw r = 1, then 2.
    assert [float(x) for x in outs] == [103.0, 3.0, 4.0]


def test_a_condition_that_writes_is_one_program_at_any_depth() -> None:
    def nest(cond: Jaxpr) -> Jaxpr:
        body = program([SCALAR_REF, F32], lambda b, r, c: [b(prims.Add(), c, number(1.0))])
        loop = While(cond, body, 1)
        return program(
            [SCALAR_REF, F32], lambda b, r, c: [b(prims.Lt(), *b.emit(loop, [r, c]), get(b, r))]
        )

    def start(b: Builder, r: Var, c: Var) -> Sequence[Atom]:
        add(b, r, number(-1.0))
        return [b(prims.Lt(), c, get(b, r))]

    jaxpr = program([SCALAR_REF, F32], start)
    for _ in range(30):
        jaxpr = nest(jaxpr)
    made = discharged(jaxpr).jaxpr
    distinct: set[int] = set()

    def visit(outer: Jaxpr) -> None:
        if id(outer) not in distinct:
            distinct.add(id(outer))
            for eqn in outer.eqns:
                for inner in eqn.prim.subjaxprs():
                    visit(inner)

    visit(made)
    assert len(distinct) < 200


def test_a_reference_as_a_result_is_an_error() -> None:
    escaping = program([SCALAR_REF], lambda b, r: [r])
    error = discharge(escaping).failure()
    assert "result 0 is a reference" in str(error)
    assert "remedy" in str(error)


def test_discharge_is_deterministic() -> None:
    assert discharged(scanned()).jaxpr == discharged(scanned()).jaxpr


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_programs_of_the_building_module(name: str, seed: int) -> None:
    assert_same(PROGRAMS[name](), seed)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 10000])
def test_cost_is_linear_and_small(n: int) -> None:
    def body(b: Builder, r: Var, x: Var) -> Sequence[Atom]:
        y: Atom = x
        for k in range(n // 4):
            add(b, r, y, Pick(k % 3))
            y = b(prims.Sin(), get(b, r, Pick((k + 1) % 3)))
            swap(b, r, y, Pick(k % 3))
        return [y]

    jaxpr = program([ref(3), F32], body)
    made = discharged(jaxpr).jaxpr
    assert len(made.eqns) == len(jaxpr.eqns)


def test_types_of_references_are_gone_from_the_inside() -> None:
    made = discharged(nested("scan", nested("cond", LEAF))).jaxpr

    def types(jaxpr: Jaxpr) -> list[object]:
        own = [v.type for e in jaxpr.eqns for v in e.outs] + list(jaxpr.in_types)
        return own + [t for e in jaxpr.eqns for inner in e.prim.subjaxprs() for t in types(inner)]

    assert not any(isinstance(t, RefType) for t in types(made))
