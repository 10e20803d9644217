"""Hostile texts: values of other types, invalid strings and numbers, columns on a screen."""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, TypeVar

import pytest

from effax.ir.errors import BadArgument, ParseError
from effax.ir.field_types import type_mismatch
from effax.ir.prims import IoCallback, Jit
from effax.ir.source import SavedSource
from effax.ir.text.json import from_json, to_json
from effax.ir.text.parser import parse
from effax.ir.text.printer import eqn_str, pretty, references
from tests.unit.building import F32, VEC, chain, nested, program, writer
from tests.unit.ir.samples import SAMPLES, Doubled, arr

REDUCED = "{{ lambda ; a:f32[3]. let b:f32[] = reduce_sum[axes={}] a in () }}"
CALL = "{{ lambda ; a:f32[3]. let b:f32[3] = jit[name={} jaxpr={}] a in () }}"
SAME = "{ lambda ; a:f32[3]. let in (a,) }"
CONVERTED = "{{ lambda ; a:f32[]. let b:i32[] = convert_element_type[new_dtype={} {}] a in () }}"


@pytest.mark.parametrize(
    ("text", "under", "expected"),
    [
        (REDUCED.format("(0.0,)"), "(0.0", "tuple[int, ...]"),
        (REDUCED.format("(True,)"), "(True", "tuple[int, ...]"),
        (REDUCED.format("0"), "0]", "tuple[int, ...]"),
        (REDUCED.format(SAME), "{ lambda ; a:f32[3]. let in", "tuple[int, ...]"),
        (REDUCED.format("'a'"), "'a'", "tuple[int, ...]"),
        (REDUCED.format("'a"), "'a", "invalid string"),
        (REDUCED.format(r"'\x'"), "'", "invalid string"),
        (REDUCED.format(r"'\q'"), "'", "invalid string"),
        (REDUCED.format(r"'\N{unknown}'"), "'", "invalid string"),
        (REDUCED.format(r"'\U00ffffff'"), "'", "invalid string"),
        (REDUCED.format("'\0'"), "'", "invalid string"),
        (REDUCED.format("b'é'"), "b'", "invalid string"),
        (REDUCED.format("(" * 3000), "((", "nested too deeply"),
        (REDUCED.format("frozenset({" * 3000), "frozenset", "nested too deeply"),
        (REDUCED.format("9" * 5000), "99", "too many digits"),
        (CALL.format("b'x'", SAME), "b'x'", "name has another type"),
        (CALL.format("f", "3"), "3] a", "Jaxpr"),
        (CALL.format("f", "None"), "None", "Jaxpr"),
        (CONVERTED.format("int32", "weak_type=None"), "None", "bool"),
        (CONVERTED.format("3", "weak_type=False"), "3 ", "DType"),
        ("{ lambda ; a:f32[" + "1" * 5000 + "]. let in () }", "f32", "too many digits"),
        ("{ lambda ; a:f32[٣]. let in () }", "f32", "a type"),
        ("{ lambda ; . let in (٣:i32[],) }", "٣", "a variable or a literal"),
        ("{ lambda ; a:f32[]. let weights:f32[] = sin a in () }", "weights", "at most 5 letters"),
    ],
)
def test_the_caret_is_under_the_fault(text: str, under: str, expected: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ParseError) as caught:
            parse(text)
    assert expected in str(caught.value)
    assert text[caught.value.column - 1 :].startswith(under)
    shown, caret = str(caught.value).splitlines()[-2:]
    assert shown[len(caret) - 1 :].startswith(under[:3])


@pytest.mark.parametrize("text", [None, b"{ lambda ; . let in () }", 3])
def test_only_text_is_read(text: str) -> None:
    with pytest.raises(BadArgument, match="a string"):
        parse(text)


def test_the_caret_is_right_on_a_screen() -> None:
    def excerpt(line: str) -> tuple[str, str]:
        with pytest.raises(ParseError) as caught:
            parse(f"{{ lambda ; a:f32[3]. let\n{line} in () }}")
        shown, caret = str(caught.value).splitlines()[-2:]
        return shown, caret

    assert excerpt("\tb:f32[3] = sin\tz")[1] == "  \t" + " " * 14 + "\t^"
    wide = CALL.format("'漢字'", "{ lambda ; . let in (z,) }").partition(" let ")[2]
    shown, caret = excerpt(f"  {wide}")
    # Each of the two letters takes two columns.
    assert len(caret) - 1 == shown.index("z") + 2
    shown, caret = excerpt("; ".join(f"b{'bcdefghij'[i]}:f32[3] = sin a" for i in range(9)) + "; z")
    assert len(shown) < 170
    assert shown[len(caret) - 1] == "z"


T = TypeVar("T")


class Sized(Protocol):
    size: int


