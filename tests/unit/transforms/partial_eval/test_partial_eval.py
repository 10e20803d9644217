from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from effax.effects import Io, Row
from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.errors import TransformError
from effax.ir.indexing import Pick
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import AddUpdate, BroadcastInDim, Cond, Get, Jit, NewRef, Scan, Swap, While
from effax.ir.source import SavedSource
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.types import Type
from effax.transforms.framework.rules import (
    Indivisible,
    Rules,
    RuleSet,
    Unsupported,
)
from effax.transforms.jvp import jvp
from effax.transforms.partial_eval.partial_eval import (
    FromInput,
    FromOutput,
    PartialEval,
    partial_eval,
    recompose,
)
from effax.transforms.rules.default import DEFAULT_RULES
from tests.unit import building as p
from tests.unit.building import add, count, get, number, primitives, program, run, swap, values
from tests.unit.transforms.test_jvp import differentiable, equations

PROGRAMS = sorted(p.PROGRAMS)


def split(jaxpr: Jaxpr, *known: bool, **options: object) -> PartialEval:
    pe = partial_eval(jaxpr, known, **options).unwrap()  # type: ignore[arg-type]  # keywords of it
    check(pe.known).unwrap()
    check(pe.unknown).unwrap()
    return pe


def same(jaxpr: Jaxpr, pe: PartialEval) -> None:
    """Check that the known, then the unknown jaxpr equal the program, and types and masks."""
    whole = recompose(pe)
    check(whole).unwrap()
    assert whole.in_types == jaxpr.in_types
    assert whole.effects == jaxpr.effects or set(whole.effects) <= set(jaxpr.effects)
    args = values(jaxpr)
    for a, b in zip(run(jaxpr, args), run(whole, args), strict=True):
        for ct_spec, have in zip(a, b, strict=True):
            np.testing.assert_allclose(have, ct_spec, rtol=1e-12)


