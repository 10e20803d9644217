from __future__ import annotations

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder
from effax.ir.prims import Cond, Jit, NewRef, Scan
from effax.ir.source import SavedSource
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.types import array_type
from effax.transforms.optimize.inline import inline
from tests.unit import building as p
from tests.unit.building import add, count, get, number, primitives, program, run, values

PROGRAMS = sorted(p.PROGRAMS)


def inlined(jaxpr: Jaxpr) -> Jaxpr:
    made = inline(jaxpr).unwrap()
    check(made).unwrap()
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_inline_removes_all_calls(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    made = inlined(jaxpr)
    assert count(made, Jit) == 0
    args = values(jaxpr)
    for a, b in zip(run(jaxpr, args), run(made, args), strict=True):
        for ct_spec, have in zip(a, b, strict=True):
            np.testing.assert_array_equal(ct_spec, have)
    assert inlined(made) == made
    assert made.effects == jaxpr.effects


def test_without_calls_the_program_is_the_same_object() -> None:
    jaxpr = p.scans()
    assert inlined(jaxpr) is jaxpr


def test_a_call_that_is_made_twice_is_named_apart() -> None:
    inner = program([p.F, p.F], lambda b, x, y: [p.sin(b, p.mul(b, x, y)), x])

    def body(b: Builder, x: Atom) -> list[Atom]:
        s, _ = b.emit(Jit(inner), [x, number(2.0, p.F)])
        t, u = b.emit(Jit(inner), [s, x])
        return [t, u, s]

    made = inlined(program([p.F], body))
    assert primitives(made) == [prims.Mul(), prims.Sin(), prims.Mul(), prims.Sin()]
    assert [v.id for eqn in made.eqns for v in eqn.outs] == [1, 2, 3, 4]


def test_programs_in_loops_and_branches_are_inlined_too() -> None:
    inner = program([p.F], lambda b, x: [p.sin(b, x)])
    branch = program([p.F], lambda b, x: b.emit(Jit(inner), [x]))
    cond = Cond((branch, branch))
    body = program([p.N, p.F], lambda b, i, c: b.emit(cond, [i, c]))
    jaxpr = program([p.N, p.F], lambda b, i, x: b.emit(Scan(body, 2, False, 1, 1), [i, x]))
    made = inlined(jaxpr)
    assert (count(made, Jit), count(made, prims.Sin)) == (0, 2)


def test_a_predicate_chooses_calls() -> None:
    inner = program([p.F], lambda b, x: [p.sin(b, x)])
    jaxpr = program(
        [p.F], lambda b, x: b.emit(Jit(inner, "b"), [b(prims.Neg(), *b.emit(Jit(inner, "a"), [x]))])
    )

    def which(eqn: Eqn) -> bool:
        return isinstance(eqn.prim, Jit) and eqn.prim.label == "a"

    made = inline(jaxpr, which).unwrap()
    assert [getattr(prim, "label", prim.name) for prim in primitives(made)] == [
        "sin",
        "neg",
        "b",
        "sin",
    ]


def test_a_reference_of_a_call_is_made_by_its_caller() -> None:
    def local(b: Builder, x: Atom) -> list[Atom]:
        r = b(NewRef(), x)
        add(b, r, x)
        return [get(b, r)]

    jaxpr = program([p.F], lambda b, x: b.emit(Jit(program([p.F], local)), [x]))
    made = inlined(jaxpr)
    assert count(made, NewRef) == 1
    assert not made.effects


def test_weak_types_change_where_the_call_changed_them() -> None:
    weak, strong = array_type((), "float64", weak=True), array_type((), "float64")
    inner = program([weak], lambda b, x: [p.sin(b, x)])
    outer = program([strong], lambda b, x: b.emit(Jit(inner), [x]))
    assert inlined(outer).out_types == outer.out_types
    on_literal = program([], lambda b: b.emit(Jit(inner), [number(1.0, strong)]))
    assert inlined(on_literal).out_types == (weak,)
    forward = program([strong], lambda b, x: b.emit(Jit(program([weak], lambda b, x: [x])), [x]))
    assert inlined(forward).out_types == (weak,)


def test_equations_keep_where_they_came_from() -> None:
    inner = program([p.F], lambda b, x: [p.sin(b, x)])
    where = SavedSource("file.py", 3, "f")
    marked = inner.replace(eqns=[eqn._replace(source=where) for eqn in inner.eqns])
    made = inlined(program([p.F], lambda b, x: b.emit(Jit(marked), [x])))
    assert [eqn.source for eqn in made.eqns] == [where]


@pytest.mark.slow
def test_calls_may_nest_deeper_than_pythons_stack() -> None:
    jaxpr = program([p.F], lambda b, x: [p.sin(b, x)])
    for _ in range(5000):
        nested = jaxpr
        jaxpr = program([p.F], lambda b, x, nested=nested: b.emit(Jit(nested), [p.mul(b, x, x)]))
    made = inline(jaxpr).unwrap()
    assert len(made.eqns) == 5001
