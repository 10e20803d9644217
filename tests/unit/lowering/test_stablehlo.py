"""The engine of lowering: the module's text, sharing, literals, aliases, errors, growth."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from returns.result import Failure, Success

from effax.ir import prims
from effax.ir.build import Builder, lit
from effax.ir.dtypes import FLOAT0, as_dtype
from effax.ir.errors import LoweringError
from effax.ir.indexing import Indexer, Mode, Pick, Span, row
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import CustomJvp, CustomLinear, CustomVjp, RandomUnwrap, RandomWrap, refs
from effax.ir.prims import index as ix
from effax.ir.prims import reduce as r
from effax.ir.source import SavedSource
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, Type, array_type, ref_type
from effax.lowering import xla
from effax.lowering.mlir_text import element
from effax.lowering.mlir_text import scalar as literal_text
from effax.lowering.rules.default import DEFAULT
from effax.lowering.stablehlo import lower
from effax.lowering.writer import NO_RULES, Expansion, LoweringRules, Val, Writer
from effax.transforms.rules.custom.dense import DenseForward, DenseReverse
from tests.unit.lowering.compiled import (
    agree,
    applied,
    array,
    executable,
    module,
    program,
    run,
    samples,
)

GOLDEN = Path(__file__).parents[2] / "golden"
F = array("float32")
VEC = array("float32", 3)


def mixed() -> Jaxpr:
    """A program with literals, a broadcast, a call, a loop, a conditional, reads and writes."""
    half = program([VEC], lambda b, x: [b(prims.Mul(), x, lit(0.5, F))])
    step = program([VEC, F], lambda b, x, y: [b(prims.Sub(), x, y), b(r.ReduceSum((0,)), x)])
    negate = program([VEC], lambda b, x: [b(prims.Neg(), x)])
    table = array("float32", 8, 3)

    def body(b: Builder, table: Var, i: Var, y: Var, flag: Var) -> Sequence[Atom]:
        read = b(ix.Gather(row((8, 3))), table, i)
        (x,) = b.emit(prims.Jit(half, "half<lambda>"), (read,))
        x, sums = b.emit(prims.Scan(step, 4, False, 0, 1), (x, y))
        (z,) = b.emit(prims.Cond((half, negate)), (flag, x))
        new = b(ix.Scatter(Indexer((Pick(None), Span(0, 3)), Mode.DROP)), table, z, i)
        return [new, sums, b(prims.Copy(), x), lit(1, array("int32"))]

    return program([table, array("int32"), array("float32", 4), array("bool")], body)


def test_the_text_is_the_golden_one() -> None:
    found = lower(mixed(), name="mixed", aliases=[(0, 0)]).unwrap().text
    assert found == (GOLDEN / "mixed.mlir").read_text(encoding="utf-8")


def test_the_golden_program_runs() -> None:
    args = [
        samples("float32", (8, 3)),
        np.array(5, np.int32),
        samples("float32", (4,)),
        np.array(True),
    ]
    agree(mixed(), args)


def test_equal_inputs_have_equal_text() -> None:
    first, second = mixed(), mixed()
    assert first is not second
    assert module(first) == module(second)


@pytest.mark.slow
def test_text_does_not_depend_on_the_process() -> None:
    code = (
        "from tests.unit.lowering.test_stablehlo import mixed, module; "
        "import hashlib; print(hashlib.sha256(module(mixed()).text.encode()).hexdigest())"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(prints) == 1


def test_a_module_has_its_types() -> None:
    weak = array_type((), np.float32, weak=True)
    found = module(program([VEC, weak], lambda b, x, y: [y, x]), [(0, 1)])
    assert found.in_types == (VEC, weak)
    assert found.out_types == (weak, VEC)
    assert found.aliases == ((0, 1),)
    assert found.text.count("tf.aliasing_output = 1 : i32") == 1


def test_the_names_of_modules_and_functions_need_no_quotes() -> None:
    text = lower(applied(prims.Jit(mixed_free(), "<lambda> 2")), name="2 odd-names").unwrap().text
    assert text.startswith("module @f2_odd_names {")
    assert "@lambda_2_0(" in text


def mixed_free() -> Jaxpr:
    return program([], lambda b: [lit(2.0, F)])


SPECIAL: list[tuple[str, complex | float | int | bool]] = [
    *[
        (dtype, value)
        for dtype in ("float32", "float64", "float16", "bfloat16")
        for value in (
            0.1,
            -0.0,
            math.nan,
            math.inf,
            -math.inf,
            1e-5,
            1e300,
            5e-324,
            -1e-40,
            65504.0,
        )
    ],
    ("complex64", complex(1.5, -0.0)),
    ("complex64", complex(math.nan, math.inf)),
    ("complex128", complex(-math.inf, 0.1)),
    ("int64", -(2**63)),
    ("uint64", 2**64 - 1),
    ("int8", -128),
    ("uint8", 255),
    ("bool", True),
    ("bool", False),
    ("float8_e4m3fn", math.nan),
    ("float8_e5m2", math.inf),
    ("float8_e5m2", 0.25),
]


@pytest.mark.parametrize("dtype", sorted({d for d, _ in SPECIAL}))
def test_literals_are_exact_to_the_bit(dtype: str) -> None:
    values = [v for d, v in SPECIAL if d == dtype]
    type_ = array(dtype)
    assert isinstance(type_, ArrayType)
    found = run(program([], lambda b: [Lit(v, type_) for v in values]), [])
    with np.errstate(over="ignore"):
        wanted = [np.asarray(v, as_dtype(dtype)) for v in values]
    assert [f.tobytes() for f in found] == [w.tobytes() for w in wanted]


def test_decimal_literals_are_read_back_as_they_are() -> None:
    for value in (1e22, 1e-7, 1.5e300, 123456789.125):
        assert float(literal_text(value, as_dtype("float64"))) == value
        assert "." in literal_text(value, as_dtype("float64"))


def test_literals_are_written_once_a_function() -> None:
    def body(b: Builder, x: Var) -> list[Atom]:
        for _ in range(20):
            x = b(
                prims.Add(),
                b(prims.Mul(), x, lit(2, F)),
                lit(2, array_type((), np.float32, weak=True)),
            )
        return [x]

    assert module(program([VEC], body)).text.count("stablehlo.constant") == 1


def test_constants_are_arguments() -> None:
    jaxpr = program([VEC, VEC], lambda b, k, x: [b(prims.Add(), k, x)]).replace(n_consts=1)
    assert module(jaxpr).in_types == (VEC, VEC)
    agree(jaxpr, [samples("float32", (3,)), samples("float32", (3,), 1)])


def test_float0_is_lowered_as_booleans() -> None:
    assert element(FLOAT0) == "i1"
    type_ = array_type((2,), FLOAT0)
    assert "tensor<2xi1>" in module(program([type_], lambda b, x: [b(prims.Copy(), x)])).text


def test_aliased_arguments_keep_their_memory() -> None:
    jaxpr = program([VEC, VEC], lambda b, x, y: [b(prims.Sin(), y), b(prims.Add(), x, y)])
    call = executable(jaxpr, ((0, 1),))
    x, y = (xla.new_ref_buffer(samples("float32", (3,), k)) for k in range(2))
    before = xla.pointer(x)
    assert xla.pointer(call([x, y])[1]) == before


ALIASES = [[(0, 0)], [(0, 1), (1, 1)], [(0, 1), (0, 2)], [(5, 1)], [(0, 9)], [(-1, 1)]]


@pytest.mark.parametrize("aliases", ALIASES, ids=str)
def test_bad_aliases_are_errors(aliases: list[tuple[int, int]]) -> None:
    jaxpr = program([VEC, VEC], lambda b, x, y: [lit(0, F), x, y]).replace(names=("table", ""))
    error = lower(jaxpr, aliases=aliases).failure()
    assert isinstance(error, LoweringError)
    assert "cannot share a buffer" in str(error)


@dataclass(frozen=True, slots=True)
class Twice(Primitive):
    """x ↦ x + x."""

    name: ClassVar[str] = "twice"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (ins[0] + ins[0],)


def test_a_missing_rule_is_an_error_that_names_the_primitive() -> None:
    source = SavedSource("user.py", 7, "f")
    x, y = Var(0, VEC), Var(1, VEC)
    jaxpr = Jaxpr([x], [Eqn(Twice(), (x,), (y,), source=source)], [y])
    error = lower(jaxpr).failure()
    assert isinstance(error, LoweringError)
    for part in ("twice", "rules.extend", "user.py:7", "b:f32[3] = twice a"):
        assert part in str(error)


def doubled(w: Writer, prim: Twice, ins: Sequence[Val]) -> Sequence[Val]:
    return (w.apply1(prims.Add(), ins[0], ins[0]),)


def expanded(prim: Twice, types: tuple[ArrayType, ...]) -> Jaxpr:
    return program(types, lambda b, x: [b(prims.Mul(), x, lit(2, types[0]))])


BOOKS = [DEFAULT.extend(Twice, doubled), DEFAULT.extend(Twice, Expansion(expanded))]


@pytest.mark.parametrize("rules", BOOKS, ids=["text", "program"])
def test_a_rule_writes_text_or_returns_a_program(rules: LoweringRules) -> None:
    jaxpr = program([VEC], lambda b, x: [b(Twice(), b(Twice(), x))])
    lowered = lower(jaxpr, rules=rules).unwrap()
    call = xla.compile_module(lowered.text, 1, lowered.out_types)
    (out,) = call([xla.put(np.array([1, 2, 3], np.float32))])
    assert xla.to_numpy(out).tolist() == [4, 8, 12]


def test_a_program_of_a_rule_is_written_once() -> None:
    jaxpr = program([VEC], lambda b, x: [b(Twice(), b(Twice(), x))])
    text = lower(jaxpr, rules=BOOKS[1]).unwrap().text
    assert text.count("stablehlo.multiply") == 1
    assert text.count("call @twice_0") == 2


def test_rules_are_values() -> None:
    rules = NO_RULES.extend(Twice, doubled)
    assert Twice not in NO_RULES.rules
    assert Twice in NO_RULES.union(rules).rules
    assert Twice not in DEFAULT.rules


def named(base: type[object]) -> Iterator[type[object]]:
    for sub in base.__subclasses__():
        # `dataclass(slots=True)` creates the class a second time.
        is_real = getattr(sys.modules[sub.__module__], sub.__name__, None) is sub
        if is_real and sub.__module__.startswith("effax.ir.prims.") and "name" in vars(sub):
            yield sub
        yield from named(sub)


def test_every_primitive_on_arrays_has_a_rule() -> None:
    several = [p for p in named(Primitive) if p.__module__ != refs.__name__]
    assert len(several) > 100
    keys = {RandomUnwrap, RandomWrap}
    assert [p for p in several if p not in DEFAULT.rules and p not in keys] == []


def test_custom_derivatives_leave_the_call() -> None:
    call = program([VEC], lambda b, x: [b(prims.Sin(), x)])
    rule = program([VEC, VEC], lambda b, x, t: [b(prims.Cos(), x), t])
    both = program([VEC], lambda b, x: [b(prims.Cos(), x), x])
    custom = [
        CustomJvp(call, DenseForward(rule, 0, 1, "f"), 0, "f"),
        CustomVjp(call, DenseReverse(both, rule, (), (True,), "f"), 0, "f"),
    ]
    for prim in custom:
        x = samples("float32", (3,))
        agree(applied(prim, x), [x])
        assert "cosine" not in module(applied(prim, x)).text


def test_a_custom_linear_without_forward_is_an_error() -> None:
    linear = CustomLinear(program([VEC], lambda b, t: [t]), 0, (VEC,), "my_relu")
    error = lower(applied(linear, samples("float32", (3,)))).failure()
    assert "my_relu" in str(error)
    assert "custom_jvp" in str(error)


def with_a_ref_argument() -> Jaxpr:
    ref = ref_type(array_type((3,), np.float32))
    whole = Indexer((Span(0, 3),))
    return program([ref], lambda b, x: [b(refs.Get(whole), x)]).replace(names=("x_ref",))


def with_a_ref_inside() -> Jaxpr:
    def body(b: Builder, x: Var) -> list[Atom]:
        return [b(refs.Freeze(), b(refs.NewRef(), x))]

    return program([VEC], body)


@pytest.mark.parametrize(
    ("jaxpr", "what"), [(with_a_ref_argument(), "x_ref"), (with_a_ref_inside(), "new_ref")]
)
def test_references_are_discharged_first(jaxpr: Jaxpr, what: str) -> None:
    error = lower(jaxpr).failure()
    assert isinstance(error, LoweringError)
    assert what in str(error)
    assert "discharge" in str(error)


def test_references_in_subjaxprs_are_found() -> None:
    jaxpr = applied(prims.Jit(with_a_ref_inside()), samples("float32", (3,)))
    assert isinstance(lower(jaxpr), Failure)


def test_the_result_is_a_success() -> None:
    assert isinstance(lower(mixed()), Success)


def chain(n: int) -> Jaxpr:
    def body(b: Builder, x: Var, y: Var) -> list[Atom]:
        for k in range(n // 4):
            x = b(prims.Add(), x, y)
            y = b(prims.Mul(), x, lit(2.0 + k % 7, F))
            x = b(prims.Sin(), y)
            y = b(prims.Sub(), x, y)
        return [x, y]

    return program([VEC, VEC], body)


def test_text_grows_linearly() -> None:
    sizes = [module(chain(n)).text.count("\n") for n in (1000, 2000, 4000)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0]) == 2000


def calls_made(jaxpr: Jaxpr) -> int:
    """Count the Python functions that are called while the program is lowered."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        lower(jaxpr)
    finally:
        sys.setprofile(None)
    return count


def test_an_equation_of_a_known_kind_costs_few_calls() -> None:
    small, large = chain(400), chain(4400)
    for jaxpr in (small, large):
        assert jaxpr.size  # cached on the program
    per_equation = (calls_made(large) - calls_made(small)) / 4000
    assert per_equation < 6