def masks(n: int) -> list[tuple[bool, ...]]:
    return list(product([True, False], repeat=n))[:64]


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_and_unknown_recompose(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    for known in masks(len(jaxpr.binders)):
        same(jaxpr, split(jaxpr, *known))


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_and_unknown_of_a_derivative_recompose(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    pushed = jvp(jaxpr, differentiable(jaxpr)).unwrap().jaxpr
    n = len(jaxpr.binders)
    pe = split(pushed, *[i < n for i in range(len(pushed.binders))])
    same(pushed, pe)
    assert all(pe.known_outs[: len(jaxpr.outs)])
    for known in masks(len(pushed.binders))[::5]:
        same(pushed, split(pushed, *known))


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_and_unknown_recompose_under_every_policy(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    for known in masks(len(jaxpr.binders)):
        same(jaxpr, split(jaxpr, *known, policy=lambda eqn: False))
        same(jaxpr, split(jaxpr, *known, policy=lambda eqn: isinstance(eqn.prim, prims.Mul | Jit)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_instantiated_results_come_from_the_unknown_jaxpr(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    for known in masks(len(jaxpr.binders)):
        pe = split(jaxpr, *known, instantiate=True)
        assert not any(pe.known_outs)
        same(jaxpr, pe)


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_known_leaves_an_empty_unknown_jaxpr(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    pe = split(jaxpr, *[True] * len(jaxpr.binders))
    assert all(pe.known_outs)
    assert (len(pe.unknown.eqns), pe.residuals) == (0, ())
    assert pe.known == jaxpr


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_known_leaves_only_constants_known(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    pe = split(jaxpr, *[False] * len(jaxpr.binders))
    assert not pe.known.effects
    assert not [r for r in pe.residuals if isinstance(r, FromInput)]
    assert len(primitives(pe.known)) + len(primitives(pe.unknown)) >= len(primitives(jaxpr))
    same(jaxpr, pe)


def test_residuals_are_forwarded_and_returned_once() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        c, d = p.sin(b, x), p.mul(b, x, x)
        return [c, p.mul(b, y, c), p.mul(b, y, x), p.mul(b, y, d), p.mul(b, c, y)]

    pe = split(program([p.F, p.F], body), True, False)
    assert pe.known_outs == (True, False, False, False, False)
    assert pe.residuals == (FromOutput(0), FromInput(0), FromOutput(1))
    assert len(pe.known.outs) == 2
    assert pe.unknown.n_consts == 3


def test_literals_and_inputs_among_the_results() -> None:
    jaxpr = program([p.F, p.F], lambda b, x, y: [x, y, number(1.0, p.F)])
    pe = split(jaxpr, True, False)
    assert pe.known_outs == (True, False, True)
    assert (len(pe.known.eqns), len(pe.unknown.eqns)) == (0, 0)
    late = split(jaxpr, True, False, instantiate=(True, False, True))
    assert late.residuals == (FromInput(0),)


def test_names_and_constants_are_divided() -> None:
    jaxpr = program([p.F, p.F, p.F], lambda b, x, y, z: [p.mul(b, p.sin(b, x), p.mul(b, y, z))])
    jaxpr = jaxpr.replace(n_consts=2, names=("x", "y", "z"))
    pe = split(jaxpr, True, False, True)
    assert (pe.known.names, pe.known.n_consts) == (("x", "z"), 1)
    assert pe.unknown.n_consts == len(pe.residuals) + 1
    assert pe.unknown.name_of(len(pe.residuals)) == "y"
    whole = recompose(pe)
    assert (whole.names, whole.n_consts) == (jaxpr.names, jaxpr.n_consts)


def test_an_array_of_a_constant_is_no_residual() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        zeros = b(BroadcastInDim((3,), ()), number(0.0, p.F))
        return [p.mul(b, p.plus(b, x, zeros), y), p.plus(b, y, zeros)]

    pe = split(program([p.F3, p.F3], body), True, False)
    assert len(pe.residuals) == 1
    assert count(pe.unknown, BroadcastInDim) == 1


def test_a_policy_selects_what_is_recomputed() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        a = p.mul(b, x, x)
        c = p.sin(b, a)
        d = p.sin(b, c)
        return [p.mul(b, d, y)]

    jaxpr = program([p.F, p.F], body)
    nothing = split(jaxpr, True, False, policy=lambda eqn: False)
    assert nothing.residuals == (FromInput(0),)
    assert len(nothing.unknown.eqns) == 4
    products = split(jaxpr, True, False, policy=lambda eqn: eqn.prim == prims.Mul())
    assert products.residuals == (FromOutput(0),)
    assert count(products.unknown, prims.Sin) == 2
    assert count(split(jaxpr, True, False).unknown, prims.Sin) == 0


def test_a_policy_reaches_into_calls_and_loops() -> None:
    inner = program([p.F, p.F], lambda b, x, y: [p.mul(b, p.sin(b, p.sin(b, x)), y), p.sin(b, x)])
    called = program([p.F, p.F], lambda b, x, y: b.emit(Jit(inner), [x, y]))
    pe = split(called, True, False, policy=lambda eqn: False)
    assert pe.residuals == (FromInput(0),)
    assert count(pe.unknown, prims.Sin) == 2
    looped = program(
        [p.F, p.F, p.F3],
        lambda b, x, y, xs: b.emit(
            Scan(
                program(
                    [p.F, p.F, p.F],
                    lambda b, x, c, z: [p.mul(b, c, p.sin(b, p.mul(b, x, z))), z],
                ),
                3,
                False,
                1,
                1,
            ),
            [x, y, xs],
        ),
    )
    pe = split(looped, True, False, True, policy=lambda eqn: False)
    assert set(pe.residuals) == {FromInput(0), FromInput(2)}
    pe = split(looped, True, False, True, policy=lambda eqn: eqn.prim == prims.Mul())
    assert [r for r in pe.residuals if isinstance(r, FromOutput)]
    assert count(pe.unknown, prims.Sin) == 1


def test_reads_after_an_unknown_write_are_unknown() -> None:
    def body(b: Builder, r: Atom, y: Atom) -> list[Atom]:
        before = p.sin(b, get(b, r))
        swap(b, r, y)
        after = get(b, r)
        swap(b, r, number(1.0, p.F))
        return [before, after]

    pe = split(program([p.R, p.F], body), True, False)
    assert pe.known_outs == (True, False)
    assert (count(pe.known, Swap, Get), count(pe.unknown, Swap, Get)) == (1, 3)
    assert pe.residuals == (FromInput(0),)


def test_accumulations_commute_with_an_unknown_one() -> None:
    def body(b: Builder, r: Atom, x: Atom, y: Atom) -> list[Atom]:
        add(b, r, y)
        add(b, r, x)
        return [get(b, r)]

    pe = split(program([p.R, p.F, p.F], body), True, True, False)
    assert (count(pe.known, AddUpdate), count(pe.unknown, AddUpdate)) == (1, 1)


def test_reads_commute_with_an_unknown_read_and_writes_do_not() -> None:
    def body(b: Builder, r: Atom, n: Atom) -> list[Atom]:
        x = get(b, r, Pick(None), at=[n])
        y = get(b, r, Pick(0))
        swap(b, r, number(1.0, p.F), Pick(0))
        return [x, y, get(b, r, Pick(1))]

    pe = split(program([p.R3, p.N], body), True, False)
    assert pe.known_outs == (False, True, False)
    assert (count(pe.known, Swap), count(pe.unknown, Swap)) == (0, 1)


def test_a_local_reference_is_known_as_a_whole_or_not_at_all() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        s = b(NewRef(), x)
        first = get(b, r)
        add(b, s, first)
        add(b, r, y)
        return [first, get(b, s)]

    pe = split(program([p.F, p.F], body), True, False)
    assert count(pe.known, NewRef, Get, AddUpdate) == 0
    assert pe.known_outs == (False, False)
    pe = split(program([p.F, p.F], body), True, True)
    assert count(pe.unknown, NewRef) == 0


def test_a_local_reference_of_an_unknown_call_is_unknown() -> None:
    def late(b: Builder, r: Atom, y: Atom) -> list[Atom]:
        z = p.mul(b, get(b, r), y)
        add(b, r, y)
        return [z]

    inner = program([p.R, p.F], late)

    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        (z,) = b.emit(Jit(inner), [r, y])
        return [z, get(b, r)]

    jaxpr = program([p.F, p.F], body)
    pe = split(jaxpr, True, False)
    assert count(pe.known, NewRef) == 0
    same(jaxpr, pe)


@dataclass(frozen=True, slots=True)
class Log(Primitive):
    """Appends its operand to a list, in the test."""

    channel: str
    name: ClassVar[str] = "log"
    lines: ClassVar[list[tuple[str, float]]] = []

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins, Row([Io(self.channel)]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        self.lines.append((self.channel, float(ins[0])))
        return ins


def logging_book() -> RuleSet:
    none = Unsupported("it is for tests")
    return DEFAULT_RULES.extend(Log, Rules(none, none, none, Indivisible(), none))


def logged(jaxpr: Jaxpr, args: Sequence[Value]) -> list[tuple[str, float]]:
    Log.lines.clear()
    run(jaxpr, args)
    return list(Log.lines)


def test_host_effects_keep_their_order_on_each_channel() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        b(Log("a"), x)
        b(Log("a"), y)
        b(Log("b"), x)
        b(Log("a"), p.sin(b, x))
        return []

    jaxpr = program([p.F, p.F], body)
    pe = split(jaxpr, True, False, rules=logging_book())
    assert [eqn.prim for eqn in pe.known.eqns if isinstance(eqn.prim, Log)] == [Log("a"), Log("b")]
    args = values(jaxpr)
    for channel in "ab":
        ct_spec = [line for line in logged(jaxpr, args) if line[0] == channel]
        assert [line for line in logged(recompose(pe), args) if line[0] == channel] == ct_spec


def test_a_scan_with_io_in_both_jaxprs_is_not_split() -> None:
    def step(b: Builder, w: Atom, c: Atom, x: Atom) -> list[Atom]:
        b(Log("a"), x)
        b(Log("a"), c)
        return [p.mul(b, c, w)]

    body = program([p.F, p.F, p.F], step)
    jaxpr = program([p.F, p.F, p.F3], lambda b, *xs: b.emit(Scan(body, 3, False, 1, 1), xs))
    pe = split(jaxpr, True, False, True, rules=logging_book())
    assert not pe.known.eqns
    assert logged(recompose(pe), values(jaxpr)) == logged(jaxpr, values(jaxpr))


def test_forwarded_inputs_of_a_call_need_no_call() -> None:
    inner = program([p.F, p.F], lambda b, x, y: [x, p.mul(b, p.sin(b, x), y), number(2.0, p.F)])
    jaxpr = program([p.F, p.F], lambda b, x, y: b.emit(Jit(inner), [x, y]))
    pe = split(jaxpr, True, False)
    assert pe.known_outs == (True, False, True)
    assert pe.known.outs[0] == pe.known.binders[0]
    (early,) = pe.known.eqns
    assert len(early.outs) == 1


def test_a_call_with_nothing_known_inside_stays_whole() -> None:
    inner = program([p.F, p.F], lambda b, x, y: [p.mul(b, x, y)])
    jaxpr = program([p.F, p.F], lambda b, x, y: b.emit(Jit(inner), [x, y]))
    pe = split(jaxpr, True, False)
    assert not pe.known.eqns
    assert pe.unknown.eqns[0].prim == Jit(inner)


def scanned(step: Jaxpr, n_consts: int, n_carry: int, types: Sequence[Type]) -> Jaxpr:
    return program(types, lambda b, *xs: b.emit(Scan(step, 3, False, n_consts, n_carry), xs))


def test_a_scan_stacks_residuals_and_hoists_those_that_do_not_change() -> None:
    def step(b: Builder, w: Atom, k: Atom, u: Atom, x: Atom) -> list[Atom]:
        s = p.sin(b, w)
        e = p.sin(b, p.mul(b, k, x))
        return [p.plus(b, k, x), p.plus(b, p.mul(b, u, s), p.mul(b, u, e)), p.mul(b, x, u)]

    body = program([p.F] * 4, step)
    jaxpr = scanned(body, 1, 2, [p.F, p.F, p.F, p.F3])
    pe = split(jaxpr, True, True, False, True)
    same(jaxpr, pe)
    (once, loop) = (eqn for eqn in pe.known.eqns)
    assert once.prim == prims.Sin()
    assert isinstance(loop.prim, Scan)
    assert count(loop.prim.jaxpr, prims.Sin) == 1
    # The stacked product, `sin w` as it is, and `xs`, which is passed on.
    types = [t.shape for t in pe.unknown.in_types[: len(pe.residuals)]]
    assert sorted(types) == [(), (3,), (3,)]
    assert FromInput(3) in pe.residuals
    (late,) = pe.unknown.eqns
    assert isinstance(late.prim, Scan)
    assert (late.prim.n_consts, late.prim.n_carry, len(late.ins)) == (1, 1, 4)


def test_a_known_carry_is_stacked_when_it_is_needed() -> None:
    body = program([p.F, p.F], lambda b, k, u: [p.sin(b, k), p.mul(b, k, u)])
    jaxpr = scanned(body, 0, 2, [p.F, p.F])
    pe = split(jaxpr, True, False)
    same(jaxpr, pe)
    assert pe.known_outs == (True, False)
    assert [t.shape for t in pe.unknown.in_types] == [(3,), ()]


def test_a_stacked_result_serves_as_the_residual() -> None:
    def step(b: Builder, u: Atom, x: Atom) -> list[Atom]:
        s = p.sin(b, x)
        return [p.mul(b, u, s), s]

    jaxpr = scanned(program([p.F, p.F], step), 0, 1, [p.F, p.F3])
    pe = split(jaxpr, False, True)
    same(jaxpr, pe)
    assert pe.residuals == (FromOutput(0),)
    assert len(pe.known.outs) == 1


def test_references_in_a_scan_are_shared_only_where_iterations_commute() -> None:
    def accumulate(b: Builder, r: Atom, u: Atom, x: Atom) -> list[Atom]:
        add(b, r, x)
        add(b, r, u)
        return [p.sin(b, u)]

    def overwrite(b: Builder, r: Atom, u: Atom, x: Atom) -> list[Atom]:
        swap(b, r, x)
        return [p.mul(b, u, get(b, r))]

    types: list[Type] = [p.R, p.F, p.F3]
    jaxpr = scanned(program([p.R, p.F, p.F], accumulate), 1, 1, types)
    pe = split(jaxpr, True, False, True)
    same(jaxpr, pe)
    assert (count(pe.known, AddUpdate), count(pe.unknown, AddUpdate)) == (1, 1)
    jaxpr = scanned(program([p.R, p.F, p.F], overwrite), 1, 1, types)
    pe = split(jaxpr, True, False, True)
    same(jaxpr, pe)
    assert (count(pe.known, Get, Swap), count(pe.unknown, Get, Swap)) == (2, 0)


def test_branches_share_places_for_residuals_of_one_type() -> None:
    types = [p.F, p.F, p.F3]

    def one(b: Builder, x: Atom, u: Atom, xs: Atom) -> list[Atom]:
        return [p.mul(b, u, p.sin(b, x)), p.sin(b, x)]

    def two(b: Builder, x: Atom, u: Atom, xs: Atom) -> list[Atom]:
        e = b(prims.Exp(), x)
        return [p.mul(b, p.mul(b, u, e), p.mul(b, x, b(prims.Cos(), x))), e]

    cond = Cond((program(types, one), program(types, two)))
    jaxpr = program([p.N, *types], lambda b, *xs: b.emit(cond, xs))
    pe = split(jaxpr, True, True, False, True)
    for index in (0, 1):
        args = [np.asarray(index, np.int32), *values(jaxpr)[1:]]
        np.testing.assert_allclose(run(recompose(pe), args)[0][0], run(jaxpr, args)[0][0])
    (early,) = pe.known.eqns
    assert len(early.outs) <= 3
    assert count(pe.unknown, prims.Sin, prims.Cos, prims.Exp) == 0


def test_an_unknown_index_makes_everything_unknown() -> None:
    jaxpr = p.conds()
    pe = split(jaxpr, True, False, True, True)
    assert not any(pe.known_outs)


def test_a_while_runs_its_effects_once_and_recomputes_on_copies() -> None:
    def test(b: Builder, r: Atom, n: Atom, u: Atom) -> list[Atom]:
        return [b(prims.Lt(), n, lit(3, p.N))]

    def step(b: Builder, r: Atom, n: Atom, u: Atom) -> list[Atom]:
        x = get(b, r)
        add(b, r, number(1.0, p.F))
        return [b(prims.Add(), n, lit(1, p.N)), p.mul(b, u, x)]

    types: list[Type] = [p.R, p.N, p.F]
    loop = While(program(types, test), program(types, step), 1)
    jaxpr = program(types, lambda b, *xs: b.emit(loop, xs))
    pe = split(jaxpr, True, True, False)
    assert pe.known_outs == (True, False)
    same(jaxpr, pe)
    assert not pe.unknown.effects
    assert count(pe.known, While) == count(pe.unknown, While) == 1


def test_a_while_with_an_unknown_condition_is_unknown() -> None:
    loop = program(
        [p.F, p.F],
        lambda b, x, u: b.emit(
            While(
                program([p.F, p.F], lambda b, x, u: [b(prims.Lt(), u, number(1.0, p.F))]),
                program([p.F, p.F], lambda b, x, u: [x, p.plus(b, u, number(0.5, p.F))]),
                0,
            ),
            [x, u],
        ),
    )
    assert not any(split(loop, True, False).known_outs)
    same(loop, split(loop, True, False))


def test_a_chain_of_carries_is_followed_to_its_end() -> None:
    n = 12
    body = program([p.F] * n, lambda b, *cs: [*cs[1:], p.sin(b, cs[0])])
    jaxpr = scanned(body, 0, n, [p.F] * n)
    known = [True] * (n - 1) + [False]
    pe = split(jaxpr, *known)
    assert not any(pe.known_outs)
    same(jaxpr, pe)


def test_a_missing_mask_entry_is_an_error() -> None:
    assert isinstance(partial_eval(p.straight(), (True,)).failure(), TransformError)


def test_size_grows_linearly_with_depth() -> None:
    def size(depth: int) -> int:
        pushed = jvp(p.nested_loops(depth), (True, True)).unwrap().jaxpr
        pe = split(pushed, True, True, False, False)
        return equations(pe.known, set()) + equations(pe.unknown, set())

    sizes = [size(depth) for depth in (3, 6, 12)]
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 8


def test_deeply_nested_calls() -> None:
    jaxpr = program([p.F, p.F], lambda b, x, y: [p.sin(b, x), p.mul(b, x, y)])
    for _ in range(100):
        nested = jaxpr
        jaxpr = program([p.F, p.F], lambda b, x, y, nested=nested: b.emit(Jit(nested), [x, y]))
    assert partial_eval(jaxpr, (True, False)).unwrap().known_outs == (True, False)


def test_equations_keep_where_they_came_from() -> None:
    jaxpr = p.straight()
    where = SavedSource("file.py", 3, "f")
    marked = jaxpr.replace(eqns=[eqn._replace(source=where) for eqn in jaxpr.eqns])
    pe = split(marked, True, False, True)
    eqns: list[Eqn] = [*pe.known.eqns, *pe.unknown.eqns]
    assert {eqn.source for eqn in eqns} == {where}


def test_a_reference_that_a_call_does_not_use_stays_known() -> None:
    idle = program([p.R, p.F], lambda b, r, y: [p.mul(b, y, y)])
    scan = program([p.R, p.F], lambda b, r, c: [p.mul(b, c, c)])
    test = program([p.R, p.N, p.F], lambda b, r, n, y: [b(prims.Lt(), n, lit(2, p.N))])
    step = program(
        [p.R, p.N, p.F], lambda b, r, n, y: [b(prims.Add(), n, lit(1, p.N)), p.mul(b, y, y)]
    )

    def body(b: Builder, i: Atom, x: Atom, y: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        (u,) = b.emit(Jit(idle), [r, y])
        (v,) = b.emit(Cond((idle, idle)), [i, r, u])
        (w,) = b.emit(Scan(scan, 2, False, 1, 1), [r, v])
        _, z = b.emit(While(test, step, 1), [r, lit(0, p.N), w])
        return [get(b, r), z]

    jaxpr = program([p.N, p.F, p.F], body)
    pe = split(jaxpr, True, True, False)
    assert pe.known_outs == (True, False)
    same(jaxpr, pe)
