from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.errors import TransformError
from effax.ir.indexing import Pick
from effax.ir.prims import AddUpdate, Cond, FreeRef, Freeze, Get, Jit, NewRef, Scan, Swap, While
from effax.ir.syntax import Atom, Jaxpr
from effax.transforms.jvp import jvp
from effax.transforms.optimize.dce import dce
from tests.unit import building as p
from tests.unit.building import add, count, get, number, primitives, program, run, swap, values
from tests.unit.transforms.test_jvp import differentiable

PROGRAMS = sorted(p.PROGRAMS)


def reduced(jaxpr: Jaxpr, *used: bool, keep: bool | Sequence[bool] = True) -> Jaxpr:
    made = dce(jaxpr, used or None, keep).unwrap().jaxpr
    check(made).unwrap()
    return made


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_dce_keeps_the_meaning_for_every_mask_of_results(name: str, twice: bool) -> None:
    jaxpr = p.PROGRAMS[name]()
    if twice:
        jaxpr = jvp(jaxpr, differentiable(jaxpr)).unwrap().jaxpr
    args = values(jaxpr)
    outs, cells = run(jaxpr, args)
    for used in list(product([True, False], repeat=len(jaxpr.outs)))[:64]:
        made = reduced(jaxpr, *used)
        have_outs, have_cells = run(made, args)
        ct_spec = [y for y, has in zip(outs, used, strict=True) if has]
        for a, b in zip([*ct_spec, *cells], [*have_outs, *have_cells], strict=True):
            np.testing.assert_array_equal(a, b)
        assert len(primitives(made)) <= len(primitives(jaxpr))
        assert reduced(made) == made


