from __future__ import annotations

from effax.effects import VarId
from effax.ir.analysis.queries import (
    Definition,
    Use,
    def_use,
    effect_order,
    free_variables,
    liveness,
    size,
    walk,
)
from effax.ir.prims import Jit, Scan, Sin
from effax.ir.text.parser import parse
from tests.unit.building import F32, chain, nested, program, writer

P = parse("""
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = mul c c
        e:f32[] = neg b
      in (d, c) }
""")


def test_definitions_and_uses() -> None:
    found = def_use(P)
    c = P.eqns[0].outs[0]
    assert found.definition_of(P.binders[1]) == Definition(None, 1)
    assert found.definition_of(c) == Definition(0, 0)
    assert found.uses_of(c) == (Use(1, 0), Use(1, 1), Use(None, 1))
    assert found.uses_of(P.eqns[2].outs[0]) == ()


def test_liveness_at_each_equation() -> None:
    found = liveness(P)
    a, b = P.binders
    c, d = P.eqns[0].outs[0], P.eqns[1].outs[0]
    assert found.at(0) == (a, b)
    assert found.at(1) == (b, c)
    assert found.at(2) == (b, c, d)
    assert found.at(3) == (c, d)
    assert found.dies_at(a, 0) and not found.dies_at(c, 1)


def test_free_variables_are_the_inputs_of_a_stretch() -> None:
    assert free_variables(P.eqns) == P.binders
    assert free_variables(P.eqns[1:]) == (P.eqns[0].outs[0], P.binders[1])


def test_effects_are_runs_along_each_reference() -> None:
    jaxpr = parse("""
        { lambda ; a:Ref{f32[]} b:Ref{f32[]} c:f32[]. let
            d:f32[] <- a[...]
            e:f32[] <- a[...]
            a[...] += c
            b[...] += c
            a[...] += d
            f:f32[] <- a[...]
          in (d, e, f) }
    """)
    order = effect_order(jaxpr)
    assert order.runs == {0: ((0, 1), (2, 4), (5,)), 1: ((3,),)}
    assert order.dominates(0, 2) and order.dominates(0, 5) and order.dominates(2, 5)
    assert not order.dominates(0, 1) and not order.dominates(2, 4) and not order.dominates(3, 5)
    assert not order.dominates(5, 0)


def test_a_read_and_a_write_in_one_are_a_run_of_their_own() -> None:
    order = effect_order(writer())
    assert order.runs[VarId(0)] == ((0, 1), (2,), (3,), (4,), (5,))


def test_every_equation_is_walked_once_with_its_path() -> None:
    places = [*walk(nested())]
    assert [place.eqn.prim.name for place in places if not place.path] == [
        "jit",
        "jit",
        "cond",
        "scan",
        "while",
    ]
    found = {str(p): p.trip_count for p in places}
    assert len(found) == len(places) == 11
    assert found["4:while.body/0:mul"] is None and found["2:cond"] == 1
    assert found["4:while.cond/0:lt"] is None


def test_a_shared_subjaxpr_is_visited_wherever_it_occurs() -> None:
    inner = program([F32], lambda b, x: [b(Sin(), x)])
    middle = program([F32], lambda b, x: b.emit(Scan(inner, 3, False, 0, 1), [x]))
    jaxpr = program(
        [F32], lambda b, x: [*b.emit(Scan(middle, 5, False, 0, 1), [x]), *b.emit(Jit(inner), [x])]
    )
    assert [str(p) for p in walk(jaxpr) if p.eqn.prim == Sin()] == ["0:scan.body/0:scan.body/0:sin"]
    found = {str(p): p.trip_count for p in walk(jaxpr, every=True) if p.eqn.prim == Sin()}
    assert found == {"0:scan.body/0:scan.body/0:sin": 15, "1:jit.body/0:sin": 1}


def test_size_counts_each_occurrence_of_a_subjaxpr() -> None:
    jaxpr = chain(1)
    for _ in range(30):
        inner = jaxpr
        jaxpr = program(
            inner.in_types,
            lambda b, x, y: b.emit(Jit(inner), [*b.emit(Jit(inner), [x, y]), y]),  # noqa: B023
        )
    assert size(jaxpr) == 3 * 2**30 - 2
    assert len([*walk(jaxpr)]) == 61
