from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effax.ir.analysis.check import checked
from effax.ir.build import Builder, lit
from effax.ir.dtypes import FLOAT0, DType, as_dtype, int_bounds
from effax.ir.errors import BadArgument, ParseError
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import Add, Gather, Get, Jit, Neg, Swap, Unary
from effax.ir.registry import own_primitives, registry
from effax.ir.syntax import Jaxpr, Lit, Var
from effax.ir.text.parser import parse
from effax.ir.text.printer import pretty, references
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from tests.counting import calls
from tests.unit.building import (
    ALL,
    F32,
    I32,
    REF,
    VEC,
    WEAK,
    chain,
    doubled,
    nested,
    program,
    writer,
)
from tests.unit.ir.samples import SAMPLES, Sample

if TYPE_CHECKING:
    from effax.ir.source import Source


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_primitive_is_read_back(sample: Sample) -> None:
    jaxpr = sample.program
    again = parse(str(jaxpr), references=references(jaxpr))
    assert again == jaxpr
    assert [e.effects for e in again.eqns] == [e.effects for e in jaxpr.eqns]
    assert str(again) == str(jaxpr)


@pytest.mark.parametrize("make", [lambda: chain(30), doubled, writer, nested])
@pytest.mark.parametrize("effects", [False, True])
def test_programs_are_read_back(make: Callable[[], Jaxpr], effects: bool) -> None:
    jaxpr = make()
    assert checked(parse(pretty(jaxpr, effects=effects))) == jaxpr


@pytest.mark.slow
def test_variables_that_are_called_like_words_of_the_notation() -> None:
    """With thousands of variables, some are called in, let, nan, inf and bool."""
    jaxpr = chain(28_000)
    text = str(jaxpr)
    for name in ("in", "let", "nan", "inf", "bool", "jit"):
        assert f"    {name}:f32[3] = " in text
    assert parse(text) == jaxpr


@pytest.mark.parametrize("name", ["in", "let", "nan", "inf", "bool", "jit", "read"])
def test_words_of_the_notation_as_names(name: str) -> None:
    text = (
        f"{{ lambda ; a:Ref{{f32[3]}} b:i32[]. let\n"
        f"    {name}:i32[] = add b 1:i32[]\n"
        f"    {VAR_AFTER}:f32[] <- a[{name}]\n"
        f"    {VAR_AFTER}a:f32[2] <- a[{name}:{name}+2]\n"
        f"    {VAR_AFTER}b:c64[] = complex {VAR_AFTER} 1.0:f32[]\n"
        f"    {VAR_AFTER}c:c64[] = mul {VAR_AFTER}b (1+2j):c64[]\n"
        f"  in ({name}, nan:f32[], {VAR_AFTER}) }}"
    )
    jaxpr = parse(text)
    assert parse(str(jaxpr)) == jaxpr


VAR_AFTER = "zzzz"


def test_results_without_a_name_leave_the_names_of_the_text_free() -> None:
    text = """
        { lambda ; a:Ref{f32[3]} b:f32[]. let
            c:f32[] <- a[0];
            a[1] <- b;
            d:f32[] <- a[0];
            a[2] <- d;
            g:f32[] = sin d
          in (c, d, g) }
    """
    jaxpr = checked(parse(text))
    assert [eqn.outs[0].id for eqn in jaxpr.eqns] == [2, 3, 4, 5, 6]
    assert [str(a) for a in jaxpr.outs] == ["c", "e", "g"]
    assert parse(str(jaxpr)) == jaxpr
    inner = " ".join(text.split())
    outer = parse(
        "{ lambda ; a:Ref{f32[3]} b:f32[]. let c:f32[] d:f32[] e:f32[] = "
        f"jit[jaxpr={inner} name='f'] a b in (c, d, e) }}"
    )
    assert outer.eqns[0].prim.subjaxprs() == (jaxpr,)
    with pytest.raises(ParseError, match="d is not in scope"):
        parse("{ lambda ; a:Ref{f32[]} b:f32[] c:f32[]. let a[...] <- b in (d,) }")