@dataclass(frozen=True)
class Fields:
    """Declarations of many kinds."""

    name: ClassVar[str] = "fields"
    number: float
    phase: complex
    mode: Literal["a", 1]
    pair: tuple[int, str]
    some: tuple[bool, ...] | None
    noted: Annotated[int, "a note"]
    any_: object
    sized: Sized
    words: frozenset[str]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("number", [1.0, 2], [True, "x", None, 1j]),
        ("phase", [1.0, 2, 1j], [True, "x"]),
        ("mode", ["a", 1], ["b", 2, True]),
        ("pair", [(1, "a")], [(1,), (1, 2), [1, "a"], (True, "a")]),
        ("some", [None, (), (True, False)], [(1,), True]),
        ("noted", [3], [True, 1.5]),
        ("any_", [None, 3, True, "x"], []),
        ("sized", [None, 3, True], []),
        ("words", [frozenset(), frozenset({"a"})], [frozenset({1}), ("a",)]),
        ("unheard_of", [None, 3], []),
    ],
)
def test_values_accepted_by_field_types(field: str, good: list[object], bad: list[object]) -> None:
    assert [type_mismatch(Fields, field, value) for value in good] == [None] * len(good)
    assert None not in [type_mismatch(Fields, field, value) for value in bad]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_primitives_have_parameters_of_the_kinds_that_they_declare(sample) -> None:  # type: ignore[no-untyped-def]
    prim = sample.prim
    for field in getattr(prim, "__dataclass_fields__", {}):
        assert type_mismatch(type(prim), field, getattr(prim, field)) is None


PROGRAMS = [nested(), writer(), *[sample.program for sample in SAMPLES]]
VALUES: list[object] = [
    *[None, True, -1, 2.5, 10**30, "x", "f32[]", [], {}, [0, "f32[]"], ["a", "f32[]"]],
    *[[True, "f32[]"], [0, 3], [10**18, "f32[]"], {"lit": "1.0:f32[]"}, {"lit": 3}],
    *[{"lit": "1.0:f32[] 2"}, {"text": "("}, {"text": r"'\x'"}, {"text": 3}, {"text": "1 2"}],
    *[{"text": "p99"}, {"text": "@x"}, {"program": -1}, {"program": True}, {"program": "a"}],
]


def test_damaged_json_is_a_bad_argument() -> None:
    rng = random.Random(3)
    refused = 0
    written = [(to_json(jaxpr), references(jaxpr)) for jaxpr in PROGRAMS]
    for _ in range(1500):
        text, objects = rng.choice(written)
        data = json.loads(text)
        damage(data, rng)
        try:
            again = from_json(json.dumps(data), references=objects)
        except BadArgument:
            refused += 1
        else:
            assert hash(again) == hash(from_json(to_json(again), references=objects))
    assert refused > 700


def damage(data: object, rng: random.Random) -> None:
    """Put another value somewhere inside, or take one out."""
    while True:
        inside = list(data.values() if isinstance(data, dict) else data)  # type: ignore[call-overload]
        nested = [x for x in inside if isinstance(x, dict | list) and x]
        if not inside or (nested and rng.random() < 0.85):
            data = rng.choice(nested)
            continue
        keys = list(data) if isinstance(data, dict) else range(len(inside))
        data[rng.choice(keys)] = rng.choice(VALUES)  # type: ignore[index]
        return


@pytest.mark.parametrize("text", ["[" * 100_000, "", "3", "NaN", b"\xff", "[1" + "0" * 5000 + "]"])
def test_invalid_json_is_a_bad_argument(text: str) -> None:
    with pytest.raises(BadArgument, match="not as `to_json` writes it"):
        from_json(text)
    with pytest.raises(BadArgument, match="a string"):
        from_json(None)  # type: ignore[arg-type]


def test_a_name_of_many_words_is_one_word_where_it_stands_for_something() -> None:
    jaxpr = program([VEC, VEC], lambda b, x, y: b.emit(Jit(chain(20), "the loss (of all)"), [x, y]))
    assert str(jaxpr).startswith("let the_loss_of_all = {")
    assert parse(str(jaxpr)) == jaxpr
    call = IoCallback(Doubled("two words"), (arr(""),))
    called = program([F32], lambda b, x: [b(call, x)])
    assert list(references(called)) == ["two_words"]
    assert "callback=@two_words" in eqn_str(called.eqns[0])
    assert "callback=@two_words" in str(called)


@pytest.mark.parametrize("name", ["a\nb", "x\r\ny # {", "a\x0bb", "a\u2028b", "; in () }"])
def test_places_are_comments_whatever_they_are_called(name: str) -> None:
    place = SavedSource(f"{name}.py", 3, name, (name,))
    jaxpr = chain(3)
    jaxpr = jaxpr.replace(eqns=[eqn._replace(source=place) for eqn in jaxpr.eqns])
    text = pretty(jaxpr, source=True)
    assert text.count("  # ") == 3
    assert len(text.splitlines()) == 5
    assert parse(text) == jaxpr
    assert from_json(to_json(jaxpr)).eqns[0].source == place
