"""The rewriter: an environment and a builder."""

from __future__ import annotations

import pytest

from effax.ir.build import Builder, lit
from effax.ir.edit.rewriter import Rewriter
from effax.ir.prims import Add, Cos, Neg, Sin
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from tests.unit.building import F32

P = parse("""
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = add c b
        e:f32[] = neg d
      in (e, c, 1.0:f32[]) }
""")


def kept(jaxpr: Jaxpr, made: Rewriter) -> Rewriter:
    """Keep every equation."""
    for eqn in jaxpr.eqns:
        made.keep(eqn, made.operands(eqn))
    return made


def test_the_very_same_program_is_returned_where_nothing_changed() -> None:
    assert kept(P, Rewriter(P)).finish() is P


def test_an_equation_is_emitted_in_the_place_of_another() -> None:
    made = Rewriter(P)
    for eqn in P.eqns:
        if isinstance(eqn.prim, Sin):
            made.replace(eqn, made.emit(eqn, Cos(), made.operands(eqn)))
        else:
            made.keep(eqn, made.operands(eqn))
    assert str(made.finish()) == str(P).replace("sin", "cos")
    assert [eqn.source for eqn in made.b.eqns] == [eqn.source for eqn in P.eqns]


def test_results_are_replaced_by_other_atoms() -> None:
    made = Rewriter(P)
    for eqn in P.eqns:
        if isinstance(eqn.prim, Add):
            made.replace(eqn, [lit(2.0, F32)])
        else:
            made.keep(eqn, made.operands(eqn))
    assert made.finish() == parse("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = neg 2.0:f32[]
          in (d, c, 1.0:f32[]) }
    """)


def test_another_primitive_of_the_same_typing_takes_the_place() -> None:
    made = Rewriter(P)
    for eqn in P.eqns:
        made.keep(eqn, made.operands(eqn), Cos() if isinstance(eqn.prim, Neg) else None)
    assert [eqn.prim.name for eqn in made.build(made.results()).eqns] == ["sin", "add", "cos"]


def test_a_program_is_rewritten_into_a_given_builder_on_given_atoms() -> None:
    b = Builder([F32])
    outs = kept(P, Rewriter(P, b, [b.binders[0], b.binders[0]])).results()
    assert b.finish(outs[:1]) == parse("""
        { lambda ; a:f32[]. let
            b:f32[] = sin a
            c:f32[] = add b a
            d:f32[] = neg c
          in (d,) }
    """)


def test_a_nested_rewriter_appends_to_the_same_program() -> None:
    made = Rewriter(P)
    inner = kept(P, made.nested(P, [*made.b.binders]))
    assert inner.b is made.b
    assert made.env is not inner.env
    assert len(made.b.eqns) == 3


def test_a_variable_is_read_after_it_is_bound_only() -> None:
    made = Rewriter(P)
    assert made.read(P.binders[1]) == made.b.binders[1]
    with pytest.raises(AssertionError, match="used before it is bound"):
        made.read(P.outs[0])


def test_numbers_of_arguments_must_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        Rewriter(P, Builder(), [])
