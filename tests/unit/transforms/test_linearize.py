from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.errors import NotApplicable
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.prims import AddUpdate, Get, Jit, Scan, Swap, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type
from effax.transforms.framework.rules import (
    Indivisible,
    JvpOut,
    RuleBuilder,
    Rules,
    Unsupported,
)
from effax.transforms.jvp import jvp
from effax.transforms.linearize import Linearized, linearize
from effax.transforms.partial_eval.partial_eval import FromInput
from effax.transforms.rules.default import DEFAULT_RULES
from tests.unit import building as p
from tests.unit.building import add, count, get, number, primitives, program, run, values
from tests.unit.transforms.partial_eval.test_partial_eval import Log
from tests.unit.transforms.test_jvp import differentiable, directions, equations

PROGRAMS = sorted(p.PROGRAMS)


def linear(jaxpr: Jaxpr, *mask: bool) -> Linearized:
    made = linearize(jaxpr, mask or differentiable(jaxpr)).unwrap()
    check(made.primal).unwrap()
    check(made.linear).unwrap()
    return made


def apply(
    made: Linearized, jaxpr: Jaxpr, args: Sequence[Value], ts: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Results and contents from the primal program; tangents of both from the linear one."""
    inputs = [np.array(x) for x in args]
    outs = evaluate(made.primal, inputs)
    residuals = [r.pick(inputs, outs) for r in made.residuals]
    moves = [np.array(t) for t in ts]
    dots = evaluate(made.linear, [*residuals, *moves])
    refs = [isinstance(t, RefType) for t in jaxpr.in_types]
    cells = [x for x, is_ref in zip(inputs, refs, strict=True) if is_ref]
    marked = [is_ref for is_ref, has in zip(refs, made.in_tangents, strict=True) if has]
    dot_cells = [t for t, is_ref in zip(moves, marked, strict=True) if is_ref]
    return [*outs[: len(jaxpr.outs)], *cells], [*dots, *dot_cells]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_tangents_are_those_of_jvp(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    mask = differentiable(jaxpr)
    args, ts = values(jaxpr), directions(jaxpr, mask)
    made = linear(jaxpr)
    pushed = jvp(jaxpr, mask).unwrap()
    assert made.out_tangents == pushed.out_tangents
    outs, cells = run(pushed.jaxpr, [*args, *ts])
    n, n_refs = len(jaxpr.outs), sum(isinstance(t, RefType) for t in jaxpr.in_types)
    primal, tangent = apply(made, jaxpr, args, ts)
    for ct_spec, have in zip([*outs[:n], *cells[:n_refs]], primal, strict=True):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-12)
    for ct_spec, have in zip([*outs[n:], *cells[n_refs:]], tangent, strict=True):
        np.testing.assert_allclose(have, ct_spec, rtol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_linear_program_touches_no_primal_reference(name: str) -> None:
    made = linear(p.PROGRAMS[name]())
    n = len(made.residuals)
    assert all(i >= n for i in made.linear.effects.refs)
    assert made.primal.effects == p.PROGRAMS[name]().effects


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_linear_program_can_be_linearized(name: str) -> None:
    made = linear(p.PROGRAMS[name]())
    if count(made.linear, While) == 0:
        n = len(made.residuals)
        again = linearize(made.linear, [i >= n for i in range(len(made.linear.binders))])
        check(again.unwrap().linear).unwrap()


def test_the_linear_program_has_only_tangent_equations() -> None:
    jaxpr = p.elementwise_chain(400)
    made = linear(jaxpr)
    assert set(primitives(made.linear)) <= {prims.Mul(), prims.Add()}
    assert len(made.linear.eqns) <= 1.5 * 400
    assert count(made.primal, prims.Sin, prims.Exp, prims.Cos) == 300


def test_equations_that_need_no_derivative_appear_in_the_primal_program_only() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        heavy = p.sin(b, p.sin(b, p.mul(b, y, y)))
        return [p.mul(b, x, heavy), heavy]

    made = linear(program([p.F, p.F], body), True, False)
    assert primitives(made.linear) == [prims.Mul()]
    assert made.out_tangents == (True, False)
    assert len(made.residuals) == 1


def test_an_input_that_is_needed_is_not_returned() -> None:
    made = linear(program([p.F, p.F], lambda b, x, y: [p.mul(b, x, y)]))
    assert set(made.residuals) == {FromInput(0), FromInput(1)}
    assert len(made.primal.outs) == 1
    assert made.linear.n_consts == 2


def test_a_tangent_that_is_asked_for_comes_from_the_linear_program() -> None:
    jaxpr = program([p.F3, p.F3], lambda b, x, y: [p.sin(b, y), p.sin(b, x)])
    made = linearize(jaxpr, (True, False), instantiate=True).unwrap()
    assert made.out_tangents == (True, True)
    assert [len(made.primal.outs), len(made.linear.outs)] == [3, 2]
    _, (first, _) = apply(made, jaxpr, values(jaxpr), directions(jaxpr, (True, False)))
    np.testing.assert_array_equal(first, np.zeros(3))


def test_a_scan_keeps_one_residual_an_iteration_and_constants_once() -> None:
    def step(b: Builder, w: Atom, c: Atom, x: Atom) -> list[Atom]:
        return [p.sin(b, p.mul(b, w, p.mul(b, c, x)))]

    body = program([p.F, p.F, p.F], step)
    jaxpr = program([p.F, p.F, p.f(5)], lambda b, *xs: b.emit(Scan(body, 5, False, 1, 1), xs))
    made = linear(jaxpr, False, True, False)
    (loop,) = (eqn for eqn in made.linear.eqns)
    assert isinstance(loop.prim, Scan)
    assert set(primitives(loop.prim.jaxpr)) == {prims.Mul()}
    assert {FromInput(0), FromInput(2)} <= set(made.residuals)
    assert len(made.residuals) == 3


def test_a_scan_drops_what_no_tangent_needs() -> None:
    def step(b: Builder, c: Atom, x: Atom) -> list[Atom]:
        return [p.plus(b, c, x), p.sin(b, c)]

    body = program([p.F, p.F], step)
    jaxpr = program([p.F, p.F3], lambda b, *xs: b.emit(Scan(body, 3, False, 0, 1), xs)[:1])
    made = linear(jaxpr)
    assert made.residuals == ()
    assert count(made.primal, prims.Cos, prims.Sin) == 0


def test_a_while_over_a_reference_writes_once_and_its_tangent_is_right() -> None:
    def test(b: Builder, r: Atom, n: Atom, x: Atom) -> list[Atom]:
        return [b(prims.Lt(), n, lit(3, p.N))]

    def step(b: Builder, r: Atom, n: Atom, x: Atom) -> list[Atom]:
        y = p.mul(b, x, get(b, r))
        add(b, r, number(1.0, p.F))
        return [b(prims.Add(), n, lit(1, p.N)), y]

    types: list[Type] = [p.R, p.N, p.F]
    loop = While(program(types, test), program(types, step), 1)
    jaxpr = program([p.R, p.F], lambda b, r, x: b.emit(loop, [r, lit(0, p.N), x])[1:])
    made = linear(jaxpr, False, True)
    (y, cell), (dot,) = apply(made, jaxpr, [np.asarray(2.0), np.asarray(5.0)], [np.asarray(1.0)])
    assert (float(y), float(cell), float(dot)) == (5.0 * 2 * 3 * 4, 5.0, 24.0)


def test_effects_on_tangents_are_linear_ones() -> None:
    jaxpr = p.outer_ref()
    made = linear(jaxpr)
    assert count(made.primal, Swap, AddUpdate, Get) == count(jaxpr, Swap, AddUpdate, Get)
    assert count(made.linear, Swap, AddUpdate) >= 1


def test_primal_values_that_depend_on_tangents_are_an_error() -> None:
    none = Unsupported("it is for tests")

    def log_jvp(
        b: RuleBuilder, prim: Log, primals: Sequence[Atom], tangents: Sequence[Atom | None]
    ) -> JvpOut:
        return JvpOut(b.emit(prim, primals), tangents)

    rules = DEFAULT_RULES.extend(Log, Rules(log_jvp, none, none, Indivisible(), none))
    test = program([p.N, p.F], lambda b, n, x: [b(prims.Lt(), n, lit(3, p.N))])

    def step(b: Builder, n: Atom, x: Atom) -> list[Atom]:
        return [b(prims.Add(), n, lit(1, p.N)), b(Log("a"), p.sin(b, x))]

    loop = While(test, program([p.N, p.F], step), 0)
    jaxpr = program([p.F], lambda b, x: b.emit(loop, [lit(0, p.N), x])[1:])
    failure = linearize(jaxpr, (True,), rules=rules).failure()
    assert isinstance(failure, NotApplicable)
    assert "jvp" in str(failure)


def test_size_grows_linearly_with_depth() -> None:
    def size(depth: int) -> int:
        made = linear(p.nested_loops(depth))
        return equations(made.primal, set()) + equations(made.linear, set())

    sizes = [size(depth) for depth in (3, 6, 12)]
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 8


def test_nested_linearization_grows_as_its_result() -> None:
    jaxpr = program([p.F], lambda b, x: [p.sin(b, p.mul(b, x, p.sin(b, x)))])
    sizes = []
    for _ in range(4):
        made = linear(jaxpr)
        sizes.append(len(made.primal.eqns) + len(made.linear.eqns))
        jaxpr = jvp(jaxpr, differentiable(jaxpr)).unwrap().jaxpr
        jaxpr = jaxpr.replace(outs=jaxpr.outs[-1:])
    assert sizes[-1] <= sizes[0] * 4**3


def calls(depth: int) -> Jaxpr:
    jaxpr = program([p.F], lambda b, x: [p.sin(b, x)])
    for _ in range(depth):
        inner = jaxpr
        jaxpr = program([p.F], lambda b, x, inner=inner: b.emit(Jit(inner), [x]))
    return jaxpr


def test_deeply_nested_calls() -> None:
    assert linearize(calls(100), (True,)).unwrap().out_tangents == (True,)
