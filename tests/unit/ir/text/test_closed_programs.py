from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.dtypes import DType
from effax.ir.errors import ParseError
from effax.ir.syntax import ClosedJaxpr, Jaxpr, Var
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.ir.types import array_type
from effax.testing.generate.special_values import special
from effax.testing.strategies import DTYPES


def closed_over(x: np.ndarray) -> ClosedJaxpr:
    a = Var(0, array_type(x.shape, x.dtype))
    return ClosedJaxpr(Jaxpr([a], [], [a], 1), (x,))


@pytest.mark.parametrize("jit", [False, True])
def test_closed_programs_are_read_back(jit: bool) -> None:
    table = np.asarray([0.0, -0.0, np.nan], np.float32)

    def f(x: effax.Array) -> effax.Array:
        return x * table + jnp.arange(3)

    closed = effax.make_jaxpr(effax.jit(f) if jit else f)(1.0)
    assert closed.consts
    again = parse(str(closed), closed=True)
    assert again == closed and str(again) == str(closed)
    assert parse(str(closed)) == closed and parse(str(closed.jaxpr)) == closed.jaxpr


def test_the_text_begins_with_the_constants() -> None:
    assert str(closed_over(np.asarray([1.5, 2.0], np.float32))) == (
        "let a:f32[2] = [1.5, 2.0] in\n{ lambda a:f32[2]; . let  in (a,) }"
    )
    assert str(closed_over(np.ones((50, 50)))).startswith("let a:f64[50,50] = 1.0 in\n")
    assert str(closed_over(np.zeros((0, 3), bool))).startswith("let a:bool[0,3] = [] in\n")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_values_of_every_dtype_are_read_back(dtype: DType) -> None:
    values = special(dtype)
    for x in (values, values[:1].reshape(()), values[:0], np.resize(values, (2, 3, 2))):
        closed = closed_over(x)
        assert parse(str(closed), closed=True) == closed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_bits_of_nan_are_read_back(dtype: str) -> None:
    nan = np.asarray(np.nan, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    bits = f"u{nan.dtype.itemsize}"
    for payload in (0, 1, 1 << (8 * nan.dtype.itemsize - 1)):
        closed = closed_over((nan.view(bits) ^ np.asarray(payload, bits)).view(nan.dtype))
        assert parse(str(closed), closed=True) == closed


def test_large_arrays_and_references_are_passed_by_name() -> None:
    ref = effax.new_ref(jnp.zeros(2))
    large = np.arange(2000, dtype=np.float32)
    closed = effax.make_jaxpr(lambda x: ref[...] + jnp.sum(large * x))(1.0)
    known = references(closed)
    assert len(known) >= 2 and len(str(closed)) < 2000
    assert parse(str(closed), references=known) == closed
    with pytest.raises(ParseError, match="names a Python object that was not passed"):
        parse(str(closed))


def test_a_closed_program_without_constants_equals_its_jaxpr() -> None:
    closed = effax.make_jaxpr(jnp.sin)(1.0)
    assert not closed.consts and closed == closed.jaxpr and closed.jaxpr == closed
    assert hash(closed) == hash(closed.jaxpr) and str(closed) == str(closed.jaxpr)
    assert parse(str(closed)) == closed == parse(str(closed), closed=True)
    assert isinstance(parse(str(closed), closed=True), ClosedJaxpr)
    assert closed != effax.make_jaxpr(jnp.cos)(1.0).jaxpr


@pytest.mark.parametrize(
    ("constant", "column", "message"),
    [
        ("let a:i8[] = 300 in", 14, "an element is not of the dtype"),
        ("let a:i8[] = 1.5 in", 14, "an element is not of the dtype"),
        ("let a:i8[] = True in", 14, "an element is not of the dtype"),
        ("let a:bool[] = 1 in", 16, "an element is not of the dtype"),
        ("let a:f16[] = 70000.0 in", 15, "an element is not of the dtype"),
        ("let a:f32[] = 1e400 in", 15, "an element is not of the dtype"),
        ("let a:i8[] = 0x1 in", 14, "an element is missing"),
        ("let a:f16[] = 0x1ffff in", 15, "an element has too many bits"),
        ("let a:f32[2] = [1.0] in", 16, "another number of elements"),
        ("let a:f32[2] = [1.0 2.0] in", 21, "unexpected text in a constant"),
        ("let a:f32[2] = x in", 16, "an element is missing"),
        ("let a:Ref{f32[2]} = 0.0 in", 21, "the name of an object"),
        ("let a:f32[] = @table in", 15, "was not passed"),
    ],
)
def test_constants_that_do_not_have_their_type(constant: str, column: int, message: str) -> None:
    type_ = constant.split(" ")[1]
    with pytest.raises(ParseError, match=message) as caught:
        parse(f"{constant} {{ lambda {type_}; . let in (a,) }}")
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize("binders", ["", "b:f32[]", "a:f64[]", "a:f32[] b:f32[]"])
def test_constants_are_those_of_the_program(binders: str) -> None:
    with pytest.raises(ParseError, match=re.escape("other constants than those before it")):
        parse(f"let a:f32[] = 1.0 in {{ lambda {binders}; . let in () }}")


def test_a_constant_by_name_is_no_parameter() -> None:
    text = "{ lambda ; a:f32[]. let debug_callback[callback=@f ordered=False] a in () }"
    with pytest.raises(ParseError, match="the object of this name is no parameter"):
        parse(text, references={"f": 3})
