from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from effax.ir.build import Builder, lit
from effax.ir.errors import IllTyped
from effax.ir.indexing import Indexer, Mode, Pick, Span
from effax.ir.prims import Add, CumSum, Get, Jit, Mul, Neg, Sin, Swap
from effax.ir.source import SavedSource
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.text.names import VAR_NAMES, var_number
from effax.ir.text.parser import parse
from effax.ir.text.printer import WIDTH, eqn_str, pretty
from effax.ir.types import array_type, ref_type
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

GOLDEN = Path(__file__).parents[3] / "golden" / "programs"


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.parametrize(
    ("name", "jaxpr"),
    [
        ("chain", chain(4)),
        ("references", writer()),
        ("nested", nested()),
    ],
)
def test_programs_print_as_recorded(name: str, jaxpr: Jaxpr) -> None:
    assert str(jaxpr) == golden(name)
    assert repr(jaxpr) == str(jaxpr) == pretty(jaxpr)


@pytest.mark.parametrize("name", sorted(p.stem for p in GOLDEN.glob("*.txt")))
def test_recorded_programs_are_read_and_print_alike(name: str) -> None:
    assert str(parse(golden(name))) == golden(name)


def test_a_program_that_fits_is_one_line() -> None:
    assert str(chain(1)) == "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add a 2.0:f32[] in (c,) }"
    assert str(Jaxpr([], [], [])) == "{ lambda ; . let  in () }"
    assert str(Jaxpr([Var(0, F32), Var(1, F32)], [], [Var(1, F32)], 1)) == (
        "{ lambda a:f32[]; b:f32[]. let  in (b,) }"
    )


def test_weak_types_are_marked() -> None:
    jaxpr = program([WEAK], lambda b, x: [b(Neg(), x), lit(2, WEAK)])
    assert str(jaxpr) == "{ lambda ; a:~f32[]. let b:~f32[] = neg a in (b, 2.0:~f32[]) }"


def test_effects_are_shown_on_request_under_the_names_of_binders() -> None:
    assert pretty(doubled(), effects=True) == (
        "{ lambda ; a:f32[3] b:Ref{f32[3]}. !{read b, write b} let\n"
        "    b[...] <- a\n"
        "    d:f32[3] = mul a 2.0:~f32[]\n"
        "  in (d,) }"
    )
    assert pretty(chain(1), effects=True).count("!{} let") == 1


def test_sources_are_shown_on_request_beside_the_first_line() -> None:
    inner = doubled()
    b = Builder([VEC, REF])
    b.emit(Jit(inner, "f"), b.binders, SavedSource("model.py", 7, "loss", ("layer",)))
    text = pretty(b.finish([]), source=True)
    assert text.splitlines()[1] == "    c:f32[3] = jit[  # model.py:7 (loss) in layer"
    assert parse(text) == b.finish([])


def test_variable_names_encode_numbers() -> None:
    names = [VAR_NAMES[i] for i in (0, 25, 26, 27, 51, 52, 675, 676, 10**9)]
    assert names[:8] == ["a", "z", "ba", "bb", "bz", "ca", "zz", "baa"]
    for number in (*range(2000), 10**9):
        assert var_number(VAR_NAMES[number]) == number


@pytest.mark.parametrize("name", ["aa", "aab", "A", "a1", "é", "", "a_b"])
def test_other_names_are_no_variables(name: str) -> None:
    assert var_number(name) is None


def test_an_equation_prints_alone_as_in_its_program() -> None:
    for jaxpr in (chain(9), nested()):
        text = str(jaxpr)
        for eqn in jaxpr.eqns:
            results = " ".join(f"{VAR_NAMES[v.id]}:{v.type}" for v in eqn.outs)
            assert eqn_str(eqn).startswith(results)
            assert results in text


def test_an_equation_alone_is_one_line_that_leaves_out_long_programs() -> None:
    long = program([VEC], lambda b, x: b.inline_jaxpr(chain(30), [x, x]))
    eqn = Eqn(Jit(long, "f"), (Var(0, VEC),), (Var(1, VEC),))
    assert eqn_str(eqn) == "b:f32[3] = jit[name=f jaxpr={ lambda ; a:f32[3]. let ... }] a"
    many = program([VEC] * 40, lambda b, *xs: [b(Add(), xs[0], xs[1])])
    eqn = Eqn(Jit(many, "f"), (), ())
    assert eqn_str(eqn) == "jit[name=f jaxpr={ lambda ... let ... }]"


