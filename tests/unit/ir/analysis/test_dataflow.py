"""The dataflow engine, on lattices of masks, sets and chains."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from effax.ir.analysis.dataflow import (
    Analysis,
    Solver,
    analyze,
    close_regions,
    fixpoint,
    positions_of,
    walk_facts,
)
from effax.ir.prims import Cos, Jit, Sin
from effax.ir.syntax import Eqn, Jaxpr, Lit
from effax.ir.text.parser import parse
from effax.ir.types import Type, is_inexact
from tests.unit.building import F32, program

Names = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True)
class DependsOn(Analysis[Names]):
    """Sets, ordered by inclusion: the inputs that a value is computed from."""

    control: bool = False
    bottom = NOTHING

    def join(self, first: Names, second: Names) -> Names:
        return first | second

    def transfer(self, eqn: Eqn, ins: tuple[Names, ...]) -> tuple[Names, ...]:
        return (NOTHING.union(*ins),) * len(eqn.outs)


@dataclass(frozen=True)
class IsTainted(Analysis[bool]):
    """Booleans: cosines and negative literals are tainted, and so is all that uses them."""

    bottom = False

    def join(self, first: bool, second: bool) -> bool:
        return first or second

    def transfer(self, eqn: Eqn, ins: tuple[bool, ...]) -> tuple[bool, ...]:
        return (any(ins) or self.origin(eqn),) * len(eqn.outs)

    def origin(self, eqn: Eqn) -> bool:
        return isinstance(eqn.prim, Cos)

    def literal(self, lit: Lit) -> bool:
        return not isinstance(lit.value, complex) and lit.value < 0

    def tracks(self, type_: Type) -> bool:
        return is_inexact(type_)


@dataclass(frozen=True)
class Depth(Analysis[int]):
    """A chain of three: the number of equations that a value depends on, at most 2."""

    bottom = 0

    def join(self, first: int, second: int) -> int:
        return max(first, second)

    def transfer(self, eqn: Eqn, ins: tuple[int, ...]) -> tuple[int, ...]:
        return (min(2, 1 + max(ins)),) * len(eqn.outs)


def names(*each: str) -> tuple[Names, ...]:
    """Return one set per input, of the letters of a word."""
    return tuple([frozenset(word) for word in each])


def sets(jaxpr: Jaxpr, *ins: str, control: bool = False) -> list[str]:
    """Return the facts of the results, as words."""
    found = analyze(DependsOn(control), jaxpr, names(*ins))
    return ["".join(sorted(fact)) for fact in found.outs]


STRAIGHT = parse("""
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = mul c b
        e:f32[] = cos b
      in (c, d, e, 1.0:f32[]) }
""")


def test_facts_pass_from_operands_to_results() -> None:
    assert sets(STRAIGHT, "x", "y") == ["x", "xy", "y", ""]


def test_equations_without_facts_keep_the_bottom() -> None:
    found = analyze(Depth(), STRAIGHT, (1, 0))
    assert found.outs == (2, 2, 0, 0)
    assert found.variables == (1, 0, 2, 2, 0)


def test_an_equation_introduces_a_fact_without_operands_that_have_one() -> None:
    assert analyze(IsTainted(), STRAIGHT, (False, False)).outs == (False, False, True, False)


def test_literals_have_facts() -> None:
    jaxpr = parse("{ lambda ; a:f32[]. let b:f32[] = add a -1.0:f32[] in (b, -2.0:f32[], a) }")
    assert analyze(IsTainted(), jaxpr, (False,)).outs == (True, True, False)


WRITES = parse("""
    { lambda ; a:Ref{f32[]} b:Ref{f32[]} c:f32[] d:f32[]. let
        e:f32[] <- a[...]
        b[...] <- e
        a[...] += c
        s:f32[] <- b[...]
      in (e, s, d) }
""")


def test_a_reference_has_the_facts_of_all_writes_also_for_earlier_reads() -> None:
    found = analyze(DependsOn(), WRITES, names("r", "", "x", "y"))
    assert found.ins == names("rx", "rx", "x", "y")
    assert found.outs == names("rx", "rx", "y")


def test_a_fixed_reference_keeps_its_fact() -> None:
    found = analyze(DependsOn(), WRITES, names("r", "", "x", "y"), frozenset([1]))
    assert found.ins == names("rx", "", "x", "y")
    assert found.outs == names("rx", "", "y")


def test_references_of_types_without_facts_take_none() -> None:
    jaxpr = parse("""
        { lambda ; a:Ref{i32[]} b:f32[]. let
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
            a[...] <- c
          in () }
    """)
    assert analyze(IsTainted(), jaxpr, (False, True)).ins == (False, True)
    assert analyze(DependsOn(), jaxpr, names("", "x")).ins == names("x", "x")


CALL = parse("""
    let f = { lambda ; a:f32[] b:Ref{f32[]}. let b[...] <- a; s:f32[] = sin a in (s, 1.0:f32[]) } in
    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:f32[] d:f32[] = jit[jaxpr=f name=f] a b
        s:f32[] <- b[...]
      in (c, d, s) }
""")


def test_facts_pass_through_calls_and_into_the_references_that_they_change() -> None:
    assert sets(CALL, "x", "") == ["x", "", "x"]


LOOP = parse("""
    { lambda ; k:f32[] c:f32[] d:f32[] xs:f32[3]. let
        e:f32[] f:f32[] ys:f32[3] = scan[
          jaxpr={ lambda ; k:f32[] c:f32[] d:f32[] x:f32[]. let
              g:f32[] = mul d k
            in (g, c, x) }
          length=3 n_carry=2 n_consts=1 reverse=False unroll=1
        ] k c d xs
      in (e, f, ys) }
