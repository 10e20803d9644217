from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from returns.result import Failure

from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.errors import NotApplicable, TransformError
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.prims import AddUpdate, FreeRef, Jit, NewRef, Scan, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, is_inexact
from effax.transforms.framework.rules import NO_RULES
from effax.transforms.jvp import Jvp, jvp
from tests.unit import building as p
from tests.unit.building import add, count, get, number, program, run, swap, values

PROGRAMS = sorted(p.PROGRAMS)


def differentiable(jaxpr: Jaxpr) -> tuple[bool, ...]:
    return tuple(map(is_inexact, jaxpr.in_types))


def directions(jaxpr: Jaxpr, mask: Sequence[bool]) -> list[Value]:
    rng = np.random.default_rng(7)
    return [
        np.asarray(rng.uniform(-1, 1, t.shape), t.dtype)
        for t, has in zip(jaxpr.in_types, mask, strict=True)
        if has
    ]


def state(jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    outs, cells = run(jaxpr, args)
    return [*outs, *cells]


def differences(
    jaxpr: Jaxpr, mask: Sequence[bool], args: list[Value], ts: list[Value]
) -> list[Value]:
    """Central differences of the results, then of the final contents of every reference."""
    step = 1e-6
    feed = iter(ts)
    moves = [next(feed) if has else None for has in mask]

    def at(h: float) -> list[Value]:
        return state(
            jaxpr,
            [x if t is None else np.asarray(x + h * t) for x, t in zip(args, moves, strict=True)],
        )

    return [
        (above - below) / (2 * step) if above.dtype.kind == "f" else above
        for above, below in zip(at(step), at(-step), strict=True)
    ]


def pushed(made: Jvp, jaxpr: Jaxpr, args: list[Value], ts: list[Value]) -> list[Value]:
    """Tangents of results (zeros where there is none), then of every reference."""
    n_outs = len(made.out_tangents)
    outs, cells = run(made.jaxpr, [*args, *ts])
    feed = iter(outs[n_outs:])
    results = [
        next(feed) if has else (np.zeros_like(y) if y.dtype.kind == "f" else y)
        for y, has in zip(outs[:n_outs], made.out_tangents, strict=True)
    ]
    n_refs = sum(isinstance(t, RefType) for t in jaxpr.in_types)
    return [*results, *cells[n_refs:]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_agree_with_finite_differences(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    mask = differentiable(jaxpr)
    args, ts = values(jaxpr), directions(jaxpr, mask)
    made = jvp(jaxpr, mask).unwrap()
    check(made.jaxpr).unwrap()
    for ct_spec, have in zip(
        differences(jaxpr, mask, args, ts), pushed(made, jaxpr, args, ts), strict=True
    ):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", PROGRAMS)
def test_primal_results_and_contents_are_unchanged(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    mask = differentiable(jaxpr)
    args = values(jaxpr)
    outs, cells = run(jaxpr, args)
    all_outs, all_cells = run(jvp(jaxpr, mask).unwrap().jaxpr, [*args, *directions(jaxpr, mask)])
    for ct_spec, have in zip([*outs, *cells], [*all_outs[: len(outs)], *all_cells], strict=False):
        np.testing.assert_array_equal(have, ct_spec)


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_are_linear(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    mask = differentiable(jaxpr)
    args, ts = values(jaxpr), directions(jaxpr, mask)
    made = jvp(jaxpr, mask).unwrap()
    once = pushed(made, jaxpr, args, ts)
    scaled = pushed(made, jaxpr, args, [np.asarray(-3 * t) for t in ts])
    for ct_spec, have in zip(once, scaled, strict=True):
        factor = -3 if ct_spec.dtype.kind == "f" else 1
        np.testing.assert_allclose(have, factor * ct_spec, rtol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_jvp_of_jvp_type_checks(name: str) -> None:
    first = jvp(p.PROGRAMS[name](), differentiable(p.PROGRAMS[name]())).unwrap().jaxpr
    second = jvp(first, differentiable(first)).unwrap().jaxpr
    check(second).unwrap()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_tangent_equals_a_zero_tangent(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    mask = differentiable(jaxpr)
    args, ts = values(jaxpr), directions(jaxpr, mask)
    last = len(mask) - 1
    keep = [
        has and (i == last or isinstance(t, RefType))
        for i, (t, has) in enumerate(zip(jaxpr.in_types, mask, strict=True))
    ]
    kept = [k for k, has in zip(keep, mask, strict=True) if has]
    full = [t if k else np.zeros_like(t) for t, k in zip(ts, kept, strict=True)]
    part = [t for t, k in zip(ts, kept, strict=True) if k]
    ct_spec = pushed(jvp(jaxpr, mask).unwrap(), jaxpr, args, full)
    have = pushed(jvp(jaxpr, keep).unwrap(), jaxpr, args, part)
    for a, c in zip(ct_spec, have, strict=True):
        np.testing.assert_allclose(c, a, rtol=1e-12)


def test_zeros_are_instantiated_only_for_carries_that_gain_tangents() -> None:
    def step(b: Builder, w: Atom, fixed: Atom, grows: Atom) -> list[Atom]:
        return [b(prims.Neg(), fixed), b(prims.Mul(), grows, w)]

    body = program([p.F3, p.F3, p.F3], step)
    jaxpr = program(
        [p.F3, p.F3, p.F3], lambda b, w, x, y: b.emit(Scan(body, 2, False, 1, 2), [w, x, y])
    )
    made = jvp(jaxpr, (True, False, False)).unwrap()
    (loop,) = [eqn.prim for eqn in made.jaxpr.eqns if isinstance(eqn.prim, Scan)]
    assert (loop.n_consts, loop.n_carry) == (2, 3)
    assert made.out_tangents == (False, True)
    assert len(made.jaxpr.eqns) == 2


def test_instantiate_returns_zeros_for_results_without_a_tangent() -> None:
    jaxpr = program([p.F3, p.F3], lambda b, x, y: [b(prims.Neg(), x), b(prims.Neg(), y)])
    assert jvp(jaxpr, (True, False)).unwrap().out_tangents == (True, False)
    made = jvp(jaxpr, (True, False), instantiate=True).unwrap()
    assert made.out_tangents == (True, True)
    x = np.arange(3.0)
    np.testing.assert_array_equal(evaluate(made.jaxpr, [x, x, x])[3], np.zeros(3))


def test_a_zero_tangent_written_to_a_reference_is_one_write() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        add(b, r, y)
        return [get(b, r)]

    made = jvp(program([p.F, p.F], body), (True, False)).unwrap()
    assert count(made.jaxpr, AddUpdate) == 1


def test_primal_and_tangent_references_are_freed() -> None:
    def body(b: Builder, x: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        y = get(b, r)
        b.emit(FreeRef(), [r])
        return [y]

    assert count(jvp(program([p.F], body), (True,)).unwrap().jaxpr, FreeRef) == 2


def test_the_condition_of_a_while_gets_no_tangent_code_it_does_not_need() -> None:
    test = program([p.F, p.N], lambda b, x, n: [b(prims.Lt(), n, lit(3, p.N))])
    step = program([p.F, p.N], lambda b, x, n: [p.sin(b, x), b(prims.Add(), n, lit(1, p.N))])
    jaxpr = program([p.F], lambda b, x: b.emit(While(test, step, 0), [x, lit(0, p.N)])[:1])
    (loop,) = [eqn.prim for eqn in jvp(jaxpr, (True,)).unwrap().jaxpr.eqns]
    assert isinstance(loop, While)
    assert [eqn.prim for eqn in loop.cond.eqns] == [prims.Lt()]


def test_a_differentiated_value_needs_a_differentiated_reference() -> None:
    jaxpr = program([p.R, p.F], lambda b, r, x: [swap(b, r, x)])
    result = jvp(jaxpr.replace(names=("x_ref", "x")), (False, True))
    assert isinstance(result, Failure)
    assert "x_ref" in str(result.failure())
    assert "stop_gradient" in str(result.failure())


def test_an_integer_has_no_tangent() -> None:
    jaxpr = program([p.N], lambda b, n: [n])
    assert "argument 0" in str(jvp(jaxpr, (True,)).failure())


def test_a_missing_mask_entry_is_an_error() -> None:
    jaxpr = p.straight()
    assert isinstance(jvp(jaxpr, (True,)).failure(), TransformError)
    assert "expected" in str(jvp(jaxpr, (True,)).failure())


def test_a_missing_rule_names_the_equation() -> None:
    failure = jvp(program([p.F], lambda b, x: [p.sin(b, x)]), (True,), rules=NO_RULES).failure()
    assert isinstance(failure, NotApplicable)
    assert failure.equation is not None
    assert "sin" in failure.equation


def equations(jaxpr: Jaxpr, seen: set[int]) -> int:
    """Return the number of equations in all subjaxprs, each counted once."""
    if id(jaxpr) in seen:
        return 0
    seen.add(id(jaxpr))
    nested = sum(equations(inner, seen) for eqn in jaxpr.eqns for inner in eqn.prim.subjaxprs())
    return len(jaxpr.eqns) + nested


def test_size_grows_linearly_with_depth() -> None:
    sizes = [
        equations(jvp(p.nested_loops(depth), (True, True)).unwrap().jaxpr, set())
        for depth in (3, 6, 12)
    ]
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 4


def test_deeply_nested_calls() -> None:
    jaxpr = program([p.F], lambda b, x: [p.sin(b, x)])
    for _ in range(100):
        inner = jaxpr
        jaxpr = program([p.F], lambda b, x, inner=inner: b.emit(Jit(inner), [x]))
    assert jvp(jaxpr, (True,)).unwrap().out_tangents == (True,)


def test_literals_have_no_tangent() -> None:
    jaxpr = program([p.F], lambda b, x: [number(2.0, p.F), x])
    made = jvp(jaxpr, (True,)).unwrap()
    assert made.out_tangents == (False, True)
    assert made.jaxpr.outs[0] == jaxpr.outs[0]
