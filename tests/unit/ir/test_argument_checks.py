"""Invalid parts of programs that are built by hand are reported where they are passed."""

from __future__ import annotations

from typing import Any

import pytest

from effax.ir import Eqn, Lit, array_type, everywhere, lit, map_eqns, map_subjaxprs, parse
from effax.ir.build import Builder
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Add, Cos, Jit, Mul, Neg, Sin
from effax.ir.syntax import Atom, Jaxpr
from effax.passes import cse
from effax.transforms.framework.runner import unwrap

any_lit: Any = lit
F32 = array_type((), "float32")
SINE = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda b, x: b(Cos, x), r"found: +the class Cos\n +remedy: +call the class: `Cos\(\)`"),
        (lambda b, x: b("sin", x), r"applies a primitive(.|\n)*found: +'sin'"),
        (lambda b, x: b(int, x), r"found: +the class int\n +remedy: +primitives are in"),
        (lambda b, x: b(Mul(), x, 2.0), r"found: +2\.0\n(.|\n)*lit\(2\.0, x\.type\)"),
        (lambda b, x: b(Mul(), True, x), r"lit\(True, x\.type\)"),
        (lambda b, x: b(Mul(), [x, x]), r"pass them separately: `b\(prim, \*ins\)`"),
        (lambda b, x: b(Mul(), x, b.emit(Sin(), [x])), r"use `b\.emit\(prim, ins\)`"),
        (lambda b, x: b.emit(Mul(), x, x), r"come in a sequence(.|\n)*found: +a:f32"),
        (lambda b, x: b.emit(Sin(), x), r"come in a sequence(.|\n)*remedy: +`\[a\]`"),
        (lambda b, x: b(Sin(), None), r"found: +None"),
        (lambda b, x: b.finish(x), r"come in a sequence(.|\n)*remedy: +`\[a\]`"),
        (lambda b, x: b.finish([2.0]), r"lit\(2\.0, x\.type\)"),
        (lambda b, x: b.bind(x), r"bound by their types(.|\n)*`\.type`"),
        (lambda b, x: Builder([x]), r"bound by their types"),
        (lambda b, x: Builder(x.type), r"a builder takes the types of inputs"),
        (lambda b, x: any_lit(2.0, x), r"`lit\(2\.0, x\.type\)`(.|\n)*`\.type`"),
        (lambda b, x: any_lit("2", x.type), r"a literal is made of a number and a type"),
    ],
)
def test_a_builder_reports_invalid_operands(wrong: Any, says: str) -> None:
    b = Builder([F32])
    (x,) = b.binders
    with pytest.raises(BadArgument, match=says):
        wrong(b, x)
    assert not [eqn for eqn in b.eqns if eqn.prim != Sin()]
    # Type errors are reported by the typing rule.
    with pytest.raises(IllTyped, match="wrong number of operands"):
        b(Mul(), x)


def test_several_results_are_emitted() -> None:
    call = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b, b) }")
    b = Builder([F32])
    with pytest.raises(BadArgument, match=r"found: +2 results(.|\n)*`b\.emit\(prim, ins\)`"):
        b(Jit(call), *b.binders)
    assert not b.eqns and b.next_id == 1


def nothing(b: Builder, eqn: Eqn) -> None:
    return None


@pytest.mark.parametrize("walk", [map_eqns, map_subjaxprs, everywhere])
@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((SINE, nothing), r"the function comes first: `\w+\(change, jaxpr\)`"),
        ((nothing, cse(SINE)), r"`unwrap\(\.\.\.\)` returns the program"),
        ((nothing, 3), r"found: +jaxpr=3"),
        ((3, SINE), r"found: +change=3"),
    ],
)
def test_walks_report_invalid_arguments(walk: Any, args: Any, says: str) -> None:
    with pytest.raises(BadArgument, match=rf"{walk.__name__} takes a function(.|\n)*{says}"):
        walk(*args)


@pytest.mark.parametrize(("given", "remedy"), [(SINE, "it is a program already"), (3, None)])
def test_unwrap_refuses_values_that_are_no_result(given: Any, remedy: str | None) -> None:
    with pytest.raises(BadArgument, match="unwrap takes a `Result`") as caught:
        unwrap(given)
    assert caught.value.remedy == remedy


def test_a_builder_returns_the_equation_that_binds_an_operand() -> None:
    def change(b: Builder, eqn: Eqn) -> Atom | None:
        match eqn.prim, [b.equation_of(x) for x in eqn.ins]:
            case Neg(), [Eqn(prim=Neg(), ins=(y,))]:
                return y
            case Add(), [Eqn(prim=Neg(), ins=(y,)), None]:
                return b(Mul(), y, eqn.ins[1])
            case _:
                return None

    waves = parse("""
        { lambda ; a:f32[]. let
            b:f32[] = sin a; c:f32[] = neg b; d:f32[] = neg c; e:f32[] = neg d; f:f32[] = add e a
          in (d, f) }
    """)
    # e = -d is looked at in the new program, where d is b.
    assert map_eqns(change, waves) == parse("""
        { lambda ; a:f32[]. let
            b:f32[] = sin a; c:f32[] = neg b; d:f32[] = neg b; e:f32[] = mul b a
          in (b, e) }
    """)


def test_a_builder_knows_its_equations_after_some_are_taken_back() -> None:
    b = Builder([F32, F32])
    x, y = b.binders
    first = b(Sin(), x)
    assert b.equation_of(first) is b.eqns[0]
    assert b.equation_of(x) is None and b.equation_of(Lit(2.0, F32)) is None
    second = b(Mul(), first, y)
    third = b(Neg(), second)
    assert [b.equation_of(v) for v in (first, second, third)] == b.eqns
    del b.eqns[1:]
    b.next_id = second.id
    assert b.equation_of(second) is None and b.equation_of(third) is None
    again = b(Cos(), first)
    assert again == second and b.equation_of(again) is b.eqns[1]
    assert b.equation_of(third) is None


@pytest.mark.slow
def test_looking_at_every_operand_is_linear() -> None:
    looked = 0

    def change(b: Builder, eqn: Eqn) -> None:
        nonlocal looked
        looked += sum(b.equation_of(x) is not None for x in eqn.ins)

    b = Builder([F32])
    x: Atom = b.binders[0]
    for _ in range(30_000):
        x = b(Neg(), x)
    long: Jaxpr = b.finish([x])
    # Quadratic, this would take minutes.
    assert map_eqns(change, long) is long
    assert looked == 29_999
