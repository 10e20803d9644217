from __future__ import annotations

import pytest

from effax.ir.analysis.check import checked
from effax.ir.build import Builder, lit, template, typing_of
from effax.ir.errors import IllTyped
from effax.ir.prims import Add, Jit, Neg
from effax.ir.source import SavedSource
from effax.ir.syntax import Lit, Var
from effax.ir.types import Type, array_type
from tests.unit.building import F32, VEC, chain, nested, writer


def test_variables_are_numbered_in_the_order_of_binding() -> None:
    jaxpr = writer()
    bound = [*jaxpr.binders, *(v for eqn in jaxpr.eqns for v in eqn.outs)]
    assert [v.id for v in bound] == list(range(len(bound)))


def test_an_ill_typed_equation_is_refused_and_not_appended() -> None:
    b = Builder([F32, array_type((), "int32")])
    with pytest.raises(IllTyped, match="dtype"):
        b(Add(), *b.binders)
    assert b.eqns == []


def test_typings_are_cached_for_primitives_without_subjaxprs() -> None:
    types = (VEC, VEC)
    assert typing_of(Add(), types) is typing_of(Add(), types)
    inner = Jit(chain(2))
    assert typing_of(inner, types) == inner.typing(*types)


@pytest.mark.parametrize("make", [lambda: chain(7), writer, nested])
def test_inlining_a_program_returns_the_program(make: object) -> None:
    assert callable(make)
    jaxpr = make()
    b = Builder(jaxpr.in_types)
    outs = b.inline(template(jaxpr), b.binders)
    assert b.finish(outs, jaxpr.n_consts) == jaxpr
    again = Builder(jaxpr.in_types)
    outs = again.inline_jaxpr(jaxpr, again.binders)
    assert again.finish(outs, jaxpr.n_consts) == jaxpr


def test_a_template_is_inlined_many_times_under_the_callers_source() -> None:
    body = template(chain(2))
    b = Builder([VEC, VEC])
    here = SavedSource("f.py", 1, "f")
    (once,) = b.inline(body, b.binders, here)
    (twice,) = b.inline(body, [once, once])
    jaxpr = checked(b.finish([twice]))
    assert [eqn.source for eqn in jaxpr.eqns] == [here, here, None, None]


def test_inlined_equations_keep_their_own_source() -> None:
    here = SavedSource("f.py", 1, "f")
    plain = chain(2)
    located = plain.replace(eqns=[eqn._replace(source=here) for eqn in plain.eqns])
    b = Builder([VEC, VEC])
    b.inline_jaxpr(located, b.binders)
    assert [eqn.source for eqn in b.eqns] == [here, here]


def test_results_of_a_template_may_be_arguments_and_literals() -> None:
    b = Builder([F32])
    x = b.binders[0]
    jaxpr = b.finish([x, lit(2.0, F32), b(Neg(), lit(2.0, F32)), x])
    again = Builder([F32])
    assert again.finish(again.inline(template(jaxpr), again.binders)) == jaxpr


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, "float32", 1.0),
        (1, "bfloat16", 1.0),
        (2.7, "int8", 2),
        (3, "int4", 3),
        (0, "bool", False),
        (2, "complex64", 2 + 0j),
        (2 + 0j, "float32", 2.0),
    ],
)
def test_a_literal_takes_the_kind_of_its_type(value: float, dtype: str, expected: complex) -> None:
    type_: Type = array_type((5,), dtype)
    made = lit(value, type_)
    assert made == Lit(expected, array_type((), dtype))
    assert type(made.value) is type(expected)


def test_a_literal_is_weak_where_its_type_is() -> None:
    assert lit(1, array_type((3,), "float32", weak=True)).type.weak


def test_a_complex_literal_needs_a_complex_type() -> None:
    with pytest.raises(IllTyped, match="complex"):
        lit(1j, F32)


def test_fresh_variables_do_not_repeat() -> None:
    b = Builder([F32])
    assert b.fresh(F32) == Var(1, F32)
    assert b.fresh(F32) == Var(2, F32)
    assert b.bind(F32) == Var(3, F32)