@pytest.mark.parametrize("name", PROGRAMS)
def test_dce_drops_exactly_the_unused_inputs(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    used = tuple(i == 0 for i in range(len(jaxpr.outs)))
    made = dce(jaxpr, used, keep_inputs=False).unwrap()
    check(made.jaxpr).unwrap()
    assert made.jaxpr.in_types == tuple(
        t for t, has in zip(jaxpr.in_types, made.used_ins, strict=True) if has
    )
    args = [x for x, has in zip(values(jaxpr), made.used_ins, strict=True) if has]
    np.testing.assert_array_equal(run(made.jaxpr, args)[0][0], run(jaxpr, values(jaxpr))[0][0])


def test_dce_drops_names_and_constants_with_inputs() -> None:
    jaxpr = program([p.F, p.F, p.F], lambda b, x, y, z: [p.mul(b, y, z)])
    jaxpr = jaxpr.replace(n_consts=2, names=("x", "y", "z"))
    made = reduced(jaxpr, keep=False)
    assert (made.n_consts, made.names) == (1, ("y", "z"))
    assert reduced(jaxpr, keep=[True, False, False]).names == ("x", "y", "z")


def test_dce_of_a_live_program_is_the_identity() -> None:
    jaxpr = p.elementwise_chain(8)
    assert reduced(jaxpr) == jaxpr


def test_dce_removes_local_references_that_are_never_read() -> None:
    def body(b: Builder, x: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        swap(b, r, p.sin(b, x))
        add(b, r, x)
        b.emit(Freeze(), [r])
        return [p.mul(b, x, x)]

    assert primitives(reduced(program([p.F], body))) == [prims.Mul()]


def test_dce_removes_writes_after_the_last_read() -> None:
    def body(b: Builder, x: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        add(b, r, x)
        y = get(b, r)
        add(b, r, p.sin(b, y))
        b.emit(Freeze(), [r])
        return [y]

    made = primitives(reduced(program([p.F], body)))
    assert [type(prim) for prim in made] == [NewRef, AddUpdate, Get, FreeRef]


def test_dce_keeps_observed_writes() -> None:
    def body(b: Builder, r: Atom, x: Atom) -> list[Atom]:
        y = get(b, r)
        add(b, r, p.sin(b, x))
        return [y, x]

    jaxpr = program([p.R, p.F], body)
    assert [type(prim) for prim in primitives(reduced(jaxpr, False, True))] == [
        prims.Sin,
        AddUpdate,
    ]


def test_dce_narrows_calls() -> None:
    inner = program([p.F, p.F], lambda b, x, y: [p.sin(b, x), p.mul(b, y, y)])
    jaxpr = program([p.F, p.F], lambda b, x, y: b.emit(Jit(inner), [x, y]))
    made = dce(jaxpr, (False, True)).unwrap()
    assert made.used_ins == (False, True)
    (eqn,) = made.jaxpr.eqns
    assert isinstance(eqn.prim, Jit)
    assert (len(eqn.ins), len(eqn.outs), primitives(eqn.prim.jaxpr)) == (1, 1, [prims.Mul()])


def test_dce_narrows_scans() -> None:
    def step(b: Builder, *args: Atom) -> list[Atom]:
        w, v, c, d, e, x, z = args
        # `d` is needed for `c`, `e` for nothing but itself.
        return [p.mul(b, c, d), p.mul(b, d, w), p.mul(b, e, v), p.sin(b, x), p.sin(b, z)]

    body = program([p.F] * 7, step)
    jaxpr = program(
        [*[p.F] * 5, p.F3, p.F3], lambda b, *args: b.emit(Scan(body, 3, False, 2, 3), args)
    )
    made = dce(jaxpr, (True, False, False, True, False)).unwrap()
    check(made.jaxpr).unwrap()
    assert made.used_ins == (True, False, True, True, False, True, False)
    (eqn,) = made.jaxpr.eqns
    assert isinstance(eqn.prim, Scan)
    assert (eqn.prim.n_consts, eqn.prim.n_carry, len(eqn.ins), len(eqn.outs)) == (1, 2, 4, 3)


def test_dce_keeps_loop_carried_reads_of_local_references() -> None:
    def step(b: Builder, r: Atom, s: Atom, c: Atom) -> list[Atom]:
        n = p.mul(b, c, get(b, r))
        add(b, r, n)
        add(b, s, p.sin(b, n))
        return [n]

    body = program([p.R, p.R, p.F], step)

    def whole(b: Builder, x: Atom) -> list[Atom]:
        r, s = b(NewRef(), x), b(NewRef(), x)
        return list(b.emit(Scan(body, 3, False, 2, 1), [r, s, x]))

    jaxpr = program([p.F], whole)
    made = reduced(jaxpr)
    assert count(made, AddUpdate) == 1
    assert count(made, NewRef) == 1
    assert count(made, prims.Sin) == 0
    np.testing.assert_array_equal(run(made, values(jaxpr))[0], run(jaxpr, values(jaxpr))[0])


def test_dce_keeps_carries_of_a_while_condition() -> None:
    test = program([p.N, p.F, p.F], lambda b, n, x, y: [b(prims.Lt(), x, number(1.0, p.F))])

    def step(b: Builder, n: Atom, x: Atom, y: Atom) -> list[Atom]:
        return [b(prims.Add(), n, lit(1, p.N)), p.plus(b, x, number(0.5, p.F)), p.mul(b, y, y)]

    loop = While(test, program([p.N, p.F, p.F], step), 0)
    jaxpr = program([p.N, p.F, p.F], lambda b, *args: b.emit(loop, args))
    made = dce(jaxpr, (True, False, False)).unwrap()
    assert made.used_ins == (True, True, False)
    (eqn,) = made.jaxpr.eqns
    assert len(eqn.outs) == 2
    assert not dce(jaxpr, (False,) * 3).unwrap().jaxpr.eqns


def test_dce_keeps_inputs_of_any_branch() -> None:
    types = [p.F, p.F, p.F]
    one = program(types, lambda b, x, y, z: [p.sin(b, x), z])
    two = program(types, lambda b, x, y, z: [p.sin(b, y), z])
    jaxpr = program([p.N, *types], lambda b, *args: b.emit(Cond((one, two)), args))
    made = dce(jaxpr, (True, False)).unwrap()
    check(made.jaxpr).unwrap()
    assert made.used_ins == (True, True, True, False)


def test_dce_removes_writes_of_calls_to_dead_references() -> None:
    def inner(b: Builder, r: Atom, x: Atom) -> list[Atom]:
        swap(b, r, p.sin(b, x), Pick(0))
        return [p.mul(b, x, x)]

    call = program([p.R3, p.F], inner)

    def body(b: Builder, xs: Atom, x: Atom) -> list[Atom]:
        r = b(NewRef(), xs)
        return list(b.emit(Jit(call), [r, x]))

    made = reduced(program([p.F3, p.F], body))
    assert count(made, Swap, NewRef, prims.Sin) == 0


def test_a_missing_mask_entry_is_an_error() -> None:
    assert isinstance(dce(p.straight(), (True,)).failure(), TransformError)


def test_dce_is_linear_in_depth() -> None:
    jaxpr = p.nested_loops(24)
    assert len(primitives(dce(p.nested_loops(4), (False,)).unwrap().jaxpr)) == 0
    assert reduced(jaxpr) == jaxpr