def test_an_ill_typed_equation_prints_all_the_same() -> None:
    a, r = Var(0, F32), Var(1, REF)
    assert eqn_str(Eqn(Get(ALL), (a,), (r,))) == "b:Ref{f32[3]} = get[indexer=[:3]] a"
    assert eqn_str(Eqn(Swap(ALL), (r,), ())) == "swap[indexer=[:3]] b"
    assert eqn_str(Eqn(Add(), (Var(-1, F32),), ())) == "add ?-1"


@pytest.mark.parametrize(
    ("indexer", "expected"),
    [
        (Indexer((Span(0, 5), Span(0, 6))), "[...]"),
        (Indexer((Span(0, 5), Span(0, 6)), Mode.DROP), "[...;drop]"),
        (Indexer((Pick(None), Pick(3))), "[b,3]"),
        (Indexer((Pick(None), Span(0, 6)), Mode.DROP), "[b,:;drop]"),
        (Indexer((Span(1, 2), Span(2, 4))), "[1:3,2:]"),
        (Indexer((Span(0, 2), Span(0, 3, 2))), "[:2,::2]"),
        (Indexer((Span(0, 2, 2), Span(1, 2, 3))), "[:3:2,1::3]"),
        (Indexer((Span(4, 5, -1), Span(5, 2, -2))), "[4::-1,5:2:-2]"),
        (Indexer((Span(None, 2), Span(None, 2, 3))), "[b:b+2,c:c+6:3]"),
        (Indexer((Span(None, 2, -2), Span(0, 0))), "[b:b-4:-2,:0]"),
        (Indexer((Span(2, 0), Span(3, 0, -1))), "[2:2,3:3:-1]"),
    ],
    ids=str,
)
def test_indexers_are_printed_and_parsed(indexer: Indexer, expected: str) -> None:
    r = ref_type(array_type((5, 6), "float32"))
    operands = [I32] * indexer.n_operands
    jaxpr = program([r, *operands], lambda b, *args: [b(Get(indexer), *args)])
    assert eqn_str(jaxpr.eqns[0]).endswith(f"<- a{expected}")
    assert parse(str(jaxpr)) == jaxpr


def test_a_write_whose_result_is_used_shows_it() -> None:
    used = program([REF, VEC], lambda b, r, v: [b(Swap(ALL), r, v)])
    unused = program([REF, VEC], lambda b, r, v: b.emit(Swap(ALL), [r, v])[:0])
    assert "let c:f32[3], a[...] <- a[...], b in (c,)" in str(used)
    assert "let a[...] <- b in ()" in str(unused)


def test_a_result_that_is_out_of_order_is_shown() -> None:
    r, v = Var(0, REF), Var(1, VEC)
    jaxpr = Jaxpr([r, v], [Eqn(Swap(ALL), (r, v), (Var(7, VEC),))], [])
    assert "h:f32[3], a[...] <- a[...], b" in str(jaxpr)


def test_long_lists_are_filled_to_the_width() -> None:
    jaxpr = program([VEC] * 60, lambda b, *xs: [b(Add(), x, xs[0]) for x in xs])
    lines = str(jaxpr).splitlines()
    assert max(map(len, lines)) <= WIDTH + len(" }")
    assert all(line.startswith("    ") for line in lines[1:-5])
    assert parse(str(jaxpr)) == jaxpr


def test_subjaxprs_that_occur_twice_are_written_once() -> None:
    text = str(nested())
    assert text.count("b[...] <- a") == 1
    assert text.startswith("let twice = { lambda ;")
    assert text.count("jaxpr=twice") == 2


def test_programs_of_the_same_name_get_distinct_names() -> None:
    b = Builder([VEC])
    x = b.binders[0]
    for length in (12, 13, 12):
        inner = program([VEC], lambda b, x, n=length: b.inline_jaxpr(chain(n), [x, x]))
        (x,) = b.emit(Jit(inner, "<lambda>"), [x])
    jaxpr = b.finish([x])
    names = re.findall(r"name=<lambda> jaxpr=(\w+)", str(jaxpr))
    assert names == ["lambda", "lambda1", "lambda"]
    assert parse(str(jaxpr)) == jaxpr


