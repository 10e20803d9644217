"""Regions: forms, what they read, write, carry and keep, and the effects that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from effax.effects import Accum, ArgIndex, Read, Row
from effax.ir import (
    Builder,
    Jaxpr,
    branch_regions,
    check,
    loop_region,
    typing_of,
    while_regions,
)
from effax.ir.errors import BadRule
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims import Add, Cond, Jit, Lt, Scan, While
from effax.ir.text.parser import parse
from effax.ir.types import Type, ref_type
from tests.unit.building import BOOL, F32, program

R = ref_type(F32)
BODY = parse("""
    { lambda ; a:Ref{f32[]} b:Ref{f32[]} c:f32[] d:f32[]. let
        e:f32[] <- a[...]
        b[...] += d
        f:f32[] = add c e
      in (f, e) }
""")


def test_a_loop_says_what_it_reads_writes_carries_and_keeps() -> None:
    region = loop_region(BODY, 5, n_consts=2, n_carry=1)
    assert (sorted(region.reads), sorted(region.writes)) == ([0], [1])
    assert (sorted(region.carries), sorted(region.parts)) == ([2], [3])
    assert (sorted(region.invariant), region.trip_count) == ([0, 1], 5)
    assert Scan(BODY, 5, False, 2, 1).regions() == (region,)


def test_loops_on_predicates_and_branches_are_declared_alike() -> None:
    cond = program([F32, F32], lambda b, k, c: [b(Lt(), c, k)])
    body = program([F32, F32], lambda b, k, c: [b(Add(), c, k)])
    test, step = while_regions(cond, body)
    assert While(cond, body, 1).regions() == (test, step)
    assert test.is_predicate and step.carry_to == (1,) and step.trip_count is None
    assert Cond((body, body)).regions() == branch_regions((body, body))
    assert [r.name for r in branch_regions((body, body))] == ["branch 0", "branch 1"]


@dataclass(frozen=True, slots=True)
class Forgetful(Primitive):
    """A call whose typing rule returns no effects."""

    jaxpr: Jaxpr
    declared: bool
    name: ClassVar[str] = "forgetful"

    def typing(self, *ins: Type) -> Typing:
        return Typing(self.jaxpr.out_types)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        raise NotImplementedError

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def regions(self) -> tuple[Region, ...]:
        # The operands are in another order than the inputs of the program.
        return (Region(self.jaxpr, (1, 0, 2, 3), (0, 1), (None, None)),) if self.declared else ()


def test_effects_of_regions_are_effects_of_the_application() -> None:
    types = (R, R, F32, F32)
    prim = Forgetful(BODY, True)
    wanted: Row[ArgIndex] = Row([Read(ArgIndex(1)), Accum(ArgIndex(0))])
    assert typing_of(prim, types).effects == wanted
    b = Builder(types)
    jaxpr = b.finish(b.emit(prim, b.binders))
    assert jaxpr.eqns[0].effects == wanted
    check(jaxpr).unwrap()


def test_effects_in_no_region_are_refused() -> None:
    with pytest.raises(BadRule, match="forgetful runs a subjaxpr with effects"):
        typing_of(Forgetful(BODY, False), (R, R, F32, F32))
    pure = program([BOOL], lambda b, x: b.emit(Jit(program([BOOL], lambda b, x: [x])), [x]))
    assert typing_of(Forgetful(pure, False), (BOOL,)).effects == Row()