""")


def test_carries_are_closed() -> None:
    # The second carry is the first one of the iteration before, and the other way round.
    assert sets(LOOP, "k", "", "d", "x") == ["dk", "dk", "x"]
    assert sets(LOOP, "", "c", "", "x") == ["c", "c", "x"]
    closed, outs = close_regions(DependsOn(), LOOP.eqns[0].prim, names("k", "", "d", "x"))
    assert closed == names("k", "dk", "dk", "x")
    assert outs == names("dk", "dk", "x")


def test_carries_stay_inside_of_the_loop() -> None:
    assert analyze(DependsOn(), LOOP, names("k", "", "d", "x")).ins == names("k", "", "d", "x")


WHILE = parse("""
    { lambda ; a:i32[] b:i32[] r:Ref{f32[]}. let
        c:i32[] d:i32[] = while[
          cond={ lambda ; r:Ref{f32[]} a:i32[] b:i32[]. let p:bool[] = lt a 3:i32[] in (p,) }
          body={ lambda ; r:Ref{f32[]} a:i32[] b:i32[]. let
              r[...] <- 1.0:f32[]
              t:i32[] = add a 1:i32[]
            in (t, b) }
          n_consts=1
        ] r a b
        s:f32[] <- r[...]
      in (c, d, s) }
""")


def test_a_predicate_decides_carries_and_references_where_control_is_followed() -> None:
    assert sets(WHILE, "x", "y", "") == ["x", "y", ""]
    # The body returns the second carry as it is, so that the predicate does not decide it.
    assert sets(WHILE, "x", "y", "", control=True) == ["x", "y", "x"]


COND = parse("""
    { lambda ; i:i32[] a:f32[] b:f32[]. let
        c:f32[] = cond[branches=(
          { lambda ; a:f32[] b:f32[]. let in (a,) }
          { lambda ; a:f32[] b:f32[]. let in (b,) }
        )] i a b
      in (c,) }
""")


def test_branches_are_joined_and_a_selector_decides_where_control_is_followed() -> None:
    assert sets(COND, "i", "a", "b") == ["ab"]
    assert sets(COND, "i", "a", "b", control=True) == ["abi"]


def nest(depth: int) -> Jaxpr:
    """Return calls that each call the one inside twice, around a sine."""
    made = program([F32], lambda b, x: [b(Sin(), x)])
    for _ in range(depth):
        call = Jit(made, "f")
        made = program([F32], lambda b, x, call=call: [b(call, b(call, x))])
    return made


def test_nesting_is_not_exponential() -> None:
    transferred: list[Eqn] = []

    @dataclass(frozen=True)
    class Counted(DependsOn):
        def transfer(self, eqn: Eqn, ins: tuple[Names, ...]) -> tuple[Names, ...]:
            transferred.append(eqn)
            return super().transfer(eqn, ins)

    assert analyze(Counted(), nest(40), names("x")).outs == names("x")
    assert len(transferred) == 1


def test_a_solver_follows_a_program_that_grows() -> None:
    solver = Solver(DependsOn(), STRAIGHT.size)
    for v, fact in zip(STRAIGHT.binders, names("x", "y"), strict=True):
        solver.bind(v, fact)
    assert not solver.sweep(STRAIGHT.eqns[:1])
    assert solver.fact(STRAIGHT.outs[0]) == frozenset("x")
    assert solver.fact(STRAIGHT.outs[1]) == NOTHING
    assert not solver.sweep(STRAIGHT.eqns[1:])
    assert solver.fact(STRAIGHT.outs[1]) == frozenset("xy")


def test_a_sweep_says_whether_a_reference_grew() -> None:
    solver = Solver(DependsOn(), WRITES.size)
    for v, fact in zip(WRITES.binders, names("r", "", "x", ""), strict=True):
        solver.bind(v, fact)
    assert [solver.sweep(WRITES.eqns) for _ in range(3)] == [True, True, False]


def test_positions_of_variables() -> None:
    a = STRAIGHT.binders[0].id
    c = STRAIGHT.eqns[0].outs[0].id
    assert positions_of({c}, STRAIGHT.eqns[1]) == {0}
    assert positions_of({a}, STRAIGHT.eqns[1]) == frozenset()


@pytest.mark.parametrize("start", [0, 3, 10])
def test_a_fixpoint_is_reached(start: int) -> None:
    assert fixpoint(lambda n: min(10, n + 3), start) == 10


def test_facts_are_found_at_every_place() -> None:
    jaxpr = parse("""
        { lambda ; a:f32[] b:f32[] r:Ref{f32[]}. let
            c:f32[] d:f32[4] = scan[
              jaxpr={ lambda ; r:Ref{f32[]} k:f32[] c:f32[]. let
                  r[...] <- k
                  d:f32[] <- r[...]
                  e:f32[] = add c d
                in (e, c) }
              length=4 n_carry=1 n_consts=2 reverse=False unroll=1
            ] r a b
            e:f32[] = neg a
          in (c, d, e) }
    """)
    ins = (frozenset("a"), frozenset("b"), NOTHING)
    found = {
        str(visit.place): (visit.place.trip_count, visit.outs)
        for visit in walk_facts(DependsOn(), jaxpr, ins)
        if visit.outs
    }
    assert found["0:scan.body/1:get"] == (4, (frozenset("a"),))
    assert found["0:scan.body/2:add"] == (4, (frozenset("ab"),))
    assert found["1:neg"] == (1, (frozenset("a"),))