@given(st.floats(width=32), st.booleans())
def test_floats_are_read_back(value: float, weak: bool) -> None:
    made = Lit(value, array_type((), "float32", weak))
    assert parse(str(Jaxpr([], [], [made]))).outs == (made,)


@given(st.complex_numbers())
def test_complex_numbers_are_read_back(value: complex) -> None:
    made = Lit(value, array_type((), "complex128"))
    assert parse(str(Jaxpr([], [], [made]))).outs == (made,)


@given(st.sampled_from(["int8", "int64", "uint64"]), st.data())
def test_integers_are_read_back(dtype: str, data: st.DataObject) -> None:
    value = data.draw(st.integers(*int_bounds(as_dtype(dtype))))
    made = Lit(value, array_type((), dtype))
    assert parse(str(Jaxpr([], [], [made]))).outs == (made,)


@pytest.mark.parametrize(
    ("literal", "wanted"),
    [
        ("1.5:i32[]", "a Python int"),
        ("nan:i32[]", "a Python int"),
        ("True:i32[]", "a Python int"),
        ("128:i8[]", "an integer from -128 to 127"),
        ("-1:u8[]", "an integer from 0 to 255"),
        ("99999999999999999999:i64[]", "an integer from -9223372036854775808"),
        ("2:f32[]", "a Python float"),
        ("2j:f32[]", "a Python float"),
        ("2.0:c64[]", "a Python complex"),
        ("1:bool[]", "a Python bool"),
        ("1.0:f32[3]", "a scalar type"),
        ("1e400:f32[]", "a finite number"),
        ("(1e400+1j):c64[]", "a finite number"),
    ],
)
@pytest.mark.parametrize("where", ["let in ({},)", "let b:i32[] = neg {} in (b,)"])
def test_ill_typed_literals_are_not_read(literal: str, wanted: str, where: str) -> None:
    text = f"{{ lambda ; a:i32[]. {where.format(literal)} }}"
    with pytest.raises(ParseError, match=f"expected: {wanted}") as caught:
        parse(text)
    assert caught.value.column == text.index(literal) + 1


HUGE = "9999999999999999999999999"


@pytest.mark.parametrize(
    "statement",
    [
        f"c:f32[1] <- a[0:{HUGE}]",
        f"c:f32[1] <- a[{HUGE}:3]",
        f"c:f32[1] <- a[0:3:{HUGE}]",
        f"c:f32[1] <- a[-{HUGE}::-1]",
        f"c:f32[] <- a[{HUGE}]",
        f"c:f32[1] <- a[b:b+{HUGE}]",
        f"c:f32[1] <- a[b:b-4:-{HUGE}]",
        f"a[:{HUGE}] += 1.0:f32[]",
        f"c:f32[{HUGE}] = neg b",
        f"c:f32[{2**40},{2**40}] = neg b",
        f"c:i32[] = integer_pow[y={HUGE}] b",
        f"c:f32[1] = reduce_sum[axes=({HUGE},)] b",
        f"c:f32[1] = gather[indexer=[*,:{HUGE}]] b",
        f"c:f32[] = psum[axis=Axis(name='i', size={HUGE})] b",
    ],
)
def test_integers_that_are_out_of_range_are_not_read(statement: str) -> None:
    text = f"{{ lambda ; a:Ref{{f32[3]}} b:i32[]. let {statement} in () }}"
    with pytest.raises(ParseError, match=r"out of range|too many elements") as caught:
        parse(text)
    assert caught.value.line == 1 and caught.value.column > text.index("let")


@pytest.mark.parametrize("change", ["n_consts=-1", "n_consts=9", "unroll=0", "length=-1"])
def test_counts_of_a_scan_are_in_range(change: str) -> None:
    name = change.partition("=")[0]
    sample = next(str(s.program) for s in SAMPLES if "= scan[" in str(s.program))
    with pytest.raises(ParseError, match="scan"):
        parse(re.sub(rf"{name}=\d+", change, sample))