def test_a_program_is_not_called_like_a_dtype() -> None:
    inner = program([VEC], lambda b, x: b.inline_jaxpr(chain(12), [x, x]))
    jaxpr = program([VEC], lambda b, x: b.emit(Jit(inner, "float32"), [x]))
    assert str(jaxpr).startswith("let float321 = ")
    assert parse(str(jaxpr)) == jaxpr


def test_nesting_costs_no_more_than_it_holds() -> None:
    """Each level contains the one below twice: written out, these are 2^40 programs."""
    inner = chain(1)
    for _ in range(40):
        level = inner

        def twice(b: Builder, x: Var, y: Var, level: Jaxpr = level) -> list[Var]:
            (z,) = b.emit(Jit(level), [x, y])
            return list(b.emit(Jit(level), [z, y]))

        inner = program([VEC, VEC], twice)
    text = str(inner)
    assert len(text) < 10_000
    assert parse(text) == inner
    assert len(eqn_str(inner.eqns[0])) < 200


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_primitive_shows_its_name_or_is_a_use_of_a_reference(sample: Sample) -> None:
    text = eqn_str(sample.eqn)
    assert sample.prim.name in text or "<-" in text or "+=" in text
    assert "\n" not in text


def test_parameters_are_sorted_by_name() -> None:
    text = eqn_str(Eqn(CumSum(0, True), (Var(0, VEC),), (Var(1, VEC),)))
    assert text == "b:f32[3] = cumsum[axis=0 reverse=True] a"


def test_errors_show_the_program_they_are_about() -> None:
    with pytest.raises(IllTyped) as caught:
        Mul().typing(WEAK, I32)
    assert "~f32[], i32[]" in str(caught.value)


@pytest.mark.slow
def test_printing_is_linear() -> None:
    large, small = chain(20_000), chain(2_000)
    # Longer names take a little more work each.
    assert calls(lambda: str(large)) < 20 * calls(lambda: str(small))


@pytest.mark.jax
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
def test_layout_is_that_of_jax(length: int) -> None:
    import jax
    import jax.numpy as jnp

    def body(b: Builder, x: Var, y: Var) -> list[Var]:
        for _ in range(length):
            x = b(Sin(), x)
        return [x]

    def function(x: Any, y: Any) -> Any:
        for _ in range(length):
            x = jnp.sin(x)
        return x

    zero = jnp.zeros((), jnp.float32)
    assert str(program([F32, F32], body)) == str(jax.make_jaxpr(function)(zero, zero))


@pytest.mark.jax
def test_references_are_shown_as_in_jax() -> None:
    import jax
    import jax.numpy as jnp

    def body(b: Builder, r: Var, i: Var, x: Var) -> list[Var]:
        y = b(Get(Indexer((Pick(None),))), r, i)
        b.emit(Swap(Indexer((Pick(None),))), [r, y, i])
        b.emit(Swap(ALL), [r, x])
        return [b(Swap(Indexer((Pick(0),))), r, lit(3.0, F32))]

    def function(r: Any, i: Any, x: Any) -> Any:
        r[i] = r[i]
        r[...] = x
        return jax.ref.swap(r, 0, jnp.float32(3.0))

    ref = jax.new_ref(jnp.zeros(3, jnp.float32))
    theirs = jax.make_jaxpr(function)(ref, jnp.int32(0), jnp.zeros(3, jnp.float32))
    # JAX does not name an unused result; the next result has its name.
    ours = str(program([REF, I32, VEC], body)).replace("g:", "e:").replace("(g,)", "(e,)")
    assert ours == str(theirs)


def test_a_long_row_of_effects_is_wrapped_and_parsed_back() -> None:
    binders = [f"{name}:Ref{{f32[]}}" for name in "abcdefghijklmnopqrst"]
    stores = "\n".join(f"{name}[...] <- 1.0:f32[]" for name in "abcdefghijklmnopqrst")
    jaxpr = parse(f"{{ lambda ; {' '.join(binders)}. let\n{stores}\nin () }}")
    shown = pretty(jaxpr, effects=True)
    assert re.search(r"\n    (read|write) \w, read \w, write \w, ", shown)
    assert max(map(len, shown.splitlines())) < 90
    assert parse(shown) == jaxpr
