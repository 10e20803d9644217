"""Errors in texts have a position, and parts of programs print under the program's names."""

from __future__ import annotations

import random

import pytest

from effax.ir.edit.operations import substitute
from effax.ir.errors import BadArgument, ParseError
from effax.ir.syntax import Lit, Var
from effax.ir.text.parser import parse
from tests.unit.building import F32, WEAK, chain, nested, writer
from tests.unit.ir.samples import SAMPLES

TEXTS = [str(nested()), str(writer()), *[str(sample.program) for sample in SAMPLES]]
LETTERS = "{}[](),;:=.abz019-+<~ \n#'\"*_NfFRT?!"


def damaged(text: str, rng: random.Random) -> str:
    """Return the text with something left out, put in, or cut off."""
    at = rng.randrange(len(text))
    match rng.randrange(4):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + rng.choice(LETTERS) + text[at:]
        case 2:
            return text[:at]
        case _:
            return text[:at] + text[at + rng.randrange(9) :]


def error_of(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None


@pytest.mark.slow
def test_whatever_is_wrong_has_a_line_a_column_and_a_caret() -> None:
    rng = random.Random(7)
    wrong = 0
    for _ in range(1500):
        text = damaged(rng.choice(TEXTS), rng)
        error = error_of(text)
        if error is not None:
            wrong += 1
            line = text.split("\n")[error.line - 1]
            assert 1 <= error.column <= len(line) + 1
            assert error.excerpt == f"  {line}\n  {' ' * (error.column - 1)}^"
            assert str(error).endswith(error.excerpt)
    assert wrong > 1000


FEW = """{ lambda ; a:f32[2,3] b:f32[]. let
    c:f32[4,3] = pad[padding_config=((1, -1), (0, 0, 0))] a b
  in (c,) }"""
SHORT = """{ lambda ; a:f32[]. let
    b:i32[] = convert_element_type[new_dtype=i32 weak_type=False] a
  in (b,) }"""


@pytest.mark.parametrize(
    ("text", "column", "match"),
    [(FEW, 37, "padding_config has another type"), (SHORT, 46, "`int32`")],
)
def test_parameters_of_another_type_are_reported(text: str, column: int, match: str) -> None:
    with pytest.raises(ParseError, match=match) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (2, column)


def test_an_equation_prints_with_the_names_of_its_program() -> None:
    jaxpr = chain(30)
    text = str(jaxpr)
    for eqn in jaxpr.eqns:
        assert str(eqn) in text
        for v in eqn.outs:
            assert f"{v!r} = " in text
    assert [str(v) for v in jaxpr.binders] == ["a", "b"]
    assert str(Lit(2.0, WEAK)) == "2.0:~f32[]"
    with pytest.raises(BadArgument, match=r"^d is not in scope at equation 1"):
        substitute(jaxpr, {jaxpr.eqns[0].outs[0]: jaxpr.eqns[1].outs[0]})
    assert repr(Var(27, F32)) == "bb:f32[]"