@pytest.mark.parametrize(
    "value", [0j, -0j, complex(0, -0.0), complex(-0.0, 1), complex(-0.0, -0.0)]
)
def test_signs_of_complex_zeros_are_read_back(value: complex) -> None:
    made = Lit(value, array_type((), "complex64"))
    assert parse(str(Jaxpr([], [], [made]))).outs == (made,)


@st.composite
def indexers(draw: st.DrawFn) -> tuple[tuple[int, ...], Indexer]:
    """Return a shape, and an indexer of arrays of that shape."""
    shape: list[int] = []
    dims: list[Dim] = []
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.integers(0, 7))
        shape.append(size)
        step = draw(st.sampled_from([1, 1, 2, -1, -3]))
        length = draw(st.integers(0, 1 + (size - 1) // abs(step) if size else 0))
        reach = max(length - 1, 0) * step
        room = size - 1 - abs(reach)
        first = draw(st.integers(0, max(room, 0))) - min(reach, 0)
        picks: list[Dim] = [Pick(None), *([Pick(first)] if size else [])]
        dims.append(
            draw(st.sampled_from([*picks, Span(first, length, step), Span(None, length, step)]))
        )
    return tuple(shape), Indexer(tuple(dims), draw(st.sampled_from(Mode)))


@given(indexers())
def test_indices_are_read_back(drawn: tuple[tuple[int, ...], Indexer]) -> None:
    shape, indexer = drawn
    operands = [I32] * indexer.n_operands
    x = array_type(shape, "float32")
    read = program([ref_type(x), *operands], lambda b, *args: [b(Get(indexer), *args)])
    assert parse(str(read)) == read
    taken = program([x, *operands], lambda b, *args: [b(Gather(indexer), *args)])
    assert parse(str(taken)) == taken
    part = taken.outs[0].type

    def write(b: Builder, r: Var, v: Var, *ins: Var) -> list[Var]:
        b.emit(Swap(indexer), [r, v, *ins])
        return []

    written = program([ref_type(x), part, *operands], write)
    assert parse(str(written)) == written


def test_literal_operands_of_indices() -> None:
    dynamic = Indexer((Span(None, 2),))
    jaxpr = program([REF], lambda b, r: [b(Get(dynamic), r, lit(1, I32))])
    assert "a[1:i32[]:1:i32[]+2]" in str(jaxpr)
    assert parse(str(jaxpr)) == jaxpr


@pytest.mark.slow
@given(st.text(max_size=8))
def test_labels_are_read_back(label: str) -> None:
    inner = chain(1)
    jaxpr = program([VEC, VEC], lambda b, x, y: b.emit(Jit(inner, label), [x, y]))
    assert parse(str(jaxpr)) == jaxpr


def test_space_and_comments_do_not_count() -> None:
    jaxpr = chain(3)
    loose = (
        "\n# A program.\n{  lambda ;a:f32[3]   b:f32[3] .  # inputs\n let c:f32[3]=add a\n"
        "        2.0:f32[]  # a continuation line\n d:f32[3] = mul c b;e:f32[3]= sin d\n"
        "in ( e , ) }  # end\n"
    )
    assert parse(loose) == jaxpr


def test_defaults_may_be_left_out() -> None:
    text = (
        "{ lambda ; a:f32[3]. let b:f32[3] = cumsum[axis=0] a; c:f32[3] = cumsum[axis=0] b in () }"
    )
    assert "reverse=False" in str(parse(text))


def test_a_program_of_gaps_and_jumps_is_read_as_it_is() -> None:
    text = "{ lambda ; x:f32[] m:f32[]. let q:f32[] = add x m in (q,) }"
    assert str(parse(text)) == text


BAD: list[tuple[str, int, int, str]] = [
    ("", 1, 1, "`{`"),
    ("{ lambda a:f32[3] . let in () }", 1, 19, "`;`"),
    ("{ lambda ; a:f33[3]. let in () }", 1, 14, "unknown dtype"),
    ("{ lambda ; a:f32(3). let in () }", 1, 14, "a type"),
    ("{ lambda ; a:Box{f32[]}. let in () }", 1, 14, "unknown kind of reference"),
    ("{ lambda ; aa:f32[]. let in () }", 1, 12, "invalid name of a variable"),
    ("{ lambda ; a:f32[] a:f32[]. let in () }", 1, 20, "bound a second time"),
    ("{ lambda ; a:f32[]. let a:f32[] = neg a in () }", 1, 25, "bound a second time"),
    ("{ lambda ; a:f32[]. let\n    b:f32[] = neg c\n  in (b,) }", 2, 19, "c is not in scope"),
    ("{ lambda ; a:f32[]. let in (b,) }", 1, 29, "b is not in scope"),
    ("{ lambda ; a:f32[]. let b:f32[] = sni a in () }", 1, 35, "`sin`"),
    ("{ lambda ; a:f32[]. let b:f32[2] = neg a in () }", 1, 25, "f32[2]"),
    ("{ lambda ; a:f32[] b:i32[]. let\n\n  c:f32[] = add a b\n  in () }", 3, 3, "dtype"),
    ("{ lambda ; a:f32[]. let b:f32[] = neg[x=1] a in () }", 1, 39, "no parameters"),
    ("{ lambda ; a:f32[3]. let b:f32[] = reduce_sum a in () }", 1, 36, "lacks parameters"),
    ("{ lambda ; a:f32[3]. let b:f32[] = reduce_sum[axes=(0 1)] a in () }", 1, 55, "`,` or `)`"),
    ("{ lambda ; a:f32[3]. let b:f32[] = reduce_sum[axes=%] a in () }", 1, 52, "a value"),
    ("{ lambda ; a:f32[3]. let b:f32[] = reduce_sum[axes=foo] a in () }", 1, 52, "unknown value"),
    ("{ lambda ; a:f32[3]. let a[0] <- 1.0:f32[] in () }", 1, 26, "references"),
    ("{ lambda ; a:Ref{f32[3]}. let b:f32[] <- a[5] in () }", 1, 31, "out of bounds"),
    ("{ lambda ; a:Ref{f32[3]}. let b:f32[] <- a[0:1:0] in () }", 1, 48, "step of a slice is 0"),
    ("{ lambda ; a:Ref{f32[3]}. let b:f32[] <- a[0;wrap] in () }", 1, 46, "clip, drop"),
    ("{ lambda ; a:Ref{f32[3]}. let b:f32[] <- a[,] in () }", 1, 44, "index is missing"),
    ("{ lambda ; a:Ref{f32[3]}. let b:f32[], a[0] <- a[1], 0.0:f32[] in () }", 1, 48, "two places"),
    ("{ lambda ; a:Ref{f32[3]}. let a[0] == 0.0:f32[] in () }", 1, 36, "`<-`"),
    ("{ lambda ; a:Ref{f32[]}. !{read a} let in () }", 1, 26, "!{}"),
    ("{ lambda ; a:f32[]. let b:f32[] = neg a", 1, 40, "in (...)"),
    ("{ lambda ; a:f32[]. let in (a a) }", 1, 31, "`,` or `)`"),
    ("{ lambda ; a:f32[]. let in (a,) } }", 1, 35, "end of the text"),
    ("let f = { lambda ; . let in () } in let f = { lambda ; . let in () } in", 1, 41, "one name"),
    (
        "{ lambda ; a:f32[3]. let b:f32[] = gather[indexer=[1:]] a in () }",
        1,
        54,
        "the end of a slice",
    ),
    ("{ lambda ; . let n:Ref{f32[]} = new_ref[kind=RefKind.X] 0.0:f32[] in () }", 1, 46, "ARRAY"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), BAD)
def test_errors_have_a_position(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert message in str(error)
    shown, caret = str(error).splitlines()[-2:]
    assert shown == f"  {text.splitlines()[line - 1] if text else ''}"
    assert caret == " " * (column + 1) + "^"


class Color(Enum):
    RED = 1
    DEEP_BLUE = 2


class Point(NamedTuple):
    x: int
    y: float


@dataclass(frozen=True)
class Box:
    corner: Point
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Odd(Primitive):
    """A primitive with parameters of every kind."""

    box: Box
    color: Color | None
    dtype: DType
    inner: ArrayType
    cell: RefType
    names: frozenset[str]
    number: float
    phase: complex
    text: str
    flags: tuple[bool, ...]
    programs: tuple[Jaxpr, ...]
    pairs: tuple[tuple[Jaxpr, int], ...]
    indexer: Indexer
    colors: tuple[tuple[Color, Point], ...] = ()
    name: ClassVar[str] = "odd"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return ins

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (*self.programs, *(jaxpr for jaxpr, _ in self.pairs))


ODD = Odd(
    box=Box(Point(-1, float("inf")), ("a b", "it's", 'say "]"')),
    color=Color.DEEP_BLUE,
    dtype=FLOAT0,
    inner=WEAK,
    cell=REF,
    names=frozenset({"x", "y"}),
    number=-0.0,
    phase=complex(0.0, -1.5),
    text="None",
    flags=(True,),
    programs=(chain(2), chain(12)),
    pairs=((chain(1), 3),),
    indexer=Indexer((Pick(None), Span(4, 2, -2)), Mode.DROP),
    colors=((Color.RED, Point(0, 1.0)),),
)


@pytest.mark.parametrize(
    "prim",
    [
        ODD,
        replace(ODD, box=Box(Point(0, float("nan")), ()), color=None, names=frozenset()),
        replace(ODD, dtype=as_dtype("bfloat16"), number=1e300, text="", flags=(), programs=()),
        replace(ODD, pairs=(), indexer=ALL, colors=()),
    ],
)
def test_primitives_of_the_caller_are_read_with_their_parameters(prim: Odd) -> None:
    jaxpr = program([F32], lambda b, x: [b(prim, x)])
    again = parse(str(jaxpr), registry(Odd))
    assert str(again) == str(jaxpr)
    # A parameter that is nan is not equal to itself.
    assert again == jaxpr or "nan" in str(jaxpr)


def test_a_primitive_that_is_not_registered_is_not_read() -> None:
    jaxpr = program([F32], lambda b, x: [b(ODD, x)])
    with pytest.raises(ParseError, match="registry"):
        parse(str(jaxpr))


@dataclass(frozen=True, slots=True)
class Typed(Primitive):
    """A primitive with an annotation that exists for type checkers only."""

    size: int
    source: Source | None = None
    name: ClassVar[str] = "typed"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return ins


def test_unresolvable_annotations_are_ignored() -> None:
    jaxpr = program([F32], lambda b, x: [b(Typed(3), x)])
    assert parse(str(jaxpr), registry(Typed)) == jaxpr


class Twin(Neg):
    """Called like another primitive."""


def test_the_registry_refuses_two_primitives_of_one_name_and_base_classes() -> None:
    with pytest.raises(BadArgument, match="two primitives are called neg"):
        registry(Twin)
    with pytest.raises(BadArgument, match="base class"):
        registry(Unary)
    assert registry() is own_primitives()
    assert registry(Neg) == own_primitives()


def test_programs_in_records_are_read_by_value() -> None:
    jaxpr = program([F32], lambda b, x: [b(ODD, x)])
    assert "pairs=(({ lambda ; " in str(jaxpr)
    assert "programs=(" in str(jaxpr)


def test_a_program_of_a_thousand_inputs() -> None:
    jaxpr = program([F32] * 1000, lambda b, *xs: [b(Add(), x, xs[-1]) for x in xs])
    assert parse(str(jaxpr)) == jaxpr


@pytest.mark.slow
def test_parsing_is_linear() -> None:
    small, large = str(chain(1_000)), str(chain(10_000))
    one_line = large.replace("\n    ", "; ").replace("let;", "let").replace("\n", " ")
    assert parse(one_line) == parse(large)
    limit = 12 * calls(lambda: parse(small))
    assert calls(lambda: parse(large)) < limit
    assert calls(lambda: parse(one_line)) < limit
